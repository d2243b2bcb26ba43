"""An event loop whose time passes only when everything waits, and that picks the next task by a seed."""

import asyncio
import selectors
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

from frontdesk.store.database import DatabaseUnavailable, OutcomeUnknown

T = TypeVar("T")
BEGAN = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
_MAX_STEPS = 2_000_000  # a simulation that goes on forever fails


class _Selector(selectors.BaseSelector):
    """Nothing arrives from outside: waiting is over at once, and has taken as long as it was meant to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will happen")
        self.now += max(0.0, timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self, chance: Random) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._chance = chance
        self._steps = 0

    def time(self) -> float:
        return self._virtual.now

    def wall(self) -> datetime:
        return BEGAN + timedelta(seconds=self._virtual.now)

    def _run_once(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise RuntimeError("the simulation does not end")
        ready: deque[Any] = self._ready  # type: ignore[attr-defined]
        if len(ready) > 1:  # tasks that could go on change places; other callbacks keep theirs
            at = [place for place, handle in enumerate(ready) if _is_task(handle)]
            order = [ready[place] for place in at]
            self._chance.shuffle(order)
            for place, handle in zip(at, order, strict=True):
                ready[place] = handle
        super()._run_once()  # type: ignore[misc]


def _is_task(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)  # type: ignore[attr-defined]


def simulate(scenario: Callable[[Random], Awaitable[None]], seed: int) -> None:
    """Runs a scenario; the same seed gives the same run."""
    chance = Random(seed)
    loop = SimulatedLoop(chance)

    async def run() -> None:
        try:
            await scenario(chance)
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


class Link:
    """The way to the simulated database: slow at times, and it loses questions and answers while it is `broken`."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.broken = 0.0  # the share of calls that are lost

    async def read(self, execute: Callable[[], T]) -> T:
        """A statement that may be repeated: what was lost counts as not executed."""
        try:
            return await self.write(execute)
        except OutcomeUnknown as error:
            raise DatabaseUnavailable from error

    async def write(self, execute: Callable[[], T]) -> T:
        await self._travel()
        if self._chance.random() < self.broken:
            raise self._chance.choice((DatabaseUnavailable, OutcomeUnknown))
        answer = execute()
        await self._travel()
        if self._chance.random() < self.broken:
            raise OutcomeUnknown
        return answer

    async def _travel(self) -> None:
        await asyncio.sleep(self._chance.choice((0.0, 0.0, 0.001, 0.01, 0.1, 1.0)) * self._chance.random())
