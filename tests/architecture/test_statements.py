"""SQL stands with its subject, and not in the layers that only rule, translate or show."""

import re
from pathlib import Path

import pytest

import frontdesk

ROOT = Path(frontdesk.__file__).parent
STATEMENT = re.compile(r"\bSELECT\b.*\bFROM\b|\bINSERT INTO\b|\bDELETE FROM\b|\bUPDATE \w+ SET\b")


def statements(folder: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        for line in path.read_text().splitlines()
        if STATEMENT.search(line)
    ]


@pytest.mark.parametrize(
    "folder", ["domain", "operations", "doors", "console/pages", "serving", "cli", "practice_file", "demo"]
)
def test_a_layer_without_sql_has_none(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert statements(ROOT / folder) == []


def test_a_statement_is_noticed() -> None:
    assert statements(ROOT / "audit")


def test_files_of_functions_drop_none() -> None:
    """Statements of the previous release may be calling them."""
    files = sorted((ROOT / "store" / "functions").glob("*.sql"))
    assert files
    assert [path.name for path in files if re.search(r"^DROP FUNCTION", path.read_text(), re.MULTILINE)] == []
