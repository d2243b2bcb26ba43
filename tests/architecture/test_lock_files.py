"""Lock files name packages and hashes; where they are fetched from is the choice of the machine that installs them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
NPM_LOCK = ROOT / "tests" / "mcp" / "node" / "package-lock.json"


def test_lock_files_contain_no_addresses() -> None:
    files = [*ROOT.glob("*.lock"), NPM_LOCK]
    assert {"requirements.lock", "requirements-dev.lock"} < {file.name for file in files}
    found = [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "://" in line or "git+" in line
    ]
    assert found == []
