"""One snapshot per tool, as clients see it. After a deliberate change, write them anew:

.venv/bin/python -m tests.doors.tool_snapshots
"""

import json
from pathlib import Path

from frontdesk.doors.mcp.tools import tool
from frontdesk.operations import OPERATIONS, Operation

FOLDER = Path(__file__).parent / "snapshots" / "tools"


def snapshot_file(operation: Operation) -> Path:
    return FOLDER / f"{operation.name}.json"


def snapshot(operation: Operation) -> str:
    return json.dumps(tool(operation), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stale in set(FOLDER.iterdir()) - {snapshot_file(operation) for operation in OPERATIONS}:
        stale.unlink()
    for operation in OPERATIONS:
        snapshot_file(operation).write_text(snapshot(operation))
