"""SQL stands with its subject, and not in the layers that only rule, translate or show."""

import re
from pathlib import Path

import pytest

import frontdesk
from tests.support.previous_release import NO_RELEASE, unpack_previous_release

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
    "folder", ["domain", "operations", "web", "doors", "console", "serving", "cli", "practice_file", "demo"]
)
def test_a_layer_without_sql_has_none(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert statements(ROOT / folder) == []


def test_a_statement_is_noticed() -> None:
    assert statements(ROOT / "audit")


def test_functions_are_dropped_only_if_the_previous_release_does_not_call_them(tmp_path: Path) -> None:
    functions = "\n".join(path.read_text() for path in sorted((ROOT / "store" / "functions").glob("*.sql")))
    dropped = re.findall(r"^DROP FUNCTION IF EXISTS (\w+)", functions, re.MULTILINE)
    previous = unpack_previous_release(tmp_path / "previous")
    if previous is None:
        pytest.skip(NO_RELEASE)
    calls = [path.read_text() for path in (previous / "src").rglob("*.py")]
    assert any("commit_write(" in text for text in calls), "calls are found"
    assert [
        name for name in dropped if any(f"FROM {name}(" in text or f"SELECT {name}(" in text for text in calls)
    ] == []
