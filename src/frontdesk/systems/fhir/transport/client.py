"""HTTP client of one practice's FHIR server, with limits on time, concurrency and size.

A request fails as certainly not executed (`SystemUnavailable`), declined (`Declined`), or, for a write, with an unknown
outcome (`AnswerLost`). Writes are never repeated. URLs and bodies carry protected data and are never logged.
"""

import asyncio
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx
import orjson

from frontdesk.systems.fhir.resources.elements import Resource, is_record, listed, version_of
from frontdesk.systems.fhir.resources.outcomes import DECLINED, refusal_reason
from frontdesk.systems.fhir.settings import FhirSettings
from frontdesk.systems.fhir.transport.auth import Credentials, Misconfigured
from frontdesk.systems.fhir.transport.breaker import Breaker
from frontdesk.systems.fhir.transport.connections import Connections
from frontdesk.systems.fhir.transport.deadline import Deadline, gather_all
from frontdesk.systems.port import SystemUnavailable

Parameters = Sequence[tuple[str, str]]

CONNECT_SECONDS = 3.0
PAGE_SIZE = 200
MOST_PAGES = 50
_VALUES_AT_ONCE = 40
LARGEST_ANSWER = 20 * 1024 * 1024
_LONGEST_RETRY_AFTER = 120
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)
_JSON = "application/fhir+json"
_log = logging.getLogger(__name__)
for _chatty in ("httpx", "httpcore"):  # they log URLs, which contain search parameters
    logging.getLogger(_chatty).setLevel(logging.WARNING)


class Declined(Exception):  # noqa: N818 - an answer, not a fault
    """The server refused a write. `contended`: the record was changed by another writer, or already exists."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status)
        self.contended = status in (409, 412)
        self.reason = reason


class AnswerLost(Exception):  # noqa: N818
    """The outcome of a write is unknown. `failed`: the server answered with an error, or with success and a refusal in
    the body, which is then the `reason`."""

    def __init__(self, *, failed: bool = False, retry_after: int = 2, reason: str = "") -> None:
        super().__init__("the answer to a write was lost")
        self.failed = failed
        self.retry_after = retry_after
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    resource: Resource | None  # None: no readable resource
    retry_after: int
    is_foreign: bool = False  # a body that no FHIR server sends, such as a proxy's page

    @property
    def found(self) -> Resource | None:
        return self.resource if 200 <= self.status < 300 else None


class FhirClient:
    """`transport` stands in for the network in tests."""

    def __init__(
        self,
        settings: FhirSettings,
        environment: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._base_url = settings.base_url
        self._monotonic = monotonic
        self._http = httpx.AsyncClient(
            verify=_trusted_authorities(),  # also of a proxy that the environment names
            transport=transport or Connections(_trusted_authorities(), settings.max_concurrent + 1),
            timeout=httpx.Timeout(settings.timeout_seconds, connect=min(CONNECT_SECONDS, settings.timeout_seconds)),
            headers={"Accept": _JSON, "User-Agent": "frontdesk"},
        )
        self._credentials = Credentials(settings.auth, self._http, environment, monotonic)
        self._places = asyncio.Semaphore(settings.max_concurrent)
        self.breaker = Breaker(monotonic)
        self.answered_at: datetime | None = None

    async def close(self) -> None:
        await self._http.aclose()

    async def read(self, deadline: Deadline, reference: str) -> Resource | None:
        """One record, or None if the server has none."""
        answer = await self._ask(deadline, f"{self._base_url}/{reference}")
        if answer.status in (404, 410) and not answer.is_foreign:
            return None
        found = self._readable(answer)
        if reference != "metadata" and f"{found['resourceType']}/{found.get('id')}" != reference:
            raise SystemUnavailable
        return found

    async def search(self, deadline: Deadline, kind: str, parameters: Parameters) -> list[Resource]:
        """All matching records."""
        return [found async for page in self.pages(deadline, kind, parameters) for found in page]

    async def search_any(
        self, deadline: Deadline, kind: str, name: str, values: Sequence[str], parameters: Parameters = ()
    ) -> list[Resource]:
        """All records that match one of the values, in several requests: the length of a URL is limited."""
        chunks = [values[at : at + _VALUES_AT_ONCE] for at in range(0, len(values), _VALUES_AT_ONCE)]
        answers = await gather_all(
            *(self.search(deadline, kind, [(name, ",".join(some)), *parameters]) for some in chunks)
        )
        return [found for answer in answers for found in answer]

    async def pages(
        self, deadline: Deadline, kind: str, parameters: Parameters, size: int = PAGE_SIZE
    ) -> AsyncIterator[list[Resource]]:
        url: str | None = str(httpx.URL(f"{self._base_url}/{kind}", params=[*parameters, ("_count", str(size))]))
        for _ in range(MOST_PAGES):
            assert url is not None
            bundle = self._readable(await self._ask(deadline, url))
            if bundle["resourceType"] != "Bundle":
                raise SystemUnavailable
            found = [entry.get("resource") for entry in listed(bundle.get("entry"))]
            yield [record for record in found if is_record(record, kind)]
            url = self._next_page(bundle)
            if url is None:
                return
        _log.warning("the scheduling system found more than can be read at once", extra={"resourceType": kind})
        raise SystemUnavailable(30)

    async def create(self, deadline: Deadline, resource: Resource, unless: str) -> Resource:
        """The created record, or the existing one that matches `unless`."""
        url = f"{self._base_url}/{resource['resourceType']}"
        return await self._write(deadline, "POST", url, resource, {"If-None-Exist": unless})

    async def update(self, deadline: Deadline, resource: Resource) -> Resource:
        """Updates the record if it still has the version that was read."""
        version = version_of(resource)
        if version is None:
            _log.warning("the scheduling system does not version its records")
            raise SystemUnavailable(30)
        url = f"{self._base_url}/{resource['resourceType']}/{resource['id']}"
        return await self._write(deadline, "PUT", url, resource, {"If-Match": f'W/"{version}"'})

    async def _ask(self, deadline: Deadline, url: str) -> _Answer:
        """Sends a read, and once more if it broke off: the server may have closed an idle connection."""
        try:
            try:
                return await self._exchange(deadline, "GET", url, None, {})
            except (httpx.RemoteProtocolError, httpx.ReadError):
                return await self._exchange(deadline, "GET", url, None, {})
        except (httpx.HTTPError, TimeoutError) as error:
            raise SystemUnavailable from error

    async def _write(
        self, deadline: Deadline, method: str, url: str, resource: Resource, headers: Mapping[str, str]
    ) -> Resource:
        headers = {**headers, "Content-Type": _JSON, "Prefer": "return=representation"}
        try:
            answer = await self._exchange(deadline, method, url, orjson.dumps(resource), headers)
        except _NOT_SENT as error:
            raise SystemUnavailable from error
        except (httpx.HTTPError, TimeoutError) as error:
            raise AnswerLost from error
        if answer.status in (401, 403, 408, 425, 429):
            raise SystemUnavailable(answer.retry_after)
        if answer.status >= 500:
            # After a gateway's error the server behind it may still execute the write.
            raise AnswerLost(failed=answer.status not in (502, 504), retry_after=answer.retry_after)
        if 400 <= answer.status < 500:
            raise Declined(answer.status, refusal_reason(answer.resource) or DECLINED)
        if answer.found is None or not is_record(answer.found, resource["resourceType"]):
            reason = refusal_reason(answer.found)
            raise AnswerLost(failed=bool(reason), reason=reason)
        return answer.found

    def _readable(self, answer: _Answer) -> Resource:
        if 300 <= answer.status < 500 and answer.status not in (408, 425, 429):
            raise Misconfigured(f"the server refused a request with status {answer.status}")
        if answer.found is None:
            raise SystemUnavailable(answer.retry_after)
        return answer.found

    async def _exchange(
        self, deadline: Deadline, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> _Answer:
        deadline.check(write=body is not None)
        async with self._place(deadline.remaining(write=body is not None)):
            credentials = await self._authorized(deadline, write=body is not None)
            answer = await self._send(deadline, method, url, body, {**headers, **credentials})
            if answer.status == 401 and self._credentials.forget(credentials):
                # A 401 means that nothing was executed, so even a write may be sent again.
                credentials = await self._authorized(deadline, write=body is not None)
                answer = await self._send(deadline, method, url, body, {**headers, **credentials})
        if answer.status == 429:
            self.breaker.hold(answer.retry_after)
        elif answer.status >= 500:
            self.breaker.failed()
        else:
            self.breaker.succeeded()
            self.answered_at = datetime.now(UTC)
        if not 200 <= answer.status < 300 and answer.status not in (404, 409, 410, 412, 422):
            _log.warning("the scheduling system answered with an error", extra={"upstreamStatus": answer.status})
        return answer

    async def _authorized(self, deadline: Deadline, *, write: bool) -> dict[str, str]:
        """The credentials of a request, obtained within its deadline."""
        try:
            async with asyncio.timeout(deadline.remaining(write=write)):
                credentials = await self._credentials.headers()
        except (TimeoutError, SystemUnavailable) as error:
            self.breaker.failed()
            if isinstance(error, SystemUnavailable):
                raise
            raise SystemUnavailable from error
        deadline.check(write=write)
        return credentials

    async def _send(
        self, deadline: Deadline, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> _Answer:
        try:
            async with (
                asyncio.timeout(deadline.remaining(write=body is not None)),
                self._http.stream(method, url, content=body, headers=headers) as response,
            ):
                body = await _body(response)
                resource = _resource(body)
                is_foreign = resource is None and bool(body)
                return _Answer(response.status_code, resource, _retry_after(response), is_foreign)
        except (httpx.HTTPError, TimeoutError):
            self.breaker.failed()
            raise

    @asynccontextmanager
    async def _place(self, seconds: float) -> AsyncIterator[None]:
        """Holds one of the concurrent requests."""
        self.breaker.admit()
        try:
            async with asyncio.timeout(min(seconds, CONNECT_SECONDS)):
                await self._places.acquire()
        except TimeoutError as error:
            raise SystemUnavailable from error
        try:
            yield
        finally:
            self._places.release()

    def _next_page(self, bundle: Resource) -> str | None:
        for link in listed(bundle.get("link")):
            if link.get("relation") == "next" and isinstance(link.get("url"), str):
                try:
                    url = str(httpx.URL(f"{self._base_url}/").join(link["url"]))
                except httpx.InvalidURL as error:
                    raise SystemUnavailable from error
                if not url.startswith((f"{self._base_url}/", f"{self._base_url}?")):
                    # Our credentials go to the configured server only.
                    raise Misconfigured("the server's links to further pages lead to another address than baseUrl")
                return url
        return None


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Cached, because loading it costs more than a request."""
    return httpx.create_ssl_context()


async def _body(response: httpx.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LARGEST_ANSWER:
            raise httpx.ReadError("the answer is too large")
    return bytes(body)


def _resource(body: bytes) -> Resource | None:
    try:
        document: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("resourceType"), str) else None


def _retry_after(response: httpx.Response) -> int:
    """RFC 9110: a number of seconds, or a date."""
    text = response.headers.get("Retry-After", "").strip()
    seconds = 2.0
    if re.fullmatch(r"[0-9]{1,9}", text):
        seconds = float(text)
    elif text:
        with suppress(ValueError, TypeError):
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    return int(min(max(seconds, 1), _LONGEST_RETRY_AFTER))
