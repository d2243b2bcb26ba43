"""Changes as the JSON that `commit_write` takes."""

from dataclasses import asdict

import orjson

from frontdesk.domain.consent import Consent
from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key
from frontdesk.store.rows import camel
from frontdesk.systems.changes import Change


def as_json(change: Change, consent: Consent | None, traceparent: str | None = None) -> str:
    data = asdict(change)
    data |= data.pop("booking", {})
    if (details := data.pop("details", None)) is not None:
        data |= details
        data["name_key"] = name_key(details["first_name"], details["last_name"])
        data["phone_digits"] = digits(details["phone"])
    if consent is not None:
        data["consent"] = consent
    if traceparent is not None:
        data["traceparent"] = traceparent
    return orjson.dumps({camel(name): value for name, value in data.items()}).decode()
