"""A request as it was taken in, handed from the gateway to a door: headers read once, the caller, when it began.

Where a door stands without a gateway before it, it takes its requests in by itself, and nobody is known yet.
"""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from frontdesk.access.clients.caller import Caller
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.doors.negotiation import response_type
from frontdesk.engine.simulation import META_KEY

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]
# In a scope, where its server has them: functions that give a body and take an answer in one piece, past ASGI's
# messages, at a fraction of the price. BODY_WHOLE is called once with the scope, and gives None where the body has not
# come completely. ANSWER_WHOLE is called with the scope, the status, the encoded headers, which say how long the answer
# is and nothing about the connection, and the body; it gives whether the answer was taken.
BODY_WHOLE = "frontdesk.body_whole"
ANSWER_WHOLE = "frontdesk.answer_whole"

SIMULATE = META_KEY.encode()
_REFUSED = 400
_MOST_HEADS = 1024
_LARGEST_HEAD = 4096  # that is kept: anybody may send one, and those of our callers are smaller
# Headers that no second request has, or that say more than who calls.
_NEVER_KEPT = frozenset((b"traceparent", b"idempotency-key", b"cookie", b"referer"))


class Head(NamedTuple):
    """What the headers of a request say, before anybody looks behind them."""

    number: int | None  # the same for the same headers; None where they are not known again
    headers: dict[bytes, bytes]  # by name, in lower case as servers give it; of several the last
    size: int
    token: str | None  # that of an Authorization header with the scheme Bearer
    accepted: bytes | None  # the Content-Type of an answer that is JSON, where they allow one
    plain: bytes | None  # the same, where they ask for nothing but an answer


@dataclass(slots=True)
class Arrival:
    began: float
    head: Head
    scope: Scope
    caller: Caller | None = None  # None: not known yet, or nobody who may call
    added: RawHeaders = field(default_factory=list)  # what the gateway says on every answer
    trouble: Problem | None = None  # why it is certain that the call cannot be answered
    started: bool = False  # whether an answer is on its way


def arrival_of(scope: Scope) -> Arrival:
    """That of a request to a door without a gateway."""
    return Arrival(time.monotonic(), read_head(scope["headers"]), scope)


def read_head(raw: RawHeaders) -> Head:
    """Clients send the same headers again and again: those that come with an access token are read once."""
    key = tuple(raw)
    head = _heads.get(key)
    if head is None:
        head = _read(raw)
        if head.token and head.size <= _LARGEST_HEAD and _NEVER_KEPT.isdisjoint(head.headers):
            head = head._replace(number=next(_numbers))
            _heads.put(key, head)
    return head


_heads: BoundedCache[tuple[tuple[bytes, bytes], ...], Head] = BoundedCache(_MOST_HEADS)
_numbers = count()


def _read(raw: RawHeaders) -> Head:
    headers = dict(raw)
    if len(headers) != len(raw) and b"accept" in headers:  # several are one list
        headers[b"accept"] = b", ".join([value for name, value in raw if name == b"accept"])
    size = sum(len(name) + len(value) for name, value in raw)
    accepted = _accepted(headers.get(b"accept"))
    plain = None if SIMULATE in headers else accepted
    return Head(None, headers, size, _bearer_token(headers.get(b"authorization")), accepted, plain)


def _accepted(accept: bytes | None) -> bytes | None:
    try:
        return response_type(decoded(accept))
    except Problem:
        return None


def decoded(value: bytes | None) -> str | None:
    """A header's value as text: any byte is a character, as HTTP has it."""
    return None if value is None else value.decode("latin-1")


def _bearer_token(authorization: bytes | None) -> str | None:
    if authorization is None:
        return None
    scheme, _, token = authorization.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def send_answer(send: Send, arrival: Arrival, status: int, headers: RawHeaders, body: bytes) -> None:
    """The whole answer; `headers` are all but those that the gateway adds."""
    if status >= _REFUSED:
        # Where a sandbox's caller wants to see a limit reached, the door says so: what is left would contradict it.
        said = {name for name, _ in headers}
        headers += [each for each in arrival.added if each[0] not in said]
    else:
        headers += arrival.added
        whole = arrival.scope.get(ANSWER_WHOLE)
        if whole is not None and whole(arrival.scope, status, encoded(headers), body):
            arrival.started = True
            return
    arrival.started = True
    await send_messages(send, status, headers, body)


async def send_messages(send: Send, status: int, headers: RawHeaders, body: bytes) -> None:
    """An answer as ASGI has it."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def encoded(headers: RawHeaders) -> bytes:
    """As they stand in a head of HTTP/1.1. Names and values are ours; still, no value can begin another field."""
    head = b"".join([b"%b: %b\r\n" % field for field in headers])
    if not head.count(b"\n") == head.count(b"\r") == len(headers):
        raise ValueError("a header has more than one line")
    return head
