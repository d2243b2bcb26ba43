"""Finds workers whose event loop no longer runs, by the heartbeats that they send to the supervisor."""

import time
from collections.abc import Callable

BEAT_SECONDS = 1.0
HUNG_SECONDS = 10.0


class Heartbeats:
    """Watches a worker from its first heartbeat on.

    Counts only time during which the supervisor itself ran: a machine that was suspended makes no worker late.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._looked_at = monotonic()
        self._silent: dict[int, float] = {}

    def record(self, pid: int) -> None:
        self._silent[pid] = 0.0

    def forget(self, pid: int) -> None:
        self._silent.pop(pid, None)

    def hung(self) -> set[int]:
        """The workers that have been silent for too long; call it at least every `BEAT_SECONDS`."""
        now = self._monotonic()
        ran = min(now - self._looked_at, 2 * BEAT_SECONDS)
        self._looked_at = now
        for pid in self._silent:
            self._silent[pid] += ran
        return {pid for pid, seconds in self._silent.items() if seconds >= HUNG_SECONDS}
