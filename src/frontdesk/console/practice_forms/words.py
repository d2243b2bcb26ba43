"""Describes the changes to a practice: each record that changes, before and after."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar

from frontdesk.console.language import format_number, ngettext, weekdays
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.features import set_features
from frontdesk.console.practice_forms.records import PHONE_MATCHES
from frontdesk.console.times import TimeFormats
from frontdesk.domain.directory import DAYS, Directory, Location, OpeningHours, Practice, Procedure, Provider, VisitType
from frontdesk.texts import N_

_PATIENTS = {"new": N_("new patients"), "existing": N_("existing patients"), "any": N_("all patients")}
_DATES = {"dayFirst": N_("day first"), "monthFirst": N_("month first"), "yearFirst": N_("year first")}
_CONSENT = {
    "create_patient": N_("Consent to create patient"),
    "update_patient": N_("Consent to update patient"),
    "book_appointment": N_("Consent to book appointment"),
    "cancel_appointment": N_("Consent to cancel appointment"),
    "confirm_attendance": N_("Consent to confirm attendance"),
    "reschedule_appointment": N_("Consent to reschedule appointment"),
}
_ADDRESS = ("line1", "line2", "city", "state", "postalCode", "country")
T = TypeVar("T", Location, Provider, VisitType, Procedure)
Facts = dict["str | DayAt", str | tuple[str, ...]]  # by label; of a tuple only the differences are shown


@dataclass(frozen=True, slots=True)
class DayAt:
    """The label of a weekday's hours at a location."""

    day: int  # 0 is Monday
    place: str


@dataclass(frozen=True, slots=True)
class Change:
    label: str
    before: Sequence[str]  # empty: nothing
    after: Sequence[str]


@dataclass(frozen=True, slots=True)
class RecordChange:
    title: str
    outcome: Literal["added", "changed", "removed"]
    changes: Sequence[Change]


Difference = tuple[str | DayAt, Sequence[str], Sequence[str]]  # label, before and after


def changes_of(before: Directory, after: Directory) -> list[RecordChange]:
    """The changes between two directories that contain no inactive records."""
    formats = TimeFormats.of(before.practice)
    found = [_record(before.practice.name, _practice(before.practice), _practice(after.practice))]
    found += _records(before.locations, after.locations, lambda record, _: _location(record, formats), before, after)
    found += _records(
        before.providers, after.providers, lambda record, of: _provider(record, of, formats), before, after
    )
    found += _records(before.visit_types, after.visit_types, lambda record, _: _visit_type(record), before, after)
    for key in before.visit_types.keys() | after.visit_types.keys():
        found += _records(
            _procedures(before, key), _procedures(after, key), lambda record, _: _procedure(record), before, after
        )
    return [each for each in found if each.changes or each.outcome != "changed"]


def _procedures(directory: Directory, visit_type_id: int) -> dict[int, Procedure]:
    visit_type = directory.visit_types.get(visit_type_id)
    return {} if visit_type is None else {each.id: each for each in visit_type.procedures}


def _records(
    stored: Mapping[int, T],
    given: Mapping[int, T],
    facts: Callable[[T, Directory], Facts],
    before: Directory,
    after: Directory,
) -> Iterator[RecordChange]:
    for key in sorted(stored.keys() | given.keys()):
        if key not in given:
            yield RecordChange(stored[key].name, "removed", ())
        elif key not in stored:
            yield _record(given[key].name, {}, facts(given[key], after), "added")
        else:
            yield _record(given[key].name, facts(stored[key], before), facts(given[key], after))


def _record(
    title: str, before: Facts, after: Facts, outcome: Literal["added", "changed", "removed"] = "changed"
) -> RecordChange:
    found: list[Difference] = []
    for label in dict.fromkeys([*before, *after]):
        old, new = _lines(before.get(label, ())), _lines(after.get(label, ()))
        if old != new:
            gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
            found.append((label, gone, come) if gone or come else (label, old, new))  # another order
    return RecordChange(title, outcome, list(_joined_days(found)))


def _lines(fact: str | tuple[str, ...]) -> list[str]:
    return [*fact] if isinstance(fact, tuple) else [fact] if fact else []


def _joined_days(found: Iterable[Difference]) -> Iterator[Change]:
    """Weekdays that follow each other and change alike become one line."""

    def key(difference: Difference) -> object:
        label, before, after = difference
        return (label.place, before, after) if isinstance(label, DayAt) else label

    for _key, group in groupby(found, key):
        (first, before, after), *rest = group
        yield Change(_label(first, rest[-1][0] if rest else first), before, after)


def _label(first: str | DayAt, last: str | DayAt) -> str:
    if not isinstance(first, DayAt) or not isinstance(last, DayAt):
        return str(first)
    days = weekdays("wide")
    if first == last:
        return _("%(day)s at %(place)s", day=days[first.day], place=first.place)
    if last.day == first.day + 1:
        return _("%(first)s and %(last)s at %(place)s", first=days[first.day], last=days[last.day], place=first.place)
    return _("%(first)s to %(last)s at %(place)s", first=days[first.day], last=days[last.day], place=first.place)


def _practice(practice: Practice) -> Facts:
    facts: Facts = {
        _("Name"): practice.name,
        _("Phone"): practice.phone or "",
        _("Time zone"): practice.time_zone,
        _("Minimum notice"): _minutes(practice.minimum_notice_minutes),
        _("Booking horizon"): _days(practice.booking_horizon_days),
        _("Slot interval"): _minutes(practice.slot_interval_minutes),
        _("Patients an hour"): _limit(practice.patients_per_hour),
        _("Patients a day"): _limit(practice.patients_per_day),
        _("Failed matches of a person"): _limit(practice.match_misses),
        _("Phone numbers match"): _(dict(PHONE_MATCHES)[practice.phone_match]),
        _("Agents see"): _("only patients that they know") if practice.known_patients_only else _("all patients"),
        _("Writes of a kind an hour"): _limit(practice.writes_per_hour),
        _("Upcoming appointments of a patient"): _limit(practice.upcoming_per_patient),
        _("Staff may connect assistants"): _yes(practice.assistants),
        _("Times"): practice.time_format,
        _("Dates"): _(_DATES[practice.date_format]),
        _("Sandbox"): _yes(practice.sandbox),
    }
    facts |= {_(_CONSENT[operation]): demand for operation, demand in practice.consent.items()}
    return facts | {
        label: _yes(value) if isinstance(value, bool) else str(value) for label, value in set_features(practice)
    }


def _location(location: Location, formats: TimeFormats) -> Facts:
    address = location.address or {}
    return {
        _("Name"): location.name,
        _("Other names"): location.aliases,
        _("Time zone"): location.time_zone,
        _("Phone"): location.phone or "",
        _("Address"): ", ".join(address[key] for key in _ADDRESS if key in address),
        _("Closed"): tuple(
            f"{formats.block_span(row.first, row.last)}{f' ({row.reason})' if row.reason else ''}"
            for row in location.closures
        ),
    }


def _provider(provider: Provider, directory: Directory, formats: TimeFormats) -> Facts:
    offered = {each.id: each.name for visit_type in directory.visit_types.values() for each in visit_type.procedures}
    facts: Facts = {
        _("Name"): provider.name,
        _("Other names"): provider.aliases,
        _("Specialty"): provider.specialty or "",
        _("Accepts new patients"): _yes(provider.accepts_new_patients),
        _("Patients at the same time"): str(provider.capacity),
        _("Procedures"): _("all")
        if provider.procedure_ids is None
        else tuple(offered.get(key, str(key)) for key in sorted(provider.procedure_ids)),
    }
    for location_id in provider.location_ids:
        for day in range(len(DAYS)):
            facts[DayAt(day, _place(directory, location_id))] = _open(provider.hours, location_id, day, formats)
    facts[_("Hours for a period")] = tuple(
        f"{_place(directory, row.location_id)}, {', '.join(weekdays('wide')[day] for day in sorted(row.days))}, "
        f"{formats.opening(row.opens, row.closes)}, {_period(row, formats)}"
        for row in provider.hours
        if not _is_weekly(row)
    )
    facts[_("Away")] = tuple(
        f"{formats.block_span(row.starts, row.ends)}{f' ({row.reason})' if row.reason else ''}"
        for row in provider.time_off
    )
    return facts


def _place(directory: Directory, location_id: int) -> str:
    name = directory.locations[location_id].name
    is_unique = sum(location.name == name for location in directory.locations.values()) == 1
    return name if is_unique else f"{name} ({location_id})"


def weekly_summary(
    provider: Provider, locations: Mapping[int, Location], formats: TimeFormats
) -> list[tuple[Location, list[tuple[str, str]]]]:
    """The weekly hours of a provider at each location: days that follow each other with the same times together."""
    found = []
    for location_id in provider.location_ids:
        times = [
            (day, _open(provider.hours, location_id, number, formats))
            for number, day in enumerate(weekdays("abbreviated"))
        ]
        lines = []
        for span, group in groupby(times, lambda each: each[1]):
            days = [day for day, _span in group]
            if span:
                lines.append((days[0] if len(days) == 1 else f"{days[0]}–{days[-1]}", span))
        found.append((locations[location_id], lines))
    return found


def _open(hours: Iterable[OpeningHours], location_id: int, day: int, formats: TimeFormats) -> str:
    rows = {
        (row.opens, row.closes)
        for row in hours
        if row.location_id == location_id and day in row.days and _is_weekly(row)
    }
    return ", ".join(formats.opening(*span) for span in sorted(rows))


def _is_weekly(row: OpeningHours) -> bool:
    return row.effective_from is None and row.effective_to is None


def _period(row: OpeningHours, formats: TimeFormats) -> str:
    if row.effective_from == row.effective_to and row.effective_from is not None:
        return _("on %(day)s", day=formats.dated(row.effective_from))
    first = None if row.effective_from is None else formats.dated(row.effective_from)
    last = None if row.effective_to is None else formats.dated(row.effective_to)
    if first is not None and last is not None:
        return _("from %(first)s until %(last)s", first=first, last=last)
    return _("until %(last)s", last=last) if first is None else _("from %(first)s", first=first)


def _visit_type(visit_type: VisitType) -> Facts:
    return {
        _("Name"): visit_type.name,
        _("Other names"): visit_type.aliases,
        _("Description"): visit_type.description or "",
        _("Booked by"): _(_PATIENTS[visit_type.patient_kind]),
    }


def _procedure(procedure: Procedure) -> Facts:
    return {
        _("Name"): procedure.name,
        _("Other names"): procedure.aliases,
        _("Description"): procedure.description or "",
        _("Duration"): _minutes(procedure.duration_minutes),
        _("Free time after it"): _minutes(procedure.buffer_after_minutes),
    }


def _minutes(number: int) -> str:
    return ngettext("%(number)s minute", "%(number)s minutes", number, number=format_number(number))


def _days(number: int) -> str:
    return ngettext("%(number)s day", "%(number)s days", number, number=format_number(number))


def _limit(number: int) -> str:
    return _("unlimited") if number == 0 else format_number(number)


def _yes(value: bool) -> str:
    return _("yes") if value else _("no")
