"""Compares what a client with a limit on its writes has written, and been refused, with the audit trail."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.proof.recorder import CLOCK_TOLERANCE, WRITES, Offset
from tests.proof.stored import Stored

if TYPE_CHECKING:
    from tests.proof.checker import Checker

WRITES_PER_HOUR = 4  # of each kind: few enough to be reached in a short run
_HOUR = 3600.0
_MINUTE = 60.0


def compare_write_limits(checker: "Checker", stored: Stored) -> None:
    history, findings = checker.history, checker.findings
    executed: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in stored.audit:
        if row["actor"] in history.write_limits and row["operation"] in WRITES and row["outcome"] == "executed":
            executed[row["actor"], row["operation"]].append(row["at"].timestamp())
    # A node whose clock was ahead has counted, and forgotten, by that clock.
    backwards = _backwards(history.offsets)
    window = _HOUR - backwards
    for (client, operation), times in executed.items():
        times.sort()
        limit = history.write_limits[client]
        if any(last - first <= window for first, last in zip(times, times[limit:], strict=False)):
            findings.add("write limit exceeded", f"{operation}: more than {limit} in an hour")
    announced = {row["subject"] for row in stored.outbox if row["type"] == "client.writeLimitReached"}
    for client in {op.client for op in checker.limited} - announced:
        findings.add("no event of a reached limit", client)
    for op in checker.limited:
        times = executed[op.client, op.name]
        earliest, latest = history.earliest_service_time(op), history.latest_service_time(op)
        since = bisect_left(times, earliest - _HOUR - 2 * _MINUTE - backwards)
        if bisect_right(times, latest + backwards + CLOCK_TOLERANCE) - since < history.write_limits[op.client]:
            findings.add("refused below the write limit", op)


def _backwards(offsets: Sequence[Offset]) -> float:
    """How far a process's clock may be behind what another's, or its own, showed before."""
    return max(before.most - after.least for number, before in enumerate(offsets) for after in offsets[number:])
