"""The rules of booking that staff may override, and why a time or a patient breaks each of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from frontdesk.domain.availability import Busy, OpenTimes, first_full, most_taken, room
from frontdesk.domain.directory import Directory, Location, Procedure, Provider, VisitType
from frontdesk.domain.local_time import local_date, zone

Rule = Literal[
    "begun", "notice", "horizon", "closed", "away", "hours", "interval", "full", "patient", "new_patients", "procedure"
]

# What an override has set aside, once it is booked.
RULES: Mapping[Rule, str] = {
    "begun": "begun when it was booked",
    "notice": "shorter notice",
    "horizon": "further ahead than can be booked",
    "closed": "on a day that the location is closed",
    "away": "while the provider is away",
    "hours": "outside hours",
    "interval": "between the usual times",
    "full": "overbooked",
    "patient": "visit type not for this patient",
    "new_patients": "provider takes no new patients",
    "procedure": "visit that the provider does not perform",
}

LATEST = timedelta(minutes=15)  # after the start, for patients who are already here
FURTHEST = timedelta(days=730)  # as far as a practice can set its horizon


@dataclass(frozen=True, slots=True)
class BrokenRule:
    rule: Rule
    text: str  # a sentence for the person who decides


def patient_rules(provider: Provider, visit_type: VisitType, *, seen: bool) -> Iterator[BrokenRule]:
    """Those that a patient whom the practice has seen, or not, breaks."""
    if visit_type.patient_kind == "new" and seen:
        text = "This visit type is for new patients, and the practice has already seen this patient."
        yield BrokenRule("patient", text)
    if visit_type.patient_kind == "existing" and not seen:
        text = "This visit type is for existing patients, and the practice has not seen this patient yet."
        yield BrokenRule("patient", text)
    if not seen and not provider.accepts_new_patients:
        yield BrokenRule("new_patients", "This provider does not accept new patients.")


@dataclass(frozen=True, slots=True)
class ProposedVisit:
    """A visit at any time, and what it is compared with."""

    directory: Directory
    provider: Provider
    location: Location
    visit_type: VisitType
    procedure: Procedure
    start: int  # minutes since 1970
    times: OpenTimes  # of the provider at the location

    def broken_rules(self, busy: Busy, now: float, *, seen: bool) -> list[BrokenRule]:
        """Empty where anybody could book it."""
        return [
            *self._too_soon_or_late(now),
            *self._hours(),
            *self._full(busy),
            *patient_rules(self.provider, self.visit_type, seen=seen),
            *self._procedure(),
        ]

    @property
    def _end(self) -> int:
        return self.start + self.procedure.duration_minutes

    def _too_soon_or_late(self, now: float) -> Iterator[BrokenRule]:
        practice = self.directory.practice
        begin, end = self.times.reach(None, None, now)
        if self.start * 60 <= now:
            yield BrokenRule("begun", f"{self._clock(self.start)} has already begun.")
        elif self.start < begin:
            asked = _span(practice.minimum_notice_minutes)
            yield BrokenRule("notice", f"This is less than the {asked} notice that this practice asks for.")
        if self.start >= end:
            days = practice.booking_horizon_days
            text = f"This is more than {days} {'day' if days == 1 else 'days'} ahead, the furthest that can be booked."
            yield BrokenRule("horizon", text)

    def _hours(self) -> Iterator[BrokenRule]:
        if self.times.covers(self.start, self._end):
            if not self.times.on_grid(self.procedure.duration_minutes, self.start):
                minutes = self.directory.practice.slot_interval_minutes
                text = (
                    f"Visits begin every {minutes} minutes from the start of hours, not at {self._clock(self.start)}."
                )
                yield BrokenRule("interval", text)
            return
        day = local_date(self.start, self.location.time_zone)
        closure = next((each for each in self.location.closures if each.first <= day <= each.last), None)
        if closure is not None:
            yield BrokenRule("closed", f"{self.location.name} is closed on this day{_because(closure.reason)}.")
        elif (off := self.times.time_off(self.start, self._end)) is not None:
            yield BrokenRule("away", f"{self.provider.name} is away at this time{_because(off.reason)}.")
        else:
            yield BrokenRule("hours", f"This is outside the hours of {self.provider.name} at {self.location.name}.")

    def _full(self, busy: Busy) -> Iterator[BrokenRule]:
        capacity, end = self.provider.capacity, self._end + self.procedure.buffer_after_minutes
        if any(first <= self.start <= last for first, last in room(busy, capacity, self.procedure)):
            return
        at = first_full(busy, capacity, self.start, end)
        if at is None:
            text = f"{self.provider.name} has no place that is free for the whole of this visit."
        else:
            taken = most_taken(busy, capacity, at, at + 1)
            text = f"{self.provider.name} has {taken} of {capacity} places taken at {self._clock(at)}."
        yield BrokenRule("full", text)

    def _procedure(self) -> Iterator[BrokenRule]:
        if not self.provider.performs(self.procedure.id):
            yield BrokenRule("procedure", f"{self.provider.name} does not perform {self.procedure.name}.")

    def _clock(self, minute: int) -> str:
        return f"{datetime.fromtimestamp(minute * 60, tz=UTC).astimezone(zone(self.location.time_zone)):%H:%M}"


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _span(minutes: int) -> str:
    """Such as "2 hours'": a possessive, before "notice"."""
    for size, unit in ((24 * 60, "day"), (60, "hour"), (1, "minute")):
        if minutes % size == 0:
            count = minutes // size
            return f"{count} {unit}'s" if count == 1 else f"{count} {unit}s'"
    raise AssertionError(minutes)
