"""Reads a posted form (fields by name, files as text), and lists its errors by field."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request

from frontdesk.console.domain_texts import translated
from frontdesk.console.language import format_number, parse_number
from frontdesk.console.language import gettext as _
from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.texts import N_
from frontdesk.web.bodies import read_body
from frontdesk.web.http_request import request_of

_MAX_FIELDS = 2_000  # the hours of a provider at many locations take hundreds
_MAX_PARTS = 20  # forms with a file have a handful
_BOUNDARY = re.compile(rb';\s*boundary="?([^\s";]{1,70})')
_PART_NAME = re.compile(rb'(?i)^content-disposition:\s*form-data;\s*name="([^"\r\n]{1,100})"', re.MULTILINE)
_MAX_ID = 2**31 - 1
_NO_LABEL = N_("This")


@dataclass(frozen=True, slots=True)
class Form:
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """The first value, stripped, or an empty string."""
        return next(iter(self.fields.get(name, ())), "").strip()

    def all(self, name: str) -> list[str]:
        return list(self.fields.get(name, ()))


NOTHING_SENT = Form()


async def read_form(request: Request, limit: int) -> Form:
    try:
        body = await read_body(request_of(request.scope), request.receive, limit)
    except Problem as problem:
        if problem.code == "payload_too_large":
            raise Problem("payload_too_large", _("The form is larger than %(size)s KiB.", size=limit // 1024)) from None
        raise
    content_type = request.headers.get("content-type", "")
    try:
        if content_type.startswith("multipart/form-data"):
            return _collected(_parts(content_type, body))
        return _collected(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise invalid([FieldError("$", BINDING, N_("the form cannot be read"))]) from None


def errors_of(problem: Problem) -> dict[str, str]:
    """Messages by field; `$` is shown at the top of the form."""
    found: dict[str, str] = {}
    for error in problem.errors:
        found.setdefault(error.field, translated(error.text, field=error.field))
    return found or {"$": translated(problem.text)}


def labelled_errors(problem: Problem, labels: Mapping[str, str]) -> dict[str, str]:
    """Messages by field, with the labels of the form."""
    return {
        error.field: translated(error.text, field=_(labels.get(error.field, _NO_LABEL))) for error in problem.errors
    }


def read_id(text: str) -> int | None:
    """The number of a location, provider, visit type or procedure; None for any other text."""
    return int(text) if len(text) <= 10 and text.isascii() and text.isdecimal() and int(text) <= _MAX_ID else None


def whole_number(form: Form, name: str, label: str, errors: dict[str, str]) -> int:
    """What is not a whole number in the language is added to `errors` and counts as 1."""
    number = parse_number(form.get(name))
    if number is None:
        errors[name] = not_a_number(label) + "."
        return 1
    return number


def not_a_number(label: str) -> str:
    return _("%(field)s must be a whole number, such as %(example)s", field=label, example=format_number(1000))


def _collected(pairs: Sequence[tuple[str, str]]) -> Form:
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\x00" in value:
            raise ValueError
        fields.setdefault(name, []).append(value)
    return Form(fields)


def _parts(content_type: str, body: bytes) -> list[tuple[str, str]]:
    """Parsed by hand, because a crafted form keeps the standard library's mail parser busy for minutes."""
    boundary = _BOUNDARY.search(content_type.encode("latin-1", "replace"))
    if boundary is None:
        raise ValueError
    _preamble, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1], _MAX_PARTS + 1)
    if not parts or not parts[-1].startswith(b"--"):
        raise ValueError
    pairs = []
    for part in parts[:-1]:
        header, _blank_line, content = part.partition(b"\r\n\r\n")
        if name := _PART_NAME.search(header):
            pairs.append((name[1].decode(), content.decode("utf-8-sig")))
    return pairs
