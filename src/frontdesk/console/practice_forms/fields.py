"""Fields of a form that edit one mapping of the practice file. The rules of the practice file validate the input."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from frontdesk.console.domain_texts import translated
from frontdesk.console.forms import Form, not_a_number
from frontdesk.console.language import parse_number
from frontdesk.practice_file import NOT_A_NUMBER, FileError

Kind = Literal["text", "lines", "names", "number", "yes_no", "choice"]


@dataclass(frozen=True, slots=True)
class Field:
    key: str  # in the practice file, and the name of the control; a dot leads into a mapping
    label: str
    kind: Kind = "text"
    hint: str | None = None
    required: bool = False
    choices: Sequence[tuple[str, str]] = ()
    own_calendar: bool = False  # without effect if a FHIR server keeps the calendar
    default: object = None  # of what a mapping does not have


@dataclass(frozen=True, slots=True)
class Edited:
    """The document after a change, and the controls of the form by path in the document."""

    document: dict[str, object]
    controls: Mapping[str, str]
    labels: Mapping[str, str]  # of controls
    errors: Mapping[str, str] | None = None  # what the document cannot say, by control


def as_typed(fields: Iterable[Field], record: object) -> dict[str, list[str]]:
    """What the form shows before anybody types, from a record of the directory."""
    return {field.key: _shown(field, _value(record, field)) for field in fields}


def _shown(field: Field, value: Any) -> list[str]:  # of the field's kind
    if field.kind == "names":
        return ["\n".join(value)]
    if field.kind == "yes_no":
        return ["yes"] if value else []
    return ["" if value is None else str(value)]


def _value(record: object, field: Field) -> object:
    outer, *inner = field.key.split(".")
    value = getattr(record, _snake(outer))
    for key in inner:
        value = (value or {}).get(key, (value or {}).get(_snake(key)))
    return field.default if value is None else value


def _snake(key: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", key).lower()


def put(fields: Iterable[Field], part: dict[str, object], form: Form) -> None:
    """Writes what was typed. What cannot be read is written as it is, and the practice file's rules refuse it."""
    for field in fields:
        _set(part, field.key, _read(field, form))


def _read(field: Field, form: Form) -> object:
    typed = form.get(field.key)
    if field.kind == "names":
        return [line.strip() for line in typed.splitlines() if line.strip()] or None
    if field.kind == "yes_no":
        return typed == "yes"
    if field.kind == "number":
        number = parse_number(typed)
        return typed if number is None else number
    if field.kind == "lines":
        typed = typed.replace("\r\n", "\n")
    return typed or None


def _set(part: dict[str, Any], key: str, value: object) -> None:
    outer, _, inner = key.partition(".")
    if inner:
        nested = dict(part.get(outer) or {})
        _set(nested, inner, value)
        value = nested or None
    if value is None:
        part.pop(outer, None)
    else:
        part[outer] = value


def errors_by_control(edited: Edited, errors: Iterable[FileError]) -> dict[str, str]:
    """Messages by control; `$` is shown at the top of the form."""
    found: dict[str, str] = {}
    for error in errors:
        control = _control(edited.controls, error.path)
        if control is None:
            found.setdefault("$", f"{error.path}: {error.message}.")
        else:
            label = edited.labels[control]
            text = not_a_number(label) if error.text == NOT_A_NUMBER else translated(error.text, field=label)
            found.setdefault(control, text + ".")
    return found


def _control(controls: Mapping[str, str], path: str) -> str | None:
    """The control of the path, or of the nearest part that contains it."""
    while path and path not in controls:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return controls.get(path)
