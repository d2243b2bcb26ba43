"""Deadline of all requests of one call, and concurrent requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from frontdesk.systems.port import SystemUnavailable

LOOK_UP_SECONDS = 2.0


class Deadline:
    """When all requests of one call must have finished."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = monotonic() + seconds
        self._reserve = min(LOOK_UP_SECONDS, seconds / 4)

    def remaining(self, *, write: bool) -> float:
        """Seconds left. A write leaves a reserve to look up its outcome."""
        return self._ends_at - self._monotonic() - (self._reserve if write else 0)

    def allows(self, *, write: bool) -> bool:
        """Whether a request may begin; a write that times out has an unknown outcome."""
        return self.remaining(write=write) >= (self._reserve / 2 if write else 0)

    def check(self, *, write: bool) -> None:
        """Checks that there is time for a request. Raises SystemUnavailable if it is too late to begin."""
        if not self.allows(write=write):
            raise SystemUnavailable


async def gather_all(*requests: Awaitable[object]) -> list[Any]:  # their types differ
    """Awaits concurrent requests and raises the first failure once all have finished."""
    answers = await asyncio.gather(*requests, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
