"""Reads the parameters of a FHIR search and compares resources with them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from frontdesk.domain.errors import BINDING, FieldError, invalid
from frontdesk.doors.fhir.addresses import Resource

DEFAULT_COUNT, MAX_COUNT = 50, 200
MAX_VALUES = 200
CURSOR = "_cursor"

_RESULT_PARAMETERS = frozenset(
    ("_count", "_include", "_include:iterate", "_format", "_pretty", "_sort", "_summary", CURSOR)
)
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
_DATE = re.compile(r"(eq|ge|gt|le|lt)?(\d{4})(?:-(\d\d)(?:-(\d\d))?)?\Z", re.ASCII)
_INSTANT = re.compile(
    r"(eq|ge|gt|le|lt)?(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d)(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)\Z", re.ASCII
)
_VALUE = re.compile(r"(?:\\.|[^,])+", re.DOTALL)  # a comma behind a backslash belongs to it
_ESCAPED = re.compile(r"\\([\\,|$])")

Pairs = Sequence[tuple[str, str]]


class SearchParameter(NamedTuple):
    """`found` returns what a resource has: `system|code` tokens, references or instants with an offset. None: the
    operation of the search compares, as it always does with a string."""

    name: str
    kind: Literal["string", "token", "reference", "date"]
    found: Callable[[Resource], list[str]] | None = None
    targets: tuple[str, ...] = ()  # types that a reference refers to
    is_personal: bool = False  # whether its values are personal data, which links do not repeat


class Span(NamedTuple):
    """Compares an instant with the time that a date stands for: `low` <= t < `high`. Dates are local to the place."""

    prefix: str
    low: datetime
    high: datetime

    def matches(self, moment: datetime) -> bool:
        if self.low.tzinfo is None:
            moment = moment.replace(tzinfo=None)
        match self.prefix:
            case "ge":
                return moment >= self.low
            case "gt":
                return moment >= self.high
            case "le":
                return moment < self.high
            case "lt":
                return moment < self.low
        return self.low <= moment < self.high

    @property
    def whole_day(self) -> str | None:
        """The date if the value is just one."""
        is_day = self.prefix == "eq" and self.low.tzinfo is None and self.high - self.low == timedelta(days=1)
        return self.low.date().isoformat() if is_day else None

    def first_day(self, zone: ZoneInfo | None) -> date | None:
        """No local date before this one matches, in the zone, or in any if it is not known; None: no limit."""
        if self.prefix in ("le", "lt"):
            return None
        return _local_date(self.high if self.prefix == "gt" else self.low, zone, -1)

    def last_day(self, zone: ZoneInfo | None) -> date | None:
        if self.prefix in ("ge", "gt"):
            return None
        return _local_date(self.low if self.prefix == "lt" else self.high, zone, 1, before=True)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One parameter with its alternatives: spans of a date, else texts."""

    parameter: SearchParameter
    values: tuple[Any, ...]  # texts, or spans of a date
    negated: bool = False
    texts: frozenset[object] = field(init=False)  # the values, for a look-up

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", frozenset(self.values))

    def matches(self, resource: Resource) -> bool:
        if self.parameter.found is None:
            return True
        return any(map(self._fits, self.parameter.found(resource))) != self.negated

    def _fits(self, found: str) -> bool:
        """A token or a reference is given in full or without the system or type."""
        if self.parameter.kind == "date":
            moment = datetime.fromisoformat(found)
            return any(span.matches(moment) for span in self.values)
        return found in self.texts or found.rpartition("|" if self.parameter.kind == "token" else "/")[2] in self.texts


class Inclusion(NamedTuple):
    source: str
    parameter: str
    target: str | None
    iterates: bool


@dataclass(frozen=True, slots=True)
class Query:
    kind: str
    criteria: tuple[Criterion, ...]
    count: int
    inclusions: tuple[Inclusion, ...]
    only_count: bool
    sort: str | None
    used: tuple[tuple[str, str], ...]  # for the links
    ignored: tuple[FieldError, ...]

    def matches(self, resource: Resource) -> bool:
        return all(criterion.matches(resource) for criterion in self.criteria)

    def alternatives(self, name: str) -> list[tuple[Any, ...]]:  # as `Criterion.values`
        """The values of each occurrence of a parameter; all occurrences must match, by any of their values."""
        return [each.values for each in self.criteria if each.parameter.name == name and not each.negated]

    def text(self, name: str) -> str | None:
        """The value of a string parameter."""
        return next((values[0] for values in self.alternatives(name)), None)

    def days(self, name: str, zone: ZoneInfo | None = None) -> tuple[date | None, date | None]:
        """The first and the last local date that can match a date parameter, in a zone if it is known."""
        spans = [values[0] for values in self.alternatives(name) if len(values) == 1]
        firsts = [day for span in spans if (day := span.first_day(zone)) is not None]
        lasts = [day for span in spans if (day := span.last_day(zone)) is not None]
        return max(firsts, default=None), min(lasts, default=None)


def read_query(
    kind: str,
    parameters: Iterable[SearchParameter],
    includes: Mapping[str, Sequence[str]],
    pairs: Pairs,
    base: str,
    *,
    strict: bool,
) -> Query:
    """The query, or a problem that lists every invalid parameter. `includes` are the parameters of each resource type
    that can be followed. Parameters that are not supported are ignored unless `strict`."""
    known = {each.name: each for each in parameters}
    criteria: list[Criterion] = []
    inclusions: list[Inclusion] = []
    used: list[tuple[str, str]] = []
    errors: list[FieldError] = []
    ignored: list[FieldError] = []
    results: dict[str, str] = {}
    for name, text in pairs:
        if not text:
            continue
        bare, _, modifier = name.partition(":")
        if name in ("_include", "_include:iterate"):
            inclusion = _inclusion(text, includes, iterates=bool(modifier))
            if inclusion is None:
                ignored.append(FieldError(name, "unknown", f"{name} can follow only the references of this server"))
                continue
            inclusions.append(inclusion)
        elif name in _RESULT_PARAMETERS:
            if name in results:
                errors.append(FieldError(name, BINDING, f"{name} must be given only once"))
            results[name] = text
        elif bare.partition(".")[0] in known:
            try:
                criterion = _criterion(known, name, text, base)
                if criterion.parameter.kind == "string" and criterion.parameter in (c.parameter for c in criteria):
                    raise _InvalidValueError("must be given only once")
                criteria.append(criterion)
            except _InvalidValueError as error:
                errors.append(FieldError(_shown(name), BINDING, f"{_shown(name)} {error}"))
        else:
            ignored.append(FieldError(_shown(name), "unknown", f"{_shown(name)} is not a parameter of this search"))
            continue
        if name != CURSOR:
            used.append((name, text))
    count, summary = results.get("_count", str(DEFAULT_COUNT)), results.get("_summary")
    if not _WHOLE_NUMBER.match(count):
        errors.append(FieldError("_count", BINDING, "_count must be a whole number"))
        count = "0"
    if summary not in (None, "count", "false"):
        ignored.append(FieldError("_summary", "unknown", "_summary can only be count or false"))
    if sum(len(each.values) for each in criteria) > MAX_VALUES:
        errors.append(FieldError("$", "range", f"the search must have at most {MAX_VALUES} values"))
    if errors or (strict and ignored):
        raise invalid([*errors, *(ignored if strict else ())])
    return Query(
        kind,
        tuple(criteria),
        min(int(count), MAX_COUNT),
        tuple(inclusions),
        summary == "count" or int(count) == 0,
        results.get("_sort"),
        tuple(used),
        tuple(ignored),
    )


class _InvalidValueError(Exception):
    """The rest of a sentence that begins with the parameter's name."""


def _criterion(known: Mapping[str, SearchParameter], name: str, text: str, base: str) -> Criterion:
    bare, _, modifier = name.partition(":")
    parameter = known.get(bare)
    if parameter is None:
        raise _InvalidValueError("is chained, which is not supported")
    negated = modifier == "not" and parameter.kind == "token"
    if modifier and modifier not in parameter.targets and not (negated and parameter.found is not None):
        raise _InvalidValueError("has a modifier that is not supported")
    values: list[Any] = [_ESCAPED.sub(r"\1", value) for value in _VALUE.findall(text)]
    if not values:
        raise _InvalidValueError("must have a value")
    if parameter.kind == "string" and len(values) > 1:
        raise _InvalidValueError("must have one value")
    if parameter.kind == "date":
        return Criterion(parameter, tuple(_span(value) for value in values))
    if parameter.kind == "reference":
        values = [value.removeprefix(f"{base}/") for value in values]
        if modifier:
            values = [value if "/" in value else f"{modifier}/{value}" for value in values]
    return Criterion(parameter, tuple(values), negated)


def _span(text: str) -> Span:
    try:
        if found := _DATE.match(text):
            prefix, year, month, day = found.groups()
            low = datetime(int(year), int(month or 1), int(day or 1))  # noqa: DTZ001 - local to the place
            high = _later(low, timedelta(days=1 if day else 32 if month else 366))
            if not day:
                high = high.replace(day=1) if month else high.replace(month=1, day=1)
            return Span(prefix or "eq", low, high)
        if found := _INSTANT.match(text):
            prefix, minute, second, fraction, zone = found.groups()
            low = datetime.fromisoformat(f"{minute}:{second or '00'}{(fraction or '')[:7]}{zone}").astimezone(UTC)
            exact = timedelta(microseconds=1) if fraction else timedelta(seconds=1 if second else 60)
            return Span(prefix or "eq", low, _later(low, exact))
    except (ValueError, OverflowError):
        pass
    raise _InvalidValueError("must be a date or an instant with an offset, after eq, ge, gt, le or lt if need be")


def _later(moment: datetime, by: timedelta) -> datetime:
    """At the end of the calendar the last moment that there is."""
    try:
        return moment + by
    except OverflowError:
        return datetime.max.replace(tzinfo=moment.tzinfo)


def _inclusion(text: str, includes: Mapping[str, Sequence[str]], *, iterates: bool) -> Inclusion | None:
    source, _, rest = text.partition(":")
    parameter, _, target = rest.partition(":")
    return Inclusion(source, parameter, target or None, iterates) if parameter in includes.get(source, ()) else None


def _local_date(moment: datetime, zone: ZoneInfo | None, direction: int, *, before: bool = False) -> date | None:
    """The date of a local moment, or just before it. An instant whose zone is not known has several: the outermost in
    that direction."""
    try:
        moment -= timedelta(microseconds=int(before))
        if moment.tzinfo is not None and zone is not None:
            return moment.astimezone(zone).date()
        return moment.date() + timedelta(days=0 if moment.tzinfo is None else direction)
    except OverflowError:
        return None


def _shown(name: str) -> str:
    """A parameter's name as an answer quotes it, shortened and without special characters."""
    return "".join(char if char.isalnum() or char in "_-.:$" else "?" for char in name[:64]) or "?"
