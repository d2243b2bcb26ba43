"""Checks the Host and Origin headers against the allowed hosts and origins, which prevents DNS rebinding.

Hosts are compared without their port. A request without an Origin header does not come from a web page.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from frontdesk.doors.mcp.messages import INVALID_REQUEST, Rejection
from frontdesk.settings import Settings
from frontdesk.web.http_request import decoded, origin_of

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class Origins:
    def __init__(self, settings: Settings) -> None:
        public = urlsplit(settings.public_url)
        hosts = {public.hostname, *(host.lower() for host in settings.allowed_hosts)}
        self._local = settings.host in _LOOPBACK or public.hostname in _LOOPBACK
        self._hosts = frozenset(hosts | _LOOPBACK if self._local else hosts)
        self._origins = frozenset(origin_of(url) for url in (settings.public_url, *settings.allowed_origins))
        self._refusal = lru_cache(maxsize=16)(self._check_headers)

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        refusal = self._refusal(headers.get(b"host"), headers.get(b"origin"))
        if refusal is not None:
            raise Rejection(INVALID_REQUEST, refusal[1], status=refusal[0])

    def _check_headers(self, host_header: bytes | None, origin_header: bytes | None) -> tuple[int, str] | None:
        host, origin = decoded(host_header), decoded(origin_header)
        if _hostname(f"//{host or ''}") not in self._hosts:
            return 421, "This server does not answer under the name in the Host header."
        if origin is None or origin_of(origin) in self._origins or (self._local and _hostname(origin) in _LOOPBACK):
            return None
        return 403, "Pages of this origin may not call this server."


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
