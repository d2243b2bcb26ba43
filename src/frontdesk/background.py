"""Runs periodic work in the background, retries it after failures, and reports its state."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

FIRST_PAUSE = 0.5
MAX_PAUSE = 5.0
FAILING_SECONDS = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """Runs every `every` seconds and whenever `wake` is set, with at least `pause` seconds between two runs."""

    name: str
    run: Callable[[], Awaitable[object]]
    every: float | None = None
    wake: asyncio.Event | None = None
    pause: float = 0.0
    close: Callable[[], Awaitable[None]] | None = None  # runs once at shutdown, after the last run


@dataclass(slots=True)
class StepState:
    running: bool = False
    failures: int = 0  # since the last success
    failing_since: float | None = None  # by the monotonic clock
    succeeded_at: float = 0.0  # seconds since the epoch; 0: not yet
    successes: int = 0
    all_failures: int = 0
    seconds: float = 0.0  # spent in runs


class Background:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.states = {step.name: StepState() for step in steps}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._repeat(step), name=step.name) for step in self.steps]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await asyncio.gather(*(self._close(step) for step in self.steps))

    def failing(self) -> list[str]:
        """The names of steps that have failed for a while. A short outage is not reported."""
        now = time.monotonic()
        return [
            name
            for name, state in self.states.items()
            if state.failing_since is not None and now - state.failing_since >= FAILING_SECONDS
        ]

    async def _repeat(self, step: Step) -> None:
        state = self.states[step.name]
        while True:
            if state.failures == 0:
                await _until_due(step)
            await self._run(step, state)
            backoff = min(FIRST_PAUSE * 2 ** min(state.failures - 1, 10), MAX_PAUSE)
            await asyncio.sleep(backoff if state.failures else step.pause)

    async def _run(self, step: Step, state: StepState) -> None:
        state.running = True
        began = time.monotonic()
        try:
            await step.run()
        except (Exception, asyncio.CancelledError) as error:
            if _is_cancelled():
                raise
            state.failures += 1
            state.all_failures += 1
            state.failing_since = state.failing_since or time.monotonic()
            if state.failures.bit_count() == 1:  # at 1, 2, 4, 8 ...: an outage is not a flood of lines
                fields = {"step": step.name, "failures": state.failures}
                _log.error("background step failed", exc_info=error, extra=fields)
        else:
            state.failures, state.failing_since, state.succeeded_at = 0, None, time.time()
            state.successes += 1
        finally:
            state.running = False
            state.seconds += time.monotonic() - began

    async def _close(self, step: Step) -> None:
        if step.close is not None:
            try:
                await step.close()
            except Exception as error:
                _log.error("background step could not be closed", exc_info=error, extra={"step": step.name})


async def _until_due(step: Step) -> None:
    if step.wake is None:
        assert step.every is not None
        await asyncio.sleep(step.every)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(step.every):  # Python 3.11's wait_for may swallow a cancellation
            await step.wake.wait()
    step.wake.clear()


def _is_cancelled() -> bool:
    """Whether this task itself is cancelled, and not one that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
