"""One day of one provider as a model: as many lanes as the provider has capacity, each busy in a set of cells.

A hold takes a lane until it ends. Whether an expired one still counts is decided by the clock that the service read
for a call, which is known to lie between the call's invocation and its answer.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.proof.linearize import Either, Read, Write
from tests.proof.practices import CLOSES, OPENS, Procedure


class When(NamedTuple):
    """The time in which a call was executed, in nanoseconds of the history's clock."""

    invoked: int
    answered: int


class Expiry(NamedTuple):
    """A hold counts for each call that was answered before `earliest`, and for none that was invoked after `latest`."""

    earliest: int
    latest: int

    def has_come(self, when: When) -> bool:
        return when.invoked > self.latest

    def may_have_come(self, when: When) -> bool:
        return when.answered >= self.earliest


class Held(NamedTuple):
    hold: str
    lane: int
    cells: int
    expiry: Expiry


class Day(NamedTuple):
    lanes: tuple[int, ...]  # bit n: an appointment takes the lane in the day's cell n
    taken: frozenset[tuple[str, int, int]]  # appointment, lane, cells
    held: frozenset[Held]


def empty_day(capacity: int) -> Day:
    return Day((0,) * capacity, frozenset(), frozenset())


def cells(first: int, count: int) -> int:
    return ((1 << count) - 1) << first


def without(day: Day, appointment: str | None) -> Day:
    for place in day.taken:
        if place[0] == appointment:
            lanes = list(day.lanes)
            lanes[place[1]] &= ~place[2]
            return Day(tuple(lanes), day.taken - {place}, day.held)
    return day


def least_busy(day: Day, when: When) -> Sequence[int]:
    """The lanes without every hold that may have expired."""
    if not day.held:
        return day.lanes
    return _with(day.lanes, (held for held in day.held if not held.expiry.may_have_come(when)))


def most_busy(day: Day, when: When) -> Sequence[int]:
    """The lanes with every hold that may not have expired."""
    if not day.held:
        return day.lanes
    return _with(day.lanes, (held for held in day.held if not held.expiry.has_come(when)))


def _with(lanes: Sequence[int], holds: Iterable[Held]) -> Sequence[int]:
    busy = list(lanes)
    for held in holds:
        busy[held.lane] |= held.cells
    return busy


def is_free(lanes: Sequence[int], wanted: int) -> bool:
    return any(not lane & wanted for lane in lanes)


def _open_lanes(day: Day, wanted: int, when: When) -> list[int]:
    """The first lane that is free throughout; several if it depends on whether a hold had expired."""
    if not day.held:
        return next(([number] for number, lane in enumerate(day.lanes) if not lane & wanted), [])
    found = []
    for number, (least, most) in enumerate(zip(least_busy(day, when), most_busy(day, when), strict=True)):
        if not least & wanted:
            found.append(number)
        if not most & wanted:
            break
    return found


def occupies(appointment: str, wanted: int, when: When, hold: str | None = None) -> Write:
    """An appointment takes a lane. One that moves gives up its place for it, and a hold ends when it is booked."""

    def run(day: Day) -> Day | Either | None:
        if any(place[0] == appointment and place[2] == wanted for place in day.taken):
            return day
        before = without(day, appointment) if hold is None else _end(day, hold, when)
        if before is None:
            return None
        lanes, taken, held = before
        return Either(
            [
                Day(
                    (*lanes[:lane], lanes[lane] | wanted, *lanes[lane + 1 :]),
                    taken | {(appointment, lane, wanted)},
                    held,
                )
                for lane in _open_lanes(before, wanted, when)
            ]
        )

    return run


def vacates(appointment: str) -> Write:
    return lambda day: without(day, appointment)


def begins_hold(hold: str, wanted: int, expiry: Expiry, when: When) -> Write:
    def run(day: Day) -> Either:
        lanes = _open_lanes(day, wanted, when)
        return Either(day._replace(held=day.held | {Held(hold, lane, wanted, expiry)}) for lane in lanes)

    return run


def ends_hold(hold: str, when: When) -> Write:
    return lambda day: _end(day, hold, when)


def _end(day: Day, hold: str, when: When) -> Day | None:
    for held in day.held:
        if held.hold == hold and not held.expiry.has_come(when):
            return day._replace(held=day.held - {held})
    return None


def shows_free(wanted: int, but: str | None, when: When) -> Read:
    """`but` is the appointment that would be moved, or that this very call booked."""
    if but is None:
        return lambda day: is_free(least_busy(day, when), wanted)
    return lambda day: is_free(least_busy(without(day, but), when), wanted)


def shows_taken(wanted: int, but: str | None, when: When) -> Read:
    if but is None:
        return lambda day: not is_free(most_busy(day, when), wanted)
    return lambda day: not is_free(most_busy(without(day, but), when), wanted)


def shows_held(wanted: int, when: When) -> Read:
    """Only holds take the time."""
    return lambda day: not is_free(most_busy(day, when), wanted) and is_free(day.lanes, wanted)


def open_starts(lanes: Sequence[int], procedure: Procedure) -> int:
    """Bit n: the procedure can start in the day's cell n."""
    found = 0
    for lane in lanes:
        blocked = lane
        for cell in range(1, procedure.busy):
            blocked |= lane >> cell
        found |= ~blocked
    return found & cells(OPENS, CLOSES - OPENS - procedure.cells + 1)


def shows_open(procedure: Procedure, listed: int, within: int, when: When) -> Read:
    """A search: among the starts that its answer covers, exactly the listed ones are open."""

    def run(day: Day) -> bool:
        least = open_starts(least_busy(day, when), procedure) & within
        if not day.held:
            return least == listed
        most = open_starts(most_busy(day, when), procedure) & within
        return most & ~listed == 0 and listed & ~least == 0

    return run
