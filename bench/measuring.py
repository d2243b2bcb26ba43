"""How figures are taken: in rounds that go through all ways of a comparison in turn, and compared round by round.

A neighbour who takes the processor away for a while slows the ways of one round alike, so that the ratio of a round
holds where its figures do not. Reported is the median of the ratios, and the lowest and the highest.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """How long and how large a run is."""

    rounds: int
    restarts: int
    """How many processes of each server share the rounds: one may be a third faster than the next, all its life."""
    seconds: float
    pgbench_seconds: int
    growth: tuple[int, ...]
    """Practices; the last point is the largest."""
    growth_rounds: int
    soak_seconds: int
    day_seconds: int
    starts: int
    idle_seconds: int
    max_seconds: float | None
    """After which a run takes fewer rounds."""


FULL = Sizes(
    rounds=30,
    restarts=6,
    seconds=0.6,
    pgbench_seconds=2,
    growth=(10, 100, 1_000, 10_000),
    growth_rounds=15,
    soak_seconds=600,
    day_seconds=60,
    starts=7,
    idle_seconds=65,
    max_seconds=None,
)
QUICK = Sizes(
    rounds=2,
    restarts=1,
    seconds=0.4,
    pgbench_seconds=2,
    growth=(20,),
    growth_rounds=2,
    soak_seconds=4,
    day_seconds=4,
    starts=1,
    idle_seconds=0,
    max_seconds=75,
)


@dataclass(frozen=True)
class Row:
    """One line of the table, judged by the target of its key."""

    key: str
    title: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    figures: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class Progress:
    """One line on standard error that says where the run is. A run that may take only so long is late when the share of
    its time that is gone is larger than that of its steps."""

    def __init__(self, steps: int, seconds: float | None) -> None:
        self._steps, self._step, self._name, self._seconds = steps, 0, "", seconds
        self._began = time.monotonic()

    def begin(self, name: str) -> None:
        self._step += 1
        self._name = name
        self.at("")

    @property
    def late(self) -> bool:
        gone = time.monotonic() - self._began
        return self._seconds is not None and gone > self._seconds * self._step / self._steps

    def at(self, where: str) -> None:
        elapsed = time.monotonic() - self._began
        line = f"[{self._step}/{self._steps}, {elapsed:.0f} s] {self._name} {where}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line[:110]}", end="", file=sys.stderr, flush=True)
        elif not where:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Generators:
    """Processes of their own for the load, so that it never waits for the one that orchestrates."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))

    def __enter__(self) -> "Generators":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def start(self, load: Callable[..., T], *arguments: Any) -> "Future[T]":
        return self._pool.submit(load, *arguments)

    def run(self, load: Callable[..., T], *arguments: Any) -> T:
        return self.start(load, *arguments).result()

    def together(self, load: Callable[..., T], each: Sequence[tuple[Any, ...]]) -> list[T]:
        return [waiting.result() for waiting in [self.start(load, *arguments) for arguments in each]]


def interleaved(ways: Mapping[str, Callable[[], T]], rounds: int, progress: Progress) -> dict[str, list[T]]:
    """The ways in turn, every other round backwards, after one that does not count. A late run takes a single one."""
    taken: dict[str, list[T]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        if number > 1 and progress.late:
            break
        for name in reversed(list(ways)) if number % 2 else ways:
            progress.at(f"round {number} of {rounds}, {name}" if number else f"warming up, {name}")
            measured = ways[name]()
            if number:
                taken[name].append(measured)
    return taken


def ratios(upper: Sequence[float], lower: Sequence[float]) -> tuple[float, float, float]:
    """The median, the lowest and the highest of the rounds' ratios."""
    found = [a / b for a, b in zip(upper, lower, strict=True)]
    return statistics.median(found), min(found), max(found)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
