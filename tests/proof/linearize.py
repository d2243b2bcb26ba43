"""Decides whether the calls on one part of the model can have happened one after the other, each while it ran.

Reads are placed as soon as a state explains them: they change nothing, so no solution is lost. Writes are placed when
their answer arrives; only where the order of the answers explains nothing are all other orders tried.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.proof.recorder import NEVER, Op

MAX_CONFIGURATIONS = 200_000

Read = Callable[[Any], bool]
Write = Callable[[Any], Any]


class Either(tuple[Any, ...]):
    """The states to which a write may have led, where one state does not say which."""


class Step(NamedTuple):
    """What one call did to, or showed of, one part. A write with `answered` NEVER may also not have happened."""

    invoked: int
    answered: int
    is_write: bool
    run: Callable[[Any], Any]
    op: Op | None


def impossible(steps: Sequence[Step], state: Any) -> Step | None:
    """The first step that no order explains, None if there is an order."""
    events = [(step.invoked, 0, number) for number, step in enumerate(steps)]
    events += [(step.answered, 1, number) for number, step in enumerate(steps) if step.answered != NEVER]
    events.sort()
    if _in_order_of_answers(steps, events, state):
        return None
    return _in_any_order(steps, events, state)


def _in_order_of_answers(steps: Sequence[Step], events: Sequence[tuple[int, int, int]], state: Any) -> bool:
    reads: dict[int, Step] = {}  # not explained yet
    writes: dict[int, Step] = {}  # not placed yet
    for _, is_answer, number in events:
        step = steps[number]
        if not is_answer:
            if step.is_write:
                writes[number] = step
            elif not step.run(state):
                reads[number] = step
            continue
        if step.is_write:
            if writes.pop(number, None) is None:
                continue
            state = step.run(state)
            if type(state) is Either:
                state = state[0] if state else None
            if state is None:
                return False
        else:
            if number not in reads:
                continue
            for other, write in writes.items():  # one write that has not been answered may have happened already
                explaining = next(filter(step.run, _after(write, state)), None)
                if explaining is not None:
                    state = explaining
                    del writes[other]
                    break
            else:
                return False
        if reads:
            reads = {at: read for at, read in reads.items() if not read.run(state)}
    return True


def _in_any_order(steps: Sequence[Step], events: Sequence[tuple[int, int, int]], state: Any) -> Step | None:
    configurations = {(state, frozenset[int]())}  # a state, and the calls under way that are not placed
    for _, is_answer, number in events:
        step = steps[number]
        if not is_answer:
            configurations = {
                (state, waiting if not step.is_write and step.run(state) else waiting | {number})
                for state, waiting in configurations
            }
            continue
        seen, left, found = set(configurations), list(configurations), set()
        while left:
            state, waiting = left.pop()
            if number not in waiting:
                found.add((state, waiting))
                continue
            for other in waiting:
                if not steps[other].is_write:
                    continue
                for after in _after(steps[other], state):
                    rest = frozenset(
                        at for at in waiting if at != other and (steps[at].is_write or not steps[at].run(after))
                    )
                    if (after, rest) not in seen:
                        seen.add((after, rest))
                        left.append((after, rest))
            if len(seen) > MAX_CONFIGURATIONS:
                raise RuntimeError("too many calls at the same time on one part to decide")
        if not found:
            return step
        configurations = found
    return None


def _after(write: Step, state: Any) -> Sequence[Any]:
    after = write.run(state)
    if after is None:
        return ()
    return after if type(after) is Either else (after,)
