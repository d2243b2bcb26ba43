"""The rules of booking that staff may override, and why a time or a patient breaks each of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from frontdesk.domain.availability import Busy, OpenTimes, first_full, free_gaps, max_taken
from frontdesk.domain.directory import Directory, Location, Procedure, Provider, VisitType
from frontdesk.domain.local_time import clock_text, instant_at, local_date, zone
from frontdesk.texts import N_, Text

Rule = Literal[
    "begun", "notice", "horizon", "closed", "away", "hours", "interval", "full", "patient", "new_patients", "procedure"
]

# What an override has set aside, once it is booked.
RULES: Mapping[Rule, str] = {
    "begun": N_("begun when it was booked"),
    "notice": N_("shorter notice"),
    "horizon": N_("further ahead than can be booked"),
    "closed": N_("on a day that the location is closed"),
    "away": N_("while the provider is away"),
    "hours": N_("outside hours"),
    "interval": N_("between the usual times"),
    "full": N_("overbooked"),
    "patient": N_("visit type not for this patient"),
    "new_patients": N_("provider takes no new patients"),
    "procedure": N_("visit that the provider does not perform"),
}

MAX_AFTER_START = timedelta(minutes=15)  # after the start, for patients who are already here
MAX_AHEAD = timedelta(days=730)  # as far as a practice can set its horizon


@dataclass(frozen=True, slots=True)
class BrokenRule:
    rule: Rule
    text: str | Text  # for the person who decides


def why_closed(directory: Directory, provider: Provider, location: Location, start: int) -> BrokenRule | None:
    """Why nothing can begin at a minute, whatever the visit; None if the provider is in."""
    times = OpenTimes(directory.practice, provider, location)
    return None if times.covers(start, start + 1) else _not_open(provider, location, times, start, start + 1)


def patient_rules(provider: Provider, visit_type: VisitType, *, seen: bool) -> Iterator[BrokenRule]:
    """The rules that this patient would break. `seen`: whether the practice has seen the patient."""
    if visit_type.patient_kind == "new" and seen:
        yield BrokenRule(
            "patient", "This visit type is for new patients, and the practice has already seen this patient."
        )
    if visit_type.patient_kind == "existing" and not seen:
        yield BrokenRule(
            "patient", "This visit type is for existing patients, and the practice has not seen this patient yet."
        )
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
        """The rules that the booking would break; none if any client could book it."""
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
            yield BrokenRule("begun", Text("%(time)s has already begun.", time=self._clock(self.start)))
        elif self.start < begin:
            yield _short_notice(practice.minimum_notice_minutes)
        if self.start >= end:
            yield _far_ahead(practice.booking_horizon_days)

    def _hours(self) -> Iterator[BrokenRule]:
        if self.times.covers(self.start, self._end):
            if not self.times.on_grid(self.procedure.duration_minutes, self.start):
                yield BrokenRule(
                    "interval",
                    Text(
                        "Visits begin every %(minutes)s minutes from the start of the hours, not at %(time)s.",
                        minutes=self.directory.practice.slot_interval_minutes,
                        time=self._clock(self.start),
                    ),
                )
            return
        yield _not_open(self.provider, self.location, self.times, self.start, self._end)

    def _full(self, busy: Busy) -> Iterator[BrokenRule]:
        capacity, end = self.provider.capacity, self._end + self.procedure.buffer_after_minutes
        if any(first <= self.start <= last for first, last in free_gaps(busy, capacity, self.procedure)):
            return
        at = first_full(busy, capacity, self.start, end)
        if at is None:
            yield BrokenRule(
                "full",
                Text(
                    "%(provider)s has no place that is free for the whole of this visit.", provider=self.provider.name
                ),
            )
        else:
            taken = max_taken(busy, capacity, at, at + 1)
            yield BrokenRule(
                "full",
                Text(
                    "%(provider)s has %(taken)s of %(places)s places taken at %(time)s.",
                    provider=self.provider.name,
                    taken=taken,
                    places=capacity,
                    time=self._clock(at),
                ),
            )

    def _procedure(self) -> Iterator[BrokenRule]:
        if not self.provider.performs(self.procedure.id):
            yield BrokenRule(
                "procedure",
                Text(
                    "%(provider)s does not perform %(procedure)s.",
                    provider=self.provider.name,
                    procedure=self.procedure.name,
                ),
            )

    def _clock(self, minute: int) -> str:
        local = instant_at(minute).astimezone(zone(self.location.time_zone))
        return clock_text(local, twelve_hours=self.directory.practice.time_format == "12h")


def _not_open(provider: Provider, location: Location, times: OpenTimes, start: int, end: int) -> BrokenRule:
    day = local_date(start, location.time_zone)
    closure = next((each for each in location.closures if each.first <= day <= each.last), None)
    if closure is not None:
        return BrokenRule(
            "closed",
            Text(
                "%(location)s is closed on this day%(because)s.",
                location=location.name,
                because=_because(closure.reason),
            ),
        )
    if (off := times.time_off(start, end)) is not None:
        return BrokenRule(
            "away",
            Text("%(provider)s is away at this time%(because)s.", provider=provider.name, because=_because(off.reason)),
        )
    return BrokenRule(
        "hours",
        Text(
            "This is outside the hours of %(provider)s at %(location)s.", provider=provider.name, location=location.name
        ),
    )


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _short_notice(minutes: int) -> BrokenRule:
    days, hours = minutes // (24 * 60), minutes // 60
    if minutes == 24 * 60:
        return BrokenRule("notice", "This is less than the 1 day's notice that this practice asks for.")
    if minutes % (24 * 60) == 0:
        return BrokenRule(
            "notice", Text("This is less than the %(count)s days' notice that this practice asks for.", count=days)
        )
    if minutes == 60:
        return BrokenRule("notice", "This is less than the 1 hour's notice that this practice asks for.")
    if minutes % 60 == 0:
        return BrokenRule(
            "notice", Text("This is less than the %(count)s hours' notice that this practice asks for.", count=hours)
        )
    if minutes == 1:
        return BrokenRule("notice", "This is less than the 1 minute's notice that this practice asks for.")
    return BrokenRule(
        "notice", Text("This is less than the %(count)s minutes' notice that this practice asks for.", count=minutes)
    )


def _far_ahead(days: int) -> BrokenRule:
    if days == 1:
        return BrokenRule("horizon", "This is more than 1 day ahead, the furthest that can be booked.")
    return BrokenRule(
        "horizon", Text("This is more than %(count)s days ahead, the furthest that can be booked.", count=days)
    )
