"""Field types of a practice file, with their rules and messages. Messages never repeat a value."""

import re
from collections.abc import Callable
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from frontdesk.domain.names import digits, has_letter
from frontdesk.domain.text import character_fault

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(_DATE.pattern + "T(?:" + _CLOCK.pattern + ")(?::00)?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def broken(message: str) -> PydanticCustomError:
    return PydanticCustomError("rule", message)


def rule(holds: Callable[[Any], object], message: str) -> AfterValidator:
    """Refuses values for which `holds` is false."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise broken(message)
        return value

    return AfterValidator(check)


def within(least: int, most: int) -> AfterValidator:
    return rule(lambda value: least <= value <= most, f"must be from {least} to {most}")


def _has_digits(least: int, most: int) -> AfterValidator:
    return rule(lambda value: least <= len(digits(value)) <= most, f"must contain {least} to {most} digits")


def _text(most: int, *, lines: bool = False) -> AfterValidator:
    def check(value: str) -> str:
        if not value.strip():
            raise broken("must not be blank")
        if len(value) > most:
            raise broken(f"must be at most {most} characters long")
        fault = character_fault(value.replace("\n", " ") if lines else value)
        if fault is not None:
            raise broken(fault)
        return value

    return AfterValidator(check)


def _unquoted_number(value: object) -> object:
    """Accept unquoted phone numbers and postal codes."""
    return str(value) if type(value) is int else value


@cache
def _time_zones() -> frozenset[str]:
    # Both are in the time zone database, but the first depends on the machine and the second is not a zone.
    return frozenset(available_timezones()) - {"localtime", "Factory"}


def _opens(value: object) -> int:
    if not isinstance(value, str) or not (clock := _CLOCK.fullmatch(value)):
        raise broken("must be a time like 09:00")
    return int(clock[1]) * 60 + int(clock[2])


def _closes(value: object) -> int:
    return 24 * 60 if value == "24:00" else _opens(value)


def _date(value: object) -> date:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise broken("must be a date that exists") from None
    raise broken("must be a date like 2026-12-25")


def _local_time(value: object) -> datetime:
    if isinstance(value, str) and _DATE_TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise broken("must be a date and time that exist") from None
    raise broken("must be a local date and time like 2026-12-24T12:00, without an offset")


Slug = Annotated[str, rule(_SLUG.fullmatch, "must be 1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -")]
Id = Annotated[int, within(1, 2**31 - 1)]
Name = Annotated[str, _text(100)]
PersonName = Annotated[Name, rule(has_letter, "must contain a letter")]
Reason = Annotated[str, _text(500)]
Description = Annotated[str, _text(1000, lines=True)]
AddressText = Annotated[str, BeforeValidator(_unquoted_number), _text(100)]
Phone = Annotated[str, BeforeValidator(_unquoted_number), _text(32), _has_digits(4, 15)]
PatientPhone = Annotated[str, BeforeValidator(_unquoted_number), _text(32), _has_digits(7, 15)]
Email = Annotated[str, _text(254), rule(_EMAIL.fullmatch, "must be an e-mail address")]
TimeZone = Annotated[str, rule(lambda value: value in _time_zones(), "must be an IANA time zone like America/New_York")]
Duration = Annotated[int, within(1, 1440)]
Buffer = Annotated[int, within(0, 1440)]
Notice = Annotated[int, within(0, 525_600)]
Horizon = Annotated[int, within(1, 730)]
Capacity = Annotated[int, within(1, 100)]
Budget = Annotated[int, within(0, 1_000_000)]  # 0: unlimited
Misses = Annotated[int, within(0, 100)]  # 0: unlimited
Opens = Annotated[int, BeforeValidator(_opens)]
Closes = Annotated[int, BeforeValidator(_closes)]
Day = Annotated[date, BeforeValidator(_date)]
LocalTime = Annotated[datetime, BeforeValidator(_local_time)]
