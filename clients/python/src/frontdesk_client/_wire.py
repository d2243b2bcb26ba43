"""Requests and responses as plain data, without I/O."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from frontdesk_client.errors import AnswerLost, FrontdeskError
from frontdesk_client.null import NULL
from frontdesk_client.problems import BY_CODE
from frontdesk_client.records import FieldError

T = TypeVar("T")
Reader = Callable[[Any], T]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of an operation.

    Every request is safe to resend: a read changes nothing, the first call of a write carries an Idempotency-Key, and
    a confirming call its token.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    idempotency_key: str | None = None

    def confirming(self, token: str) -> "Request":
        return replace(self, body={**(self.body or {}), "confirmationToken": token})

    def following(self, cursor: str) -> "Request":
        return replace(self, query={**self.query, "cursor": cursor})


@dataclass(frozen=True, slots=True)
class Challenge:
    """The response to the first call of an agent's write. Nothing has changed."""

    token: str = field(repr=False)
    expires_at: datetime
    read_back: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_json(cls, data: Any) -> "Challenge":
        return cls(data["confirmationToken"], datetime.fromisoformat(data["expiresAt"]), dict(data["readBack"]))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any = field(repr=False)  # None where it is not JSON
    retry_after: float | None = None

    @classmethod
    def received(cls, status: int, content: bytes, headers: Mapping[str, str]) -> "Answer":
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        seconds = headers.get("retry-after", "")
        return cls(status, body, float(seconds) if seconds.isascii() and seconds.isdigit() else None)

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300 and self.body is not None

    @property
    def is_challenge(self) -> bool:
        return self.status == 428 and isinstance(self.body, dict) and "confirmationToken" in self.body

    def read(self, reader: Reader[T]) -> T:
        """The parsed body. A response that does not match the schema counts as lost."""
        try:
            return reader(self.body)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise AnswerLost("The answer could not be read.", status=self.status) from None

    def problem(self) -> FrontdeskError:
        """The exception for an error response."""
        document = self.body if isinstance(self.body, dict) else {}
        code = document.get("code")
        if not isinstance(code, str):
            detail = "The answer is not the service's own: a proxy answered, or the address is wrong."
            return AnswerLost(detail, status=self.status, retry_after=self.retry_after)
        return BY_CODE.get(code, FrontdeskError)(
            str(document.get("detail", "")),
            code=code,
            status=self.status,
            errors=self.read(lambda body: [FieldError.from_json(each) for each in body.get("errors", ())]),
            request_id=document.get("requestId"),
            retry_after=self.retry_after,
        )


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments in wire format, without those that were not given."""
    return {name: _wire_value(value) for name, value in values.items() if value is not None}


def _wire_value(value: Any) -> Any:
    if value is NULL:
        return None
    return value.isoformat() if isinstance(value, date) else value


def in_path(value: str | int) -> str:
    return quote(str(value), safe="")


def new_key() -> str:
    return str(uuid4())
