"""Coverage-guided fuzzing of every parser that strangers reach; prints inputs, corpus and lines per parser.

Parsers take turns until the number of inputs, or the seconds, are used up. An input that raises an error or takes more
than a second of CPU time is printed and fails the run; it then belongs into `FOUND` in test_fuzz.py.
"""

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import frontdesk
from tests.proof.fuzz.mutation import mutated
from tests.proof.fuzz.targets import TARGETS, Target

HANG_SECONDS = 1.0
MAX_CORPUS_INPUTS = 300  # inputs of a corpus
_TRACED = 40  # one input in so many is traced for the lines that it reaches
_TURN_SECONDS = 0.25
_SOURCES = str(Path(frontdesk.__file__).parent)


class Hang(BaseException):  # parsers must not catch it
    """An input took longer than a second."""


@dataclass
class Fuzzer:
    name: str
    target: Target
    chance: Random
    inputs: int = 0
    lines: set[tuple[CodeType, int]] = field(default_factory=set)
    corpus: list[bytes] = field(default_factory=list)
    failures: list[tuple[bytes, str]] = field(default_factory=list)
    _answers: set[object] = field(default_factory=set)

    def begin(self) -> None:
        for seed in self.target.seeds:
            self._try(seed, traced=True)
        self.corpus = [*self.target.seeds]

    def turn(self, limit: int) -> None:
        """Many inputs, for a moment."""
        ends = time.monotonic() + _TURN_SECONDS
        while limit > 0 and time.monotonic() < ends:
            for _ in range(min(limit, 50)):
                if self.failures:
                    return
                data = mutated(self.chance, self.corpus, self.target.words)
                if self._try(data, traced=self.inputs % _TRACED == 0) and len(self.corpus) < MAX_CORPUS_INPUTS:
                    self.corpus.append(data)
                limit -= 1

    def _try(self, data: bytes, *, traced: bool) -> bool:
        """Whether it taught something new: a line that was not reached before, or another answer."""
        self.inputs += 1
        known = len(self.lines)
        try:
            with _in_time():
                if traced:
                    with _tracing(self.lines):
                        answer = self.target.run(data)
                else:
                    answer = self.target.run(data)
        except (Exception, Hang) as error:
            self.failures.append((data, f"{type(error).__name__}: {error}"))
            return False
        new = answer not in self._answers
        self._answers.add(answer)
        return new or len(self.lines) > known


@contextmanager
def _in_time() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def _tracing(lines: set[tuple[CodeType, int]]) -> Iterator[None]:
    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_SOURCES):
            return None
        if event == "line":
            lines.add((frame.f_code, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def fuzz(names: list[str], inputs: int, seconds: float, seed: int) -> list[Fuzzer]:
    signal.signal(signal.SIGVTALRM, _hung)
    fuzzers = [Fuzzer(name, TARGETS[name], Random(f"{seed} {name}")) for name in names]
    for each in fuzzers:
        each.begin()
    with suppress(KeyboardInterrupt):  # shows what was done
        _take_turns(fuzzers, inputs, time.monotonic() + seconds)
    return fuzzers


def _take_turns(fuzzers: list[Fuzzer], inputs: int, ends: float) -> None:
    while (left := inputs - sum(each.inputs for each in fuzzers)) > 0 and time.monotonic() < ends:
        for each in fuzzers:
            each.turn(max(1, left // len(fuzzers)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", nargs="*", default=list(TARGETS))
    given = parser.parse_args()
    began = time.monotonic()
    fuzzers = fuzz(given.only, given.inputs, given.seconds, given.seed)
    print(f"{'parser':<20}{'inputs':>12}{'corpus':>8}{'lines':>8}{'errors':>8}")
    for each in fuzzers:
        print(f"{each.name:<20}{each.inputs:>12,}{len(each.corpus):>8}{len(each.lines):>8}{len(each.failures):>8}")
    failures = [(each.name, *failure) for each in fuzzers for failure in each.failures]
    total = sum(each.inputs for each in fuzzers)
    print(f"{total:,} inputs in {time.monotonic() - began:.0f} s with seed {given.seed}: {len(failures)} errors")
    for name, data, error in failures:
        print(f"{name}: {error[:300]}\n    {data!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
