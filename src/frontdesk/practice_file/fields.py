"""Field types of a practice file, with their rules and messages. Messages never repeat a value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import available_timezones

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from frontdesk.domain.names import digits, has_letter
from frontdesk.domain.text import character_error
from frontdesk.texts import N_, Text

_SLUG = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(_DATE.pattern + "T(?:" + _CLOCK.pattern + ")(?::00)?")
_EMAIL = r"[^@\s]+@[^@\s]+"


def broken(text: str | Text) -> PydanticCustomError:
    """The error for a broken rule. What a form may show has %(field)s where it names the field."""
    if isinstance(text, str):
        return PydanticCustomError("rule", text)
    return PydanticCustomError("rule", text.template, dict(text.values))


def text_of(details: ErrorDetails) -> Text:
    """The text of a broken rule."""
    template = details["msg"]
    return Text(template, **details.get("ctx", {}))


def key(description: str, example: object, default: object = ..., alias: str | None = None) -> Any:
    """A key of the file, as the schema and the reference describe it; of any type, like pydantic's `Field`."""
    return Field(default, alias=alias, description=description, examples=[example])


@dataclass(frozen=True, slots=True, eq=False)  # a type hint has to be hashable
class Rule:
    """Refuses values in the words of this file; `schema` is what a JSON Schema can say of it."""

    check: Callable[[Any], object]  # given a value of the annotated type
    schema: Mapping[str, object]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, inner: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {**handler(inner), **self.schema}


def rule(holds: Callable[[Any], object], text: str | Text, **schema: object) -> Rule:  # given as above
    """Refuses values for which `holds` is false."""

    def check(value: object) -> object:
        if not holds(value):
            raise broken(text)
        return value

    return Rule(check, schema)


def form(pattern: str, text: str, maximum: int | None = None) -> Rule:
    """Accepts text that the pattern describes as a whole, at most `maximum` characters long."""
    compiled = re.compile(pattern)
    schema = {"pattern": f"^(?:{pattern})$"} | ({} if maximum is None else {"maxLength": maximum})
    return rule(lambda value: (maximum is None or len(value) <= maximum) and compiled.fullmatch(value), text, **schema)


def within(minimum: int, maximum: int) -> Rule:
    text = Text("%(field)s must be from %(minimum)s to %(maximum)s", minimum=minimum, maximum=maximum)
    return rule(lambda value: minimum <= value <= maximum, text, minimum=minimum, maximum=maximum)


def _has_digits(minimum: int, maximum: int) -> Rule:
    text = Text("%(field)s must contain %(minimum)s to %(maximum)s digits", minimum=minimum, maximum=maximum)
    return rule(lambda value: minimum <= len(digits(value)) <= maximum, text)


def _text(maximum: int, *, lines: bool = False) -> Rule:
    def check(value: str) -> str:
        if not value.strip():
            raise broken(N_("%(field)s must not be blank"))
        if len(value) > maximum:
            raise broken(Text("%(field)s must be at most %(maximum)s characters long", maximum=maximum))
        error = character_error(value.replace("\n", " ") if lines else value)
        if error is not None:
            raise broken(error)
        return value

    return Rule(check, {"minLength": 1, "maxLength": maximum})


def _unquoted_number(value: object) -> object:
    """Accept unquoted phone numbers and postal codes."""
    return str(value) if type(value) is int else value


_NUMBER_OR_TEXT = (BeforeValidator(_unquoted_number), WithJsonSchema({"type": ["string", "integer"]}))


@cache
def _time_zones() -> frozenset[str]:
    # Both are in the time zone database, but the first depends on the machine and the second is not a zone.
    return frozenset(available_timezones()) - {"localtime", "Factory"}


def _opens(value: object) -> int:
    if not isinstance(value, str) or not (clock := _CLOCK.fullmatch(value)):
        raise broken(N_("%(field)s must be a time like 09:00"))
    return int(clock[1]) * 60 + int(clock[2])


def _closes(value: object) -> int:
    return 24 * 60 if value == "24:00" else _opens(value)


def _date(value: object) -> date:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise broken(N_("%(field)s must be a date that exists")) from None
    raise broken(N_("%(field)s must be a date like 2026-12-25"))


def _local_time(value: object) -> datetime:
    if isinstance(value, str) and _DATE_TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise broken(N_("%(field)s must be a date and time that exist")) from None
    raise broken(N_("%(field)s must be a local date and time like 2026-12-24T12:00, without an offset"))


def _matching(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


Slug = Annotated[str, form(_SLUG, "must be 1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -")]
Id = Annotated[int, within(1, 2**31 - 1)]
# Numbers are 32 bits; those above are for the patients that are created after the one with the highest number.
MAX_PATIENT_NUMBER = 2_000_000_000
PatientNumber = Annotated[int, within(1, MAX_PATIENT_NUMBER)]
Name = Annotated[str, _text(100)]
PersonName = Annotated[Name, rule(has_letter, N_("%(field)s must contain a letter"))]
Reason = Annotated[str, _text(500)]
Description = Annotated[str, _text(1000, lines=True)]
AddressText = Annotated[str, *_NUMBER_OR_TEXT, _text(100)]
Phone = Annotated[str, *_NUMBER_OR_TEXT, _text(32), _has_digits(4, 15)]
PatientPhone = Annotated[str, *_NUMBER_OR_TEXT, _text(32), _has_digits(7, 15)]
Email = Annotated[str, _text(254), form(_EMAIL, N_("%(field)s must be an e-mail address"))]
TimeZone = Annotated[
    str,
    rule(lambda value: value in _time_zones(), N_("%(field)s must be an IANA time zone like America/New_York")),
]
Duration = Annotated[int, within(1, 1440)]
Buffer = Annotated[int, within(0, 1440)]
Notice = Annotated[int, within(0, 525_600)]
Horizon = Annotated[int, within(1, 730)]
Capacity = Annotated[int, within(1, 100)]
Budget = Annotated[int, within(0, 1_000_000)]  # 0: unlimited
Misses = Annotated[int, within(0, 100)]  # 0: unlimited
Upcoming = Annotated[int, within(0, 1_000)]  # 0: unlimited
Opens = Annotated[int, BeforeValidator(_opens), WithJsonSchema(_matching(_CLOCK.pattern))]
Closes = Annotated[int, BeforeValidator(_closes), WithJsonSchema(_matching(f"{_CLOCK.pattern}|24:00"))]
Day = Annotated[date, BeforeValidator(_date), WithJsonSchema(_matching(_DATE.pattern))]
LocalTime = Annotated[datetime, BeforeValidator(_local_time), WithJsonSchema(_matching(_DATE_TIME.pattern))]
