"""A request as it was taken in, handed from the gateway to a door: headers read once, the caller, when it began.

Where a door stands without a gateway before it, it takes its requests in by itself, and nobody is known yet.
"""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from frontdesk.access.caller import Caller

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

_KEY = "frontdesk.arrival"
_REFUSED = 400
_LONGEST_KEPT = 4096  # of a header, which anybody may send; our own tokens are far shorter


@dataclass(slots=True)
class Arrival:
    began: float
    headers: dict[bytes, bytes]
    caller: Caller | None = None  # None: not known yet, or nobody who may call
    added: RawHeaders = field(default_factory=list)  # what the gateway says on every answer
    started: bool = False  # whether an answer is on its way

    def hand_over(self, scope: Scope) -> None:
        scope[_KEY] = self


def arrival_of(scope: Scope) -> Arrival:
    found: Arrival | None = scope.get(_KEY)
    return found or Arrival(time.perf_counter(), read_headers(scope["headers"]))


def read_headers(raw: RawHeaders) -> dict[bytes, bytes]:
    """By name, which servers give in lower case; of several the last. Several Accept headers are one list."""
    headers = dict(raw)
    if len(headers) != len(raw) and b"accept" in headers:
        headers[b"accept"] = b", ".join([value for name, value in raw if name == b"accept"])
    return headers


def decoded(value: bytes | None) -> str | None:
    """A header's value as text: any byte is a character, as HTTP has it."""
    return None if value is None else value.decode("latin-1")


def bearer_token(authorization: bytes | None) -> str | None:
    if authorization is None:
        return None
    if len(authorization) > _LONGEST_KEPT:
        return _token_in.__wrapped__(authorization)
    return _token_in(authorization)


@lru_cache(maxsize=1024)
def _token_in(authorization: bytes) -> str | None:
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
    arrival.started = True
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
