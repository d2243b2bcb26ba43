"""Lock files name packages and hashes; where they are fetched from is the choice of the machine that installs them."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFESTS = [path for path in (ROOT / "tests").rglob("package.json") if "node_modules" not in path.parts]


def test_lock_files_contain_no_addresses() -> None:
    files = [*ROOT.glob("*.lock"), *(path.with_name("package-lock.json") for path in MANIFESTS)]
    assert {"requirements.lock", "requirements-dev.lock"} < {file.name for file in files}
    found = [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "://" in line or "git+" in line
    ]
    assert found == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_programs_of_npm_are_locked_by_hash(manifest: Path) -> None:
    wanted = json.loads(manifest.read_text())
    locked = json.loads(manifest.with_name("package-lock.json").read_text())["packages"]
    own = locked.pop("")
    for kind in ("dependencies", "optionalDependencies"):
        assert own.get(kind) == wanted.get(kind)
    assert [name for name, package in locked.items() if not package["integrity"].startswith("sha512-")] == []
