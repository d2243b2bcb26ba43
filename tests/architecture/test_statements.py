"""SQL stands with its subject, and not in the layers that only rule, translate or show."""

import re
from pathlib import Path

import pytest

import frontdesk

ROOT = Path(frontdesk.__file__).parent
STATEMENT = re.compile(r"\bSELECT\b.*\bFROM\b|\bINSERT INTO\b|\bDELETE FROM\b|\bUPDATE \w+ SET\b")

UNUSED_SINCE_THE_PREVIOUS_RELEASE = (
    "calendar_state",
    "changed_calendars",
    "count_failed_token_call",
    "list_appointments",
    "token_calls_refused",
)


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


def test_functions_are_dropped_only_if_the_previous_release_does_not_call_them() -> None:
    files = sorted((ROOT / "store" / "functions").glob("*.sql"))
    assert files
    dropped = re.findall(r"^DROP FUNCTION IF EXISTS (\w+)", "\n".join(path.read_text() for path in files), re.MULTILINE)
    assert sorted(dropped) == sorted(UNUSED_SINCE_THE_PREVIOUS_RELEASE)
