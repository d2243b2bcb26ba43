"""A provider's hours and absences as rows of a form: weekly by location and weekday, for a period, and absences."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any

from frontdesk.console.forms import Form, read_id
from frontdesk.console.language import gettext as _
from frontdesk.console.language import weekdays
from frontdesk.domain.directory import DAYS, Location, OpeningHours, Provider, TimeOff
from frontdesk.texts import N_

_MIN_TIMES = 2  # a day: one before and one after a break
_MAX_TIMES = 10
_MAX_ROWS = 100

Fields = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the practice file, and the control that each key was read from, with its label."""

    values: dict[str, Any]
    controls: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Times:
    """One from and to on a weekday."""

    name: str  # the controls are name.from and name.to
    label: str
    opens: str
    closes: str


@dataclass(frozen=True, slots=True)
class Week:
    """The weekly hours at a location."""

    location: Location
    days: Sequence[tuple[str, Sequence[Times]]]  # weekday and its times


def day_names() -> dict[str, str]:
    return dict(zip(DAYS, weekdays("wide"), strict=True))


# What the form shows before anybody types


def as_typed(provider: Provider) -> Fields:
    typed: Fields = {"place": [str(key) for key in provider.location_ids]}
    times: dict[tuple[int, int], list[OpeningHours]] = defaultdict(list)
    periods = []
    for hours in provider.hours:
        if hours.effective_from is not None or hours.effective_to is not None:
            periods.append(hours)
            continue
        for day in hours.days:
            times[hours.location_id, day].append(hours)
    for (location_id, day), rows in times.items():
        for number, hours in enumerate(sorted(rows, key=lambda row: row.opens)):
            name = _time_name(location_id, day, number)
            typed[f"{name}.from"], typed[f"{name}.to"] = [_clock(hours.opens)], [_clock(hours.closes)]
    for number, hours in enumerate(periods):
        typed |= _period_typed(f"period.{number}", hours)
    for number, off in enumerate(row for row in provider.time_off if row.by is None):
        typed |= _absence_typed(f"away.{number}", off)
    return typed


def _time_name(location_id: int, day: int, number: int) -> str:
    return f"hours.{location_id}.{DAYS[day]}.{number}"


def _clock(minutes: int) -> str:
    """Midnight at the end of a day is 00:00, because browsers have no 24:00."""
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _period_typed(name: str, hours: OpeningHours) -> Fields:
    return {
        f"{name}.location": [str(hours.location_id)],
        f"{name}.days": [DAYS[day] for day in sorted(hours.days)],
        f"{name}.from": [_clock(hours.opens)],
        f"{name}.to": [_clock(hours.closes)],
        f"{name}.first": [_text(hours.effective_from)],
        f"{name}.last": [_text(hours.effective_to)],
    }


def _text(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _absence_typed(name: str, off: TimeOff) -> Fields:
    """Without a time, an absence begins or ends with the day."""
    midnight = time()
    last = off.ends.date() - timedelta(days=1) if off.ends.time() == midnight else off.ends.date()
    return {
        f"{name}.from": [off.starts.date().isoformat()],
        f"{name}.from_time": ["" if off.starts.time() == midnight else f"{off.starts:%H:%M}"],
        f"{name}.to": [last.isoformat()],
        f"{name}.to_time": ["" if off.ends.time() == midnight else f"{off.ends:%H:%M}"],
        f"{name}.reason": [off.reason or ""],
    }


# What the form shows


def weeks(form: Form, locations: Mapping[int, Location]) -> list[Week]:
    """The grid of each location that the form lists, or that was added to it with `more`."""
    added = form.get("more")
    places = dict.fromkeys([*form.all("place"), *([form.get("new_place")] if added == "place" else ())])
    found = []
    for key in places:
        number = read_id(key)
        location = None if number is None else locations.get(number)
        if location is None:
            continue
        names = [f"hours.{location.id}.{day}" for day in DAYS]
        count = max(_MIN_TIMES, *(_count(form, name, "from", "to") for name in names))
        count = min(count + (added == key), _MAX_TIMES)
        found.append(
            Week(
                location,
                [
                    (
                        label,
                        [_times(form, f"hours.{location.id}.{day}.{number}", label, number) for number in range(count)],
                    )
                    for day, label in day_names().items()
                ],
            )
        )
    return found


def _times(form: Form, name: str, day: str, number: int) -> Times:
    return Times(name, _(_TIMES[number], day=day), form.get(f"{name}.from"), form.get(f"{name}.to"))


_TIMES = (
    N_("%(day)s, first time"), N_("%(day)s, second time"), N_("%(day)s, third time"), N_("%(day)s, fourth time"),
    N_("%(day)s, fifth time"), N_("%(day)s, sixth time"), N_("%(day)s, seventh time"), N_("%(day)s, eighth time"),
    N_("%(day)s, ninth time"), N_("%(day)s, tenth time"),
)  # fmt: skip


def _count(form: Form, name: str, *keys: str) -> int:
    """How many rows the form has, without empty ones at the end."""
    filled = [number for number in range(_MAX_ROWS) if any(form.get(f"{name}.{number}.{key}") for key in keys)]
    return filled[-1] + 1 if filled else 0


def period_rows(form: Form) -> list[str]:
    """The names of the rows, with an empty one at the end."""
    return [f"period.{number}" for number in range(_count(form, "period", "from", "to", "first", "last", "days") + 1)]


def absence_rows(form: Form) -> list[str]:
    return [
        f"away.{number}" for number in range(_count(form, "away", "from", "to", "from_time", "to_time", "reason") + 1)
    ]


# What was typed, as rows of the practice file


def read_hours(form: Form, locations: Mapping[int, Location]) -> list[Row]:
    """Weekly hours with the same times share a row."""
    weekly: dict[tuple[int, str, str], list[tuple[str, Times]]] = {}
    for week in weeks(form, locations):
        for day, (_name, times) in zip(DAYS, week.days, strict=True):
            for each in times:
                if each.opens or each.closes:
                    key = (week.location.id, each.opens, "24:00" if each.closes == "00:00" else each.closes)
                    weekly.setdefault(key, []).append((day, each))
    rows = [
        Row(
            {"location": place, "days": [*dict.fromkeys(day for day, _times in cells)]} | _times_typed(opens, closes),
            _labelled(cells[0][1]),
        )
        for (place, opens, closes), cells in weekly.items()
    ]
    rows += [_period(form, name) for name in period_rows(form) if _is_filled(form, name)]
    return rows


def _labelled(times: Times) -> dict[str, tuple[str, str]]:
    return {
        "from": (f"{times.name}.from", _("%(times)s: from", times=times.label)),
        "to": (f"{times.name}.to", _("%(times)s: to", times=times.label)),
    }


def _times_typed(opens: str, closes: str) -> dict[str, str]:
    return {key: value for key, value in (("from", opens), ("to", closes)) if value}


def _is_filled(form: Form, name: str) -> bool:
    return any(form.get(f"{name}.{key}") for key in ("from", "to", "first", "last", "days"))


_PERIOD = (
    ("location", "location", N_("Location")),
    ("days", "days", N_("Days")),
    ("from", "from", N_("From")),
    ("to", "to", N_("To")),
    ("effectiveFrom", "first", N_("First day")),
    ("effectiveTo", "last", N_("Last day")),
)
_ABSENCE = (("from", "from", N_("The beginning")), ("to", "to", N_("The end")), ("reason", "reason", N_("Reason")))


def _period(form: Form, name: str) -> Row:
    closes = form.get(f"{name}.to")
    values: dict[str, object] = {
        "location": read_id(form.get(f"{name}.location")) or 0,
        "days": [day for day in DAYS if day in form.all(f"{name}.days")] or _weekdays(form, name),
        **_times_typed(form.get(f"{name}.from"), "24:00" if closes == "00:00" else closes),
    }
    for key, control in (("effectiveFrom", "first"), ("effectiveTo", "last")):
        if form.get(f"{name}.{control}"):
            values[key] = form.get(f"{name}.{control}")
    return Row(values, {key: (f"{name}.{control}", _(label)) for key, control, label in _PERIOD})


def _weekdays(form: Form, name: str) -> list[str]:
    """For hours on one date, its weekday need not be ticked."""
    first, last = form.get(f"{name}.first"), form.get(f"{name}.last")
    try:
        day = date.fromisoformat(first)
    except ValueError:
        return []
    return [DAYS[day.weekday()]] if first == last else []


def read_absences(form: Form) -> list[Row]:
    rows = []
    for name in absence_rows(form):
        given = {key: form.get(f"{name}.{key}") for key in ("from", "from_time", "to", "to_time", "reason")}
        if not any(given.values()):
            continue
        values = dict(zip(("from", "to"), absence_bounds(given), strict=True))
        if given["reason"]:
            values["reason"] = given["reason"]
        rows.append(Row(values, {key: (f"{name}.{control}", _(label)) for key, control, label in _ABSENCE}))
    return rows


def absence_bounds(given: Mapping[str, str]) -> tuple[str, str]:
    """The local times that an absence begins and ends at. Without a time, it begins or ends with the day."""
    ends = given["to"] or given["from"]
    return (
        f"{given['from']}T{given['from_time'] or '00:00'}",
        f"{ends}T{given['to_time']}" if given["to_time"] else f"{_day_after(ends)}T00:00",
    )


def _day_after(text: str) -> str:
    try:
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return text


def same_hours(rows: Iterable[Row], stored: Sequence[Mapping[str, object]]) -> bool:
    """Whether the rows open the same times as those of the document, however they are grouped."""
    return {*_single(row.values for row in rows)} == {*_single(stored)}


def _single(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    keys = ("location", "from", "to", "effectiveFrom", "effectiveTo")
    return ((*(row.get(key) for key in keys), day) for row in rows for day in row["days"] or (None,))
