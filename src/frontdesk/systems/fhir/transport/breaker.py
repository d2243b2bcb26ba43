"""Circuit breaker: pauses requests after several failures in a row, then lets one through to try."""

from collections.abc import Callable
from math import ceil

from frontdesk.systems.findings import ConnectionState
from frontdesk.systems.port import SystemUnavailable

FAILURES = 5
FIRST_PAUSE_SECONDS = 2.0
MAX_PAUSE_SECONDS = 8.0  # a server that is back is noticed within this time
MAX_HOLD_SECONDS = 120.0


class Breaker:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._open_until = 0.0

    def admit(self) -> None:
        """Lets a request through. Raises SystemUnavailable while requests are paused."""
        now = self._monotonic()
        if now < self._open_until:
            raise SystemUnavailable(max(1, ceil(self._open_until - now)))
        if self._failures >= FAILURES:
            # This request tries; others are refused until it has succeeded.
            self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)
            self._open_until = now + self._pause

    def succeeded(self) -> bool:
        """Whether requests had failed before this one."""
        recovered = self._failures > 0
        if self._failures >= FAILURES:
            self._open_until = 0.0
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        return recovered

    def failed(self) -> None:
        self._failures += 1
        if self._failures == FAILURES:
            self._open_until = self._monotonic() + self._pause

    def hold(self, seconds: float) -> None:
        """The server asked for a pause (Retry-After)."""
        until = self._monotonic() + min(seconds, MAX_HOLD_SECONDS)
        self._open_until = max(self._open_until, until)

    @property
    def state(self) -> ConnectionState:
        if self._monotonic() < self._open_until or self._failures >= FAILURES:
            return "resting"
        return "failing" if self._failures else "working"

    @property
    def retry_in(self) -> int:
        """Seconds until the next request is allowed."""
        return max(0, ceil(self._open_until - self._monotonic()))
