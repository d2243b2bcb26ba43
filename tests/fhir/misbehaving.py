"""Servers that do not do what they are asked for, around one that does; and answers that are lost on purpose."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.fhir.door import Answer, Backend, Fault, Request
from tests.fhir.practice import Upstream

Resource = dict[str, Any]


class Refusing:
    """Declines writes of a kind with this method, without executing them."""

    def __init__(
        self, inner: Backend | None, status: int, text: str, kind: str = "Appointment", method: str = "POST"
    ) -> None:
        assert inner is not None
        self._inner, self._status, self._text, self._kind, self._method = inner, status, text, kind, method

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == self._method and target.split("/")[1] == self._kind:
            details = {"text": self._text, "coding": [{"code": self._text, "display": self._text}]}
            issue = {"severity": "error", "code": "business-rule", "details": details, "diagnostics": self._text}
            document = {"resourceType": "OperationOutcome", "issue": [issue]}
            return Answer(self._status, {}, json.dumps(document).encode())
        return await self._inner.answer(method, target, headers, body)


class Altering:
    """Stores something else than it was sent, the first time that a record of a kind is written with this method."""

    def __init__(
        self, inner: Backend | None, method: str, kind: str, change: Callable[[Resource], Resource], times: int = 1
    ) -> None:
        assert inner is not None
        self._inner, self._method, self._kind, self._change, self._times = inner, method, kind, change, times

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == self._method and target.split("/")[1] == self._kind and self._times:
            self._times -= 1
            body = json.dumps(self._change(json.loads(body))).encode()
        return await self._inner.answer(method, target, headers, body)


def instead(**members: Any) -> Callable[[Resource], Resource]:
    """The same record with other members."""
    return lambda resource: {**resource, **members}


class IgnoringIdentifiers:
    """Leaves the identifier out of searches and conditions of a kind, as a server may that cannot search for it."""

    def __init__(self, inner: Backend | None, kind: str) -> None:
        assert inner is not None
        self._inner, self._kind = inner, kind

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        path, _, query = target.partition("?")
        if path == f"/{self._kind}":
            kept = [each for each in query.split("&") if not each.startswith("identifier=")]
            target = f"{path}?{'&'.join(kept)}"
            headers = headers if "if-none-exist" not in headers else {**headers, "if-none-exist": ""}
        return await self._inner.answer(method, target, headers, body)


class LateFirstAttempt:
    """Says that it failed to create an appointment, and does so when the second attempt arrives: just before that."""

    def __init__(self, inner: Backend | None) -> None:
        assert inner is not None
        self._inner = inner
        self._first: tuple[dict[str, str], bytes] | None = None

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "POST" and target == "/Appointment":
            if self._first is None:
                self._first = (headers, body)
                return Answer(503, {}, b"")
            await self._inner.answer(method, target, *self._first)
        return await self._inner.answer(method, target, headers, body)


class Gathering:
    """Keeps answers back until so many requests are under way, once."""

    def __init__(self, number: int) -> None:
        self._missing = number
        self._together = asyncio.Event()

    @property
    def met(self) -> bool:
        return self._together.is_set()

    async def __call__(self, request: Request, answer: Answer) -> Answer:
        self._missing -= 1
        if self._missing == 0:
            self._together.set()
        async with asyncio.timeout(30):
            await self._together.wait()
        return answer


def lose_answers(request: Request) -> Fault | None:
    """An appointment is created, and neither that nor anything about it can be heard."""
    return "cut_after" if request.target == "/fhir/Appointment" or "identifier=" in request.target else None


def nothing_after_a_write(upstream: Upstream, kind: str) -> Callable[[Request], Fault | None]:
    """A record of this kind is written, and neither that nor anything after it can be heard."""
    return lambda _: (
        "cut_after" if any(each.is_write and f"/{kind}" in each.target for each in upstream.door.seen) else None
    )
