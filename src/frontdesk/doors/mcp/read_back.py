"""A read-back in the words that a person reads before agreeing: labelled lines without ids."""

from collections.abc import Mapping
from datetime import datetime

from frontdesk.operations import Operation

# In this order. Names and times are put together, ids are left out.
_LABELS = {
    "rescheduledFrom": "Until now",
    "providerName": "With",
    "locationName": "Where",
    "visitTypeName": "Visit",
    "procedureName": "For",
    "dob": "Date of birth",
    "phone": "Phone",
    "email": "E-mail",
    "reason": "Reason",
}


def lines(read_back: Mapping[str, object]) -> list[tuple[str, str]]:
    """What would change, as labels and values."""
    found = []
    if "firstName" in read_back or "lastName" in read_back:
        found.append(("Patient", _name(read_back, "firstName", "lastName")))
    if "previousFirstName" in read_back or "previousLastName" in read_back:
        previous = {
            "firstName": read_back.get("previousFirstName", read_back.get("firstName")),
            "lastName": read_back.get("previousLastName", read_back.get("lastName")),
        }
        found.append(("Name until now", _name(previous, "firstName", "lastName")))
    if "start" in read_back:
        found.append(("When", _span(read_back)))
    for field, label in _LABELS.items():
        if field in read_back:
            found.append((label, _value(field, read_back[field])))
    return found


def question(operation: Operation, read_back: Mapping[str, object]) -> str:
    """The question that a host shows to its user."""
    text = "\n".join(f"{label}: {value}" for label, value in lines(read_back))
    return f"{operation.title}?\n{text}\nNothing has been changed yet."


def _name(read_back: Mapping[str, object], *fields: str) -> str:
    return " ".join(str(read_back[field]) for field in fields if read_back.get(field))


def _span(read_back: Mapping[str, object]) -> str:
    start, end = _time(read_back["start"]), _time(read_back["end"])
    return f"{_day(start)}, {start:%H:%M}-{end:%H:%M} ({read_back['timeZone']})"


def _value(field: str, value: object) -> str:
    if field == "rescheduledFrom":
        start = _time(value)
        return f"{_day(start)}, {start:%H:%M}"
    return "removed" if value is None else str(value)


def _time(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def _day(moment: datetime) -> str:
    return f"{moment:%A}, {moment.day} {moment:%B %Y}"
