"""Parses a call's arguments into the operation's input, ignoring the case of names, and reports every invalid field."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from itertools import islice

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.engine.json_documents import UnreadableJson, read_json
from frontdesk.operations import Operation
from frontdesk.operations._fields import NULL_REMOVES
from frontdesk.operations._operation import Given, Result
from frontdesk.operations._schemas import plain_schema
from frontdesk.texts import N_, Text

MAX_ERRORS = 100

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,20}\Z", re.ASCII)
_RULES = frozenset(
    (BINDING, "greaterThanZero", "range", "notFuture", "characters", "notBlank", "maxLength", "minDigits", "order",
     "maxWindow", "required", "cursor")
)  # fmt: skip
_PYDANTIC_RULES = {"missing": "required", "extra_forbidden": "unknown"}
_TEXTS = {
    "missing": Text(N_("%(field)s is required")),
    "extra_forbidden": Text("%(field)s is not a field of this operation"),
}
_WRONG_TYPE = Text(N_("%(field)s has the wrong type"))


@dataclass(slots=True)
class Arguments:
    """Values by their published names, and errors found while reading them."""

    values: dict[str, object] = field(default_factory=dict)
    errors: list[FieldError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InputNames:
    """The published names of an operation's fields by their lower-case names, for each part of a request."""

    path: dict[str, str]
    query: dict[str, str]
    body: dict[str, str]
    integers: frozenset[str]
    nullable: frozenset[str]  # null is a value of its own here, and counts as absent elsewhere


@cache
def input_names(operation: Operation) -> InputNames:
    properties = plain_schema(operation.input).get("properties", {})
    in_path = {name for name in properties if f"{{{name}}}" in operation.path}
    rest = {name.lower(): name for name in properties if name not in in_path}
    return InputNames(
        path={name.lower(): name for name in in_path},
        query=rest if operation.method == "GET" else {},
        body=rest if operation.method != "GET" else {},
        integers=frozenset(name for name, schema in properties.items() if schema.get("type") == "integer"),
        nullable=frozenset(name for name, schema in properties.items() if NULL_REMOVES in schema),
    )


def from_http(
    operation: Operation, path: Mapping[str, str], query: Iterable[tuple[str, str]], body: bytes
) -> Arguments:
    """The arguments of a REST call. Raises a problem for a body that is not a JSON object."""
    names, arguments = input_names(operation), Arguments()
    for name, text in path.items():
        arguments.values[name] = _number(text) if name in names.integers else text
    _collect(arguments, names.query, query, integers=names.integers)
    if operation.method != "GET" and body.strip():
        try:
            document, repeated = read_json(body)
        except UnreadableJson as error:
            raise _invalid([*arguments.errors, FieldError("$", BINDING, f"the body {error}")]) from None
        if not isinstance(document, dict):
            raise _invalid([*arguments.errors, FieldError("$", BINDING, "the body must be a JSON object")])
        _refuse_repeated(arguments, names.body, repeated)
        _collect(arguments, names.body, document.items(), nullable=names.nullable)
    return arguments


def from_tool(operation: Operation, given: Mapping[str, object], repeated: Iterable[str] = ()) -> Arguments:
    """The arguments of a tool call: path, query and body fields in one flat object. `repeated`: properties of the
    request that were given more than once."""
    names, arguments = input_names(operation), Arguments()
    known = {**names.path, **names.query, **names.body}
    _refuse_repeated(arguments, known, repeated)
    _collect(arguments, known, given.items(), nullable=names.nullable)
    return arguments


def read_arguments(operation: Operation[Given, Result], arguments: Arguments, today: date | None) -> Given:
    """The operation's input, or a problem that lists every offending field."""
    try:
        given = operation.input.model_validate(arguments.values, context={"today": today})
    except ValidationError as error:
        errors = [_field_error(operation, each) for each in error.errors(include_url=False, include_input=False)]
    else:
        if not arguments.errors:
            return given
        errors = []
    names = plain_schema(operation.input).get("properties", {})
    if any(error.rule == BINDING and error.field in names for error in arguments.errors):
        # The model has not seen the field: what it says of all fields together may be wrong.
        errors = [error for error in errors if error.field != "$"]
    raise _invalid([*arguments.errors, *errors])


def _invalid(errors: Iterable[FieldError]) -> Problem:
    """One error per field: that it cannot be read comes before that it is unknown."""
    by_field: dict[str, FieldError] = {}
    for error in errors:
        if by_field.setdefault(error.field, error).rule == "unknown" and error.rule == BINDING:
            by_field[error.field] = error
    return invalid(list(by_field.values()))


def _collect(
    arguments: Arguments,
    known: Mapping[str, str],
    given: Iterable[tuple[str, object]],
    *,
    integers: frozenset[str] = frozenset(),
    nullable: frozenset[str] = frozenset(),
) -> None:
    """Null counts as absent, unless the field is nullable. A name that occurs twice, in any case, is an error."""
    seen: set[str] = set()
    for spelt, value in given:
        lower = spelt.lower()
        name = known.get(lower)
        if name is None and len(arguments.errors) >= MAX_ERRORS:
            continue  # naming each of thousands would cost more than the rest of the call
        if lower in seen:
            arguments.values.pop(name or "", None)
            _refuse_repeated(arguments, known, [spelt])
        elif name is None:
            seen.add(lower)
            arguments.errors.append(FieldError(_shown(spelt), "unknown", "is not a field of this operation"))
        else:
            seen.add(lower)
            if isinstance(value, str) and not _is_text(value):
                arguments.errors.append(FieldError(name, BINDING, Text("%(field)s must be valid UTF-8")))
            elif value is not None or name in nullable:
                arguments.values[name] = _number(value) if name in integers else value


def _refuse_repeated(arguments: Arguments, known: Mapping[str, str], repeated: Iterable[str]) -> None:
    for spelt in islice(repeated, MAX_ERRORS):
        name = known.get(spelt.lower()) or _shown(spelt)
        arguments.errors.append(FieldError(name, BINDING, Text("%(field)s must be given only once")))


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and _WHOLE_NUMBER.match(value) else value


def _is_text(value: str) -> bool:
    """Whether the text was valid UTF-8; invalid bytes were decoded to lone surrogates."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def _shown(name: str) -> str:
    """An unknown name as the answer quotes it, shortened and without special characters."""
    return "".join(char if char.isalnum() or char in "_-.$" else "?" for char in name[:64]) or "?"


def _field_error(operation: Operation, detail: ErrorDetails) -> FieldError:
    """What pydantic says of one field."""
    name = str(detail["loc"][0]) if detail["loc"] else "$"
    if name in operation.input.model_fields:  # pydantic names a field by its Python name only where it has no alias
        name = operation.input.model_fields[name].alias or name
    kind = detail["type"]
    if kind in _PYDANTIC_RULES:
        return FieldError(name, _PYDANTIC_RULES[kind], _TEXTS[kind])
    if kind in _RULES:
        template = detail["msg"]
        return FieldError(name, kind, Text(template, **detail.get("ctx", {})))
    return FieldError(name, BINDING, _WRONG_TYPE)
