"""A practice as a small model: one provider's day, one appointment, one patient's diary, one person, one stored result.

Each part of the model has immutable states. What a call shows or changes is a function of a state: a read returns
whether the state explains the answer, a write returns the next state, or None where it could not have succeeded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.proof.practices import CLOSES, OPENS, Procedure

Read = Callable[[Any], bool]
Write = Callable[[Any], Any]


# One day of one provider: as many lanes as the provider has capacity, each a set of busy cells.


class Day(NamedTuple):
    lanes: tuple[int, ...]  # bit n: the lane is busy in the day's cell n
    taken: frozenset[tuple[str, int, int]]  # appointment, lane, cells


def empty_day(capacity: int) -> Day:
    return Day((0,) * capacity, frozenset())


def cells(first: int, count: int) -> int:
    return ((1 << count) - 1) << first


def without(day: Day, appointment: str | None) -> Day:
    for place in day.taken:
        if place[0] == appointment:
            lanes = list(day.lanes)
            lanes[place[1]] &= ~place[2]
            return Day(tuple(lanes), day.taken - {place})
    return day


def is_free(day: Day, wanted: int) -> bool:
    return any(not lane & wanted for lane in day.lanes)


def occupies(appointment: str, wanted: int) -> Write:
    """Booking takes the first lane that is free throughout; an appointment that moves gives up its place for it."""

    def run(day: Day) -> Day | None:
        if any(place[0] == appointment and place[2] == wanted for place in day.taken):
            return day
        day = without(day, appointment)
        for number, lane in enumerate(day.lanes):
            if not lane & wanted:
                lanes = (*day.lanes[:number], lane | wanted, *day.lanes[number + 1 :])
                return Day(lanes, day.taken | {(appointment, number, wanted)})
        return None

    return run


def vacates(appointment: str) -> Write:
    return lambda day: without(day, appointment)


def shows_free(wanted: int, but: str | None) -> Read:
    """`but` is the appointment that would be moved, or that this very call booked."""
    if but is None:
        return lambda day: is_free(day, wanted)
    return lambda day: is_free(without(day, but), wanted)


def shows_taken(wanted: int, but: str | None) -> Read:
    if but is None:
        return lambda day: not is_free(day, wanted)
    return lambda day: not is_free(without(day, but), wanted)


def open_starts(day: Day, procedure: Procedure) -> int:
    """Bit n: the procedure can start in the day's cell n."""
    found = 0
    for lane in day.lanes:
        blocked = lane
        for cell in range(1, procedure.busy):
            blocked |= lane >> cell
        found |= ~blocked
    return found & cells(OPENS, CLOSES - OPENS - procedure.cells + 1)


def shows_open(procedure: Procedure, listed: int, within: int) -> Read:
    """A search: among the starts that its answer covers, exactly the listed ones are open."""
    return lambda day: open_starts(day, procedure) & within == listed


# One appointment: None before it is booked.


class Appointment(NamedTuple):
    patient: str
    provider: int
    start: int
    procedure: int
    status: str


def becomes(booked: Appointment) -> Write:
    return lambda now: booked if now is None else None


def is_cancelled_by(told: str | None) -> Write:
    """`told` is the status in the answer, None if the answer was lost."""

    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled" or told not in ("cancelled", None):
            return None
        return now._replace(status="cancelled")

    return run


def is_confirmed_by(told: str | None) -> Write:
    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled" or told not in ("confirmed", None):
            return None
        return now._replace(status="confirmed")

    return run


def moves_to(provider: int, start: int, procedure: int, told: str | None) -> Write:
    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled":
            return None
        if (now.provider, now.start, now.procedure) != (provider, start, procedure):
            now = now._replace(provider=provider, start=start, procedure=procedure, status="booked")
        return now if told in (now.status, None) else None

    return run


def is_cancelled(now: Appointment | None) -> bool:
    return now is not None and now.status == "cancelled"


def is_live(now: Appointment | None) -> bool:
    return now is not None and now.status != "cancelled"


def is_exactly(shown: Appointment) -> Read:
    return lambda now: now == shown


def is_elsewhere(provider: int | None, day: int | None, cells_of_day: int) -> Read:
    """A list did not show it: it did not exist, or was not at this provider on this day."""
    return lambda now: (
        now is None or (provider is not None and (now.provider, now.start // cells_of_day) != (provider, day))
    )


# The live appointments of one patient: appointment, first cell, end.

Diary = frozenset[tuple[str, int, int]]


def _overlaps(diary: Diary, first: int, end: int, but: str | None) -> bool:
    return any(a != but and begin < end and first < until for a, begin, until in diary)


def attends(appointment: str, first: int, end: int) -> Write:
    def run(diary: Diary) -> Diary | None:
        if _overlaps(diary, first, end, appointment):
            return None
        return frozenset(entry for entry in diary if entry[0] != appointment) | {(appointment, first, end)}

    return run


def no_longer_attends(appointment: str) -> Write:
    return lambda diary: frozenset(entry for entry in diary if entry[0] != appointment)


def has_time(first: int, end: int, but: str | None) -> Read:
    return lambda diary: not _overlaps(diary, first, end, but)


def has_no_time(first: int, end: int, but: str | None) -> Read:
    return lambda diary: _overlaps(diary, first, end, but)


# Everybody of one last name: their records, which differ in first name or phone number.


class Record(NamedTuple):
    patient: str
    first: str
    phone: str
    email: str | None


People = frozenset[Record]


def _same(people: People, first: str, phone: str) -> list[Record]:
    return [person for person in people if (person.first, person.phone) == (first, phone)]


def is_created(created: Record) -> Write:
    return lambda people: None if _same(people, created.first, created.phone) else people | {created}


def is_updated(patient: str, changes: dict[str, str | None]) -> Write:
    def run(people: People) -> People | None:
        for person in people:
            if person.patient == patient:
                return people - {person} | {person._replace(**changes)}  # type: ignore[arg-type]
        return None

    return run


def matches(first: str, phone: str, found: frozenset[str]) -> Read:
    return lambda people: {person.patient for person in _same(people, first, phone)} == found


def is_on_file(shown: Record) -> Read:
    return lambda people: shown in people


# One confirmation token or idempotency key: None until its write has executed, then the stored result.


def answers(result: Any) -> Write:
    return lambda stored: result if stored is None or stored == result else None


def is_unused(stored: Any) -> bool:
    return stored is None


def never(_state: Any) -> bool:
    return False
