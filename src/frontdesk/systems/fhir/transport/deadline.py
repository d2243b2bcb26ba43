"""How long the requests of one call may take together, and how several of them wait for each other."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from frontdesk.systems.port import SystemUnavailable

LOOK_UP_SECONDS = 2.0


class Deadline:
    """When all requests of one call must have ended."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = monotonic() + seconds
        self._reserve = min(LOOK_UP_SECONDS, seconds / 4)

    def remaining(self, *, write: bool) -> float:
        """A write leaves time to look up what became of it."""
        return self._ends_at - self._monotonic() - (self._reserve if write else 0)

    def check(self, *, write: bool) -> None:
        """Raises SystemUnavailable where it is too late to begin: a write that runs out of time is an open question."""
        if self.remaining(write=write) < (self._reserve / 2 if write else 0):
            raise SystemUnavailable


async def together(*requests: Awaitable[Any]) -> list[Any]:
    """The answers to requests that are under way at once. Nothing goes on behind whoever hears of a failure."""
    answers = await asyncio.gather(*requests, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
