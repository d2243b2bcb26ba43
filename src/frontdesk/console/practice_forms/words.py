"""What a change does to a practice, in plain words: each record that it touches, now and afterwards."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from frontdesk.console.practice_forms.hours import DAYS
from frontdesk.console.times import TimeFormats
from frontdesk.domain.directory import Directory, Location, OpeningHours, Practice, Procedure, Provider, VisitType

_PATIENTS = {"new": "new patients", "existing": "existing patients", "any": "all patients"}
_DATES = {"dayFirst": "day first", "monthFirst": "month first", "yearFirst": "year first"}
_ADDRESS = ("line1", "line2", "city", "state", "postalCode", "country")
Facts = dict[str, str | tuple[str, ...]]  # by label; a tuple is a list of which only the differences are shown


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


def changes_of(before: Directory, after: Directory) -> list[RecordChange]:
    """Both without inactive records."""
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
    stored: Mapping[int, Any],
    given: Mapping[int, Any],
    facts: Callable[[Any, Directory], Facts],
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
    found = []
    for label in dict.fromkeys([*before, *after]):
        old, new = _lines(before.get(label, ())), _lines(after.get(label, ()))
        if old != new:
            gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
            found.append(Change(label, gone, come) if gone or come else Change(label, old, new))  # another order
    return RecordChange(title, outcome, list(_joined_days(found)))


def _lines(fact: str | tuple[str, ...]) -> list[str]:
    return [*fact] if isinstance(fact, tuple) else [fact] if fact else []


def _joined_days(changes: Iterable[Change]) -> Iterator[Change]:
    """Weekdays that follow each other and change alike become one line."""
    days = [*DAYS.values()]

    def key(change: Change) -> Any:
        day, _, place = change.label.partition(" at ")
        return (place, change.before, change.after) if place and day in days else change.label

    for _, group in groupby(changes, key):
        first, *rest = group
        if not rest:
            yield first
            continue
        last = rest[-1].label.partition(" at ")[0]
        day, _, place = first.label.partition(" at ")
        yield Change(f"{day} {'and' if len(rest) == 1 else 'to'} {last} at {place}", first.before, first.after)


def _practice(practice: Practice) -> Facts:
    facts: Facts = {
        "Name": practice.name,
        "Phone": practice.phone or "",
        "Time zone": practice.time_zone,
        "Minimum notice": _minutes(practice.minimum_notice_minutes),
        "Booking horizon": _count(practice.booking_horizon_days, "day"),
        "Slot interval": _minutes(practice.slot_interval_minutes),
        "Patients an hour": _limit(practice.patients_per_hour),
        "Patients a day": _limit(practice.patients_per_day),
        "Failed matches of a person": _limit(practice.match_misses),
        "Agents see": "only patients that they know" if practice.known_patients_only else "all patients",
        "Staff may connect assistants": _yes(practice.assistants),
        "Times": practice.time_format,
        "Dates": _DATES[practice.date_format],
        "Sandbox": _yes(practice.sandbox),
    }
    consent = {f"Consent to {operation.replace('_', ' ')}": demand for operation, demand in practice.consent.items()}
    return facts | consent


def _location(location: Location, formats: TimeFormats) -> Facts:
    address = location.address or {}
    return {
        "Name": location.name,
        "Other names": location.aliases,
        "Time zone": location.time_zone,
        "Phone": location.phone or "",
        "Address": ", ".join(address[key] for key in _ADDRESS if key in address),
        "Closed": tuple(
            f"{formats.block_span(row.first, row.last)}{f' ({row.reason})' if row.reason else ''}"
            for row in location.closures
        ),
    }


def _provider(provider: Provider, directory: Directory, formats: TimeFormats) -> Facts:
    offered = {each.id: each.name for visit_type in directory.visit_types.values() for each in visit_type.procedures}
    facts: Facts = {
        "Name": provider.name,
        "Other names": provider.aliases,
        "Specialty": provider.specialty or "",
        "Accepts new patients": _yes(provider.accepts_new_patients),
        "Patients at the same time": str(provider.capacity),
        "Procedures": "all"
        if provider.procedure_ids is None
        else tuple(offered.get(key, str(key)) for key in sorted(provider.procedure_ids)),
    }
    for location_id in provider.location_ids:
        for number, day in enumerate(DAYS.values()):
            facts[f"{day} at {_place(directory, location_id)}"] = _open(provider.hours, location_id, number, formats)
    facts["Hours for a period"] = tuple(
        f"{_place(directory, row.location_id)}, {', '.join([*DAYS.values()][day] for day in sorted(row.days))}, "
        f"{formats.opening(row.opens, row.closes)}, {_period(row, formats)}"
        for row in provider.hours
        if not _is_weekly(row)
    )
    facts["Away"] = tuple(
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
            (day[:3], _open(provider.hours, location_id, number, formats)) for number, day in enumerate(DAYS.values())
        ]
        lines = []
        for span, group in groupby(times, lambda each: each[1]):
            days = [day for day, _ in group]
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
        return f"on {formats.dated(row.effective_from)}"
    first = "" if row.effective_from is None else f"from {formats.dated(row.effective_from)}"
    last = "" if row.effective_to is None else f"until {formats.dated(row.effective_to)}"
    return f"{first} {last}".strip()


def _visit_type(visit_type: VisitType) -> Facts:
    return {
        "Name": visit_type.name,
        "Other names": visit_type.aliases,
        "Description": visit_type.description or "",
        "Booked by": _PATIENTS[visit_type.patient_kind],
    }


def _procedure(procedure: Procedure) -> Facts:
    return {
        "Name": procedure.name,
        "Other names": procedure.aliases,
        "Description": procedure.description or "",
        "Duration": _minutes(procedure.duration_minutes),
        "Free time after it": _minutes(procedure.buffer_after_minutes),
    }


def _minutes(number: int) -> str:
    return _count(number, "minute")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _limit(number: int) -> str:
    return "unlimited" if number == 0 else f"{number:,}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
