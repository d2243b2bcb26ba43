"""A practice as a small model: one appointment, one hold, one patient's diary, one person, one stored result.

Each part of the model has immutable states. What a call shows or changes is a function of a state: a read returns
whether the state explains the answer, a write returns the next state, or None where it could not have succeeded.
"""

from typing import Any, NamedTuple

from frontdesk.features.holds.operations import MAX_HOLDS, MAX_HOLDS_PER_HOUR
from tests.proof.lanes import Expiry, When
from tests.proof.linearize import Read, Write

# One appointment: None before it is booked.


class Appointment(NamedTuple):
    patient: str
    provider: int
    start: int
    procedure: int
    status: str


def becomes(booked: Appointment) -> Write:
    return lambda now: booked if now is None else None


def is_cancelled_by(answered: str | None) -> Write:
    """`told` is the status in the answer, None if the answer was lost."""

    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled" or answered not in ("cancelled", None):
            return None
        return now._replace(status="cancelled")

    return run


def is_confirmed_by(answered: str | None) -> Write:
    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled" or answered not in ("confirmed", None):
            return None
        return now._replace(status="confirmed")

    return run


def moves_to(provider: int, start: int, procedure: int, answered: str | None) -> Write:
    def run(now: Appointment | None) -> Appointment | None:
        if now is None or now.status == "cancelled":
            return None
        if (now.provider, now.start, now.procedure) != (provider, start, procedure):
            now = now._replace(provider=provider, start=start, procedure=procedure, status="booked")
        return now if answered in (now.status, None) else None

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


# One hold: None before it begins. Whether it has expired is not part of the state: see Expiry.


def begins(now: str | None) -> str | None:
    return "held" if now is None else None


def ends(now: str | None) -> str | None:
    return "ended" if now == "held" else None


def is_held(now: str | None) -> bool:
    return now == "held"


def is_over(*, may_have_expired: bool) -> Read:
    return lambda now: now == "ended" or (may_have_expired and now == "held")


# The holds of one client: how many it has begun, and those that it has neither booked nor released.


class Holds(NamedTuple):
    begun: int
    live: frozenset[tuple[str, Expiry]]


def is_allowed(hold: str, expiry: Expiry, when: When) -> Write:
    def run(holds: Holds) -> Holds | None:
        if sum(not each.may_have_come(when) for _, each in holds.live) >= MAX_HOLDS:
            return None
        return Holds(holds.begun + 1, holds.live | {(hold, expiry)})

    return run


def is_given_up(hold: str, expiry: Expiry) -> Write:
    return lambda holds: holds._replace(live=holds.live - {(hold, expiry)})


def are_too_many(when: When) -> Read:
    """Now, or in the last hour, which is not longer ago than the beginning."""
    return lambda holds: (
        holds.begun >= MAX_HOLDS_PER_HOUR or sum(not each.has_come(when) for _, each in holds.live) >= MAX_HOLDS
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
