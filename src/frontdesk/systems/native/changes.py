"""Changes as the JSON that `commit_write` takes."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key
from frontdesk.store.rows import camel, field_names
from frontdesk.systems.changes import Booking, Change, PatientDetails


def as_json(change: Change, added: Mapping[str, Any], namesakes: Sequence[tuple[str, str]] = ()) -> str:
    """`added` is what is stored with the change."""
    data = {**_members(change), **added}
    if (booking := data.pop("booking", None)) is not None:
        data |= _members(booking)
    if (details := data.pop("details", None)) is not None:
        data |= _members(details)
        data["nameKey"] = name_key(details.first_name, details.last_name)
        data["phoneDigits"] = digits(details.phone)
        data["namesakes"] = [{"firstName": first, "lastName": last} for first, last in namesakes]
    return orjson.dumps(data).decode()


def _members(record: Change | Booking | PatientDetails) -> dict[str, Any]:
    kind: object = type(record)
    return {camel(name): getattr(record, name) for name in field_names(kind)}
