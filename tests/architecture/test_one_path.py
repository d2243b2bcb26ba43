"""One place runs operations, so that no call skips a check."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "frontdesk"


def test_operations_are_run_in_one_place() -> None:
    callers = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for _ in re.findall(r"(?:operation|OPERATION|\])\.run\(", path.read_text())
    ]
    assert callers == ["engine/confirmation.py"]
