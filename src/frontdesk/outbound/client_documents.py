"""Client id metadata documents: fetched from checked addresses, and cached as their headers allow."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Mapping

import orjson

from frontdesk.access.assistants.applications import DocumentUnavailable
from frontdesk.cache import BoundedCache
from frontdesk.outbound.checked_http import CheckedHttp, FetchError, failure_of, read_content
from frontdesk.outbound.targets import TargetError

MAX_DOCUMENT_BYTES = 5 * 1024
_SECONDS = 5.0
_MAX_FETCHES = 4
_CACHED = 1000
_FRESH_SECONDS, _MAX_SECONDS = 300, 86_400
_MAX_AGE = re.compile(r"\bmax-age=([0-9]{1,9})")


class ClientDocuments:
    def __init__(self, http: CheckedHttp, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        self._monotonic = monotonic
        self._documents: BoundedCache[str, tuple[float, Mapping[str, object]]] = BoundedCache(_CACHED)  # until when
        self._fetching = asyncio.Semaphore(_MAX_FETCHES)

    async def fetch(self, url: str) -> Mapping[str, object]:
        """The document; DocumentUnavailable unless the answer is 200 and a small JSON object. Errors are not cached."""
        known = self._documents.get(url)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        async with self._fetching:
            try:
                async with asyncio.timeout(_SECONDS):
                    content, caching = await self._content(url)
            except Exception as error:
                reason = _reason(error)
                raise DocumentUnavailable(f"The document at the client id cannot be fetched: {reason}.") from error
        try:
            document = orjson.loads(content)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise DocumentUnavailable("The document at the client id is not a JSON object.")
        seconds = _fresh_seconds(caching)
        if seconds:
            self._documents.put(url, (self._monotonic() + seconds, document))
        return document

    async def _content(self, url: str) -> tuple[bytes, str]:
        answer = await self._http.open("GET", url, {"Accept": "application/json"})
        async with contextlib.aclosing(answer):
            if answer.status_code != 200:
                raise FetchError("the answer is a redirect" if answer.is_redirect else "the answer is not 200")
            return await read_content(answer, MAX_DOCUMENT_BYTES), answer.headers.get("cache-control", "")


def _reason(error: Exception) -> str:
    """Does not tell a name of the internal network from one that does not exist: anybody may ask for a document."""
    if isinstance(error, TargetError | OSError | UnicodeError) and not isinstance(error, TimeoutError):
        return "the host is unknown or not public"
    return failure_of(error)


def _fresh_seconds(cache_control: str) -> int:
    directives = cache_control.lower()
    if "no-store" in directives or "no-cache" in directives:
        return 0
    found = _MAX_AGE.search(directives)
    return _FRESH_SECONDS if found is None else min(int(found.group(1)), _MAX_SECONDS)
