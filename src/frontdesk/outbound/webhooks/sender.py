"""Sends one message to one checked address, without redirects and with a time limit."""

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING

import orjson

from frontdesk import __version__
from frontdesk.domain.local_time import iso_utc
from frontdesk.outbound.webhooks.signing import signed_headers
from frontdesk.outbound.webhooks.targets import Target, TargetError, addresses_of, parse_target

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 10.0
MOST_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of an attempt. `failure` is a short text, or None if the message was received."""

    status: int | None
    milliseconds: int
    failure: str | None


class Sender:
    """Opens a connection per message: a pooled one could be reused for another host at the same address."""

    def __init__(self, *, allow_private: bool, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._allow_private = allow_private
        self._timeout = timeout_seconds
        # A separate thread pool: a hanging name server must not delay other work.
        self._lookups = ThreadPoolExecutor(MOST_AT_ONCE, "webhook-lookup")
        self._client: httpx.AsyncClient | None = None

    async def check(self, url: str) -> None:
        """Refuse a URL that is not allowed. A name that cannot be resolved now is accepted."""
        target = parse_target(url, allow_private=self._allow_private)
        with contextlib.suppress(OSError, UnicodeError):
            await addresses_of(target, self._lookups, allow_private=self._allow_private)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        if "httpx" not in sys.modules:  # slow to import, and few practices have webhooks
            await asyncio.to_thread(import_module, "httpx")
        import httpx

        began = time.perf_counter()
        status: int | None = None
        failure: str | None = None
        try:
            async with asyncio.timeout(self._timeout):
                target = parse_target(url, allow_private=self._allow_private)
                addresses = await addresses_of(target, self._lookups, allow_private=self._allow_private)
                status = await self._post(target, addresses, headers, body)
            if not 200 <= status < 300:
                failure = "redirect" if 300 <= status < 400 else "refused"
        except TargetError:
            failure = "forbidden address"
        except (TimeoutError, httpx.TimeoutException):
            failure = "no answer in time"
        except (OSError, UnicodeError):
            failure = "unknown host"
        except (httpx.HTTPError, httpx.InvalidURL):
            failure = "no connection"
        return Sent(status, round((time.perf_counter() - began) * 1000), failure)

    async def close(self) -> None:
        self._lookups.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, target: Target, addresses: list[str], headers: Mapping[str, str], body: bytes) -> int:
        """Send the message to the first address that accepts a connection, never twice."""
        import httpx

        *others, last = addresses
        for address in others:
            with contextlib.suppress(httpx.ConnectError):
                return await self._post_to(target, address, headers, body)
        return await self._post_to(target, last, headers, body)

    async def _post_to(self, target: Target, address: str, headers: Mapping[str, str], body: bytes) -> int:
        host = f"[{address}]" if ":" in address else address
        fields = {
            "Host": target.authority,
            "Content-Type": "application/json",
            "User-Agent": f"frontdesk/{__version__}",
            **headers,
        }
        url = f"{target.scheme}://{host}:{target.port}{target.path}"
        extensions = {"sni_hostname": target.host}  # verify the certificate against the name, not the address
        async with self._opened().stream("POST", url, content=body, headers=fields, extensions=extensions) as answer:
            return answer.status_code

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self._timeout,
                follow_redirects=False,
                trust_env=False,  # a proxy would resolve the name again
                verify=httpx.create_ssl_context(),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
        return self._client


async def send_test(sender: Sender, url: str, keys: Sequence[bytes], now: datetime) -> Sent:
    """Send a signed test message."""
    body = orjson.dumps({"type": "webhook.test", "timestamp": iso_utc(now), "data": {}})
    return await sender.send(url, signed_headers(keys, f"evt_test_{secrets.token_hex(8)}", now, body), body)
