"""Sends requests to one FHIR server: with credentials, within limits on time and concurrency, past the breaker."""

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import httpx

from frontdesk import tracing
from frontdesk.systems.fhir.settings import FhirSettings
from frontdesk.systems.fhir.transport.answers import Answer, receive
from frontdesk.systems.fhir.transport.auth import Credentials
from frontdesk.systems.fhir.transport.breaker import Breaker
from frontdesk.systems.fhir.transport.connections import Connections
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.port import Misconfigured, SystemUnavailable

CONNECT_SECONDS = 3.0
_REPORT_INTERVAL_SECONDS = 60.0
JSON = "application/fhir+json"
_log = logging.getLogger(__name__)
for _chatty in ("httpx", "httpcore"):  # they log URLs, which contain search parameters
    logging.getLogger(_chatty).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Request:
    """`name` says in logs what was asked, without personal data."""

    method: str
    url: str
    name: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    is_write: bool = False


class RequestSender:
    """`on_recovery` is called on the first success after failures. `on_misconfiguration` is called with the name of a
    request and what an operator has to correct, repeatedly while it lasts, and with None once the request succeeds.
    `requests` counts answers by the class of their status, `none` if there was none."""

    def __init__(
        self,
        settings: FhirSettings,
        environment: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        on_recovery: Callable[[], None] = lambda: None,
        on_misconfiguration: Callable[[str, str | None], None] = lambda _name, _reason: None,
        requests: Counter[str] | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            verify=_trusted_authorities(),  # also of a proxy that the environment names
            transport=Connections(_trusted_authorities(), settings.max_concurrent + 1),
            timeout=httpx.Timeout(settings.timeout_seconds, connect=min(CONNECT_SECONDS, settings.timeout_seconds)),
            headers={"Accept": JSON, "User-Agent": "frontdesk"},
        )
        self._credentials = Credentials(settings.auth, self._http, environment, monotonic)
        self._limit = asyncio.Semaphore(settings.max_concurrent)
        self._monotonic = monotonic
        self._on_recovery = on_recovery
        self._on_misconfiguration = on_misconfiguration
        self._requests = Counter() if requests is None else requests
        self._report_again_at = 0.0
        self.misconfigurations: dict[str, str] = {}  # by request, until one of the same name succeeds
        self.breaker = Breaker(monotonic)
        self.answered_at: datetime | None = None

    async def close(self) -> None:
        await self._http.aclose()

    def report_misconfiguration(self, name: str, error: Misconfigured) -> Misconfigured:
        """The error, which is logged when it is new."""
        is_new = self.misconfigurations.get(name) != error.reason
        if is_new:
            _log.error("the scheduling system or its settings have to be corrected", extra={"reason": error.reason})
        if is_new or self._monotonic() >= self._report_again_at:
            self._report_again_at = self._monotonic() + _REPORT_INTERVAL_SECONDS
            self._on_misconfiguration(name, error.reason)
        self.misconfigurations[name] = error.reason
        return error

    def clear_misconfiguration(self, name: str) -> None:
        """A request of this name has succeeded."""
        if self.misconfigurations.pop(name, None) is not None:
            self._on_misconfiguration(name, None)

    async def send(self, deadline: Deadline, request: Request) -> Answer:
        """The answer of the server. Raises SystemUnavailable if nothing was sent, else what httpx raises."""
        deadline.check(write=request.is_write)
        async with self._place(deadline.remaining(write=request.is_write)):
            credentials = await self._authorized(deadline, request)
            answer = await self._send(deadline, request, credentials)
            if answer.status == 401 and self._credentials.forget(credentials):
                # A 401 means that nothing was executed, so even a write may be sent again.
                credentials = await self._authorized(deadline, request)
                answer = await self._send(deadline, request, credentials)
        if answer.status == 429:
            self.breaker.hold(answer.retry_after)
        elif answer.status >= 500:
            self.breaker.failed()
        else:
            if self.breaker.succeeded():
                self._on_recovery()
            self.answered_at = datetime.now(UTC)
        if not 200 <= answer.status < 300 and answer.status not in (404, 409, 410, 412, 422):
            extra = {"upstreamStatus": answer.status, "upstreamRequest": request.name}
            _log.warning("the scheduling system answered with an error", extra=extra)
        return answer

    async def _authorized(self, deadline: Deadline, request: Request) -> dict[str, str]:
        """The credentials of a request, obtained within its deadline."""
        try:
            async with asyncio.timeout(deadline.remaining(write=request.is_write)):
                credentials = await self._credentials.headers()
        except (TimeoutError, SystemUnavailable) as error:
            self.breaker.failed()
            if isinstance(error, Misconfigured):
                raise self.report_misconfiguration("credentials", error) from None
            if isinstance(error, SystemUnavailable):
                raise
            raise SystemUnavailable from error
        self.clear_misconfiguration("credentials")
        deadline.check(write=request.is_write)
        return credentials

    async def _send(self, deadline: Deadline, request: Request, credentials: Mapping[str, str]) -> Answer:
        with tracing.tracer.request_to(f"FHIR {request.name}", {"http.request.method": request.method}) as span:
            headers = {**(request.headers or {}), **credentials, **tracing.tracer.headers()}
            answer = await self._exchange(deadline, request, headers)
            span.set_attribute("http.response.status_code", answer.status)
            return answer

    async def _exchange(self, deadline: Deadline, request: Request, headers: Mapping[str, str]) -> Answer:
        try:
            async with (
                asyncio.timeout(deadline.remaining(write=request.is_write)),
                self._http.stream(request.method, request.url, content=request.body, headers=headers) as response,
            ):
                answer = await receive(response)
        except (httpx.HTTPError, TimeoutError):
            self._requests["none"] += 1
            self.breaker.failed()
            raise
        self._requests[f"{answer.status // 100}xx"] += 1
        return answer

    @asynccontextmanager
    async def _place(self, seconds: float) -> AsyncIterator[None]:
        """Holds one of the concurrent requests."""
        try:
            self.breaker.admit()
        except SystemUnavailable as error:
            if "credentials" in self.misconfigurations:
                raise Misconfigured(self.misconfigurations["credentials"]) from error
            raise
        try:
            async with asyncio.timeout(min(seconds, CONNECT_SECONDS)):
                await self._limit.acquire()
        except TimeoutError as error:
            raise SystemUnavailable from error
        try:
            yield
        finally:
            self._limit.release()


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Cached, because loading it costs more than a request."""
    return httpx.create_ssl_context()
