"""Key sets of clients, fetched from the URLs that clients registered and cached for a few minutes."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frontdesk.access.clients.public_keys import key_of, read_jwks
from frontdesk.access.clients.validation import ClientError
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.outbound.checked_http import CheckedHttp, FetchError

FRESH_SECONDS = 300.0
RETRY_SECONDS = 30.0  # at the earliest, after a failure or for a key id that is not in the key set
_CACHED = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Fetched:
    at: float
    jwks: Mapping[str, object] | None  # None: it could not be fetched


class KeySets:
    def __init__(self, http: CheckedHttp, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        self._monotonic = monotonic
        self._fetched: BoundedCache[str, _Fetched] = BoundedCache(_CACHED)  # by URL
        self._fetching: dict[str, asyncio.Task[_Fetched]] = {}

    async def at(self, url: str, kid: str) -> Mapping[str, object]:
        """The key set at the URL, fetched again if it is old or does not have the key id."""
        fetched = self._fetched.get(url)
        if fetched is None or self._is_old(fetched, kid):
            if (task := self._fetching.get(url)) is None:
                task = self._fetching[url] = asyncio.create_task(self._fetch(url))
            fetched = await asyncio.shield(task)
        if fetched.jwks is None:
            detail = "The client's key set cannot be fetched at the moment."
            raise Problem("upstream_unavailable", detail, retry_after=round(RETRY_SECONDS))
        return fetched.jwks

    def _is_old(self, fetched: _Fetched, kid: str) -> bool:
        lacks_key = fetched.jwks is None or key_of(fetched.jwks, kid) is None
        return self._monotonic() - fetched.at >= (RETRY_SECONDS if lacks_key else FRESH_SECONDS)

    async def _fetch(self, url: str) -> _Fetched:
        began = self._monotonic()
        try:
            fetched = _Fetched(began, read_jwks(await self._http.fetch(url)))
        except (FetchError, ClientError) as error:
            _log.warning("a client's key set could not be fetched: %s", error)
            fetched = _Fetched(began, None)
        finally:
            del self._fetching[url]
        self._fetched.put(url, fetched)
        return fetched


async def read_key_set(http: CheckedHttp, url: str) -> None:
    """Checks that there is a usable key set at the URL; ClientError if not."""
    await http.check(url)
    try:
        read_jwks(await http.fetch(url))
    except FetchError as error:
        raise ClientError(f"The key set cannot be fetched: {error}.", "jwks") from None
