"""HTTP requests to checked addresses: one connection per request, without redirects or proxies."""

import asyncio
import contextlib
import ssl
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from frontdesk import __version__
from frontdesk.host_lookups import HostLookups
from frontdesk.outbound.targets import Target, TargetError, addresses_of, parse_target

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 10.0
_MAX_DOCUMENT_BYTES = 64 * 1024


class FetchError(Exception):
    """The document could not be fetched; the message is a short text."""


class CheckedHttp:
    """Opens a connection per request: a pooled one could be reused for another host at the same address."""

    def __init__(self, *, allow_private: bool, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.timeout_seconds = timeout_seconds
        self._allow_private = allow_private
        self._lookups = HostLookups()
        self._client: httpx.AsyncClient | None = None

    async def check(self, url: str) -> None:
        """Refuse a URL that is not allowed. A name that cannot be resolved now is accepted."""
        target = parse_target(url, allow_private=self._allow_private)
        with contextlib.suppress(OSError, UnicodeError):
            await addresses_of(target, self._lookups, allow_private=self._allow_private)

    async def resolve(self, url: str, *, public_only: bool = False) -> tuple[Target, list[str]]:
        """The parsed URL, and the addresses of its host, which are all allowed."""
        allow_private = self._allow_private and not public_only
        target = parse_target(url, allow_private=allow_private)
        return target, await addresses_of(target, self._lookups, allow_private=allow_private)

    async def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> "httpx.Response":
        """The response of the first address that accepts a connection, unread: the caller closes it.

        The request is never sent twice.
        """
        await _import_httpx()
        import httpx

        target, (*others, last) = await self.resolve(url)
        for address in others:
            with contextlib.suppress(httpx.ConnectError):
                return await self._open_at(address, method, target, headers, body)
        return await self._open_at(last, method, target, headers, body)

    async def fetch(self, url: str) -> bytes:
        """The document at the URL; FetchError unless the answer is 200 and small."""
        try:
            async with asyncio.timeout(self.timeout_seconds):
                answer = await self.open("GET", url, {"Accept": "application/json"})
                async with contextlib.aclosing(answer):
                    if answer.status_code != 200:
                        raise FetchError("refused")
                    return await read_content(answer, _MAX_DOCUMENT_BYTES)
        except Exception as error:
            raise FetchError(failure_of(error)) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _open_at(
        self, address: str, method: str, target: Target, headers: Mapping[str, str], body: bytes | None
    ) -> "httpx.Response":
        host = f"[{address}]" if ":" in address else address
        client = self._opened()
        request = client.build_request(
            method,
            f"{target.scheme}://{host}:{target.port}{target.path}",
            content=body,
            headers={
                "Host": target.authority,
                "User-Agent": f"frontdesk/{__version__}",
                "Accept-Encoding": "identity",
                **headers,
            },
            extensions={"sni_hostname": target.host},  # verify the certificate against the name, not the address
        )
        return await client.send(request, stream=True)

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self.timeout_seconds,
                follow_redirects=False,
                trust_env=False,  # a proxy would resolve the name again
                verify=httpx.create_ssl_context(),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
        return self._client


async def tls_context() -> ssl.SSLContext:
    """Trusts the usual authorities, or those of SSL_CERT_FILE."""
    await _import_httpx()
    import httpx

    return httpx.create_ssl_context()


async def _import_httpx() -> None:
    if "httpx" not in sys.modules:  # slow to import, and few practices need it
        await asyncio.to_thread(import_module, "httpx")


async def read_content(answer: "httpx.Response", limit: int) -> bytes:
    """The body of an answer; FetchError if it is larger, or compressed: a few bytes could expand to gigabytes."""
    if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise FetchError("it is compressed")
    content = bytearray()
    async for part in answer.aiter_bytes():
        content += part
        if len(content) > limit:
            raise FetchError("it is too large")
    return bytes(content)


def failure_of(error: Exception) -> str:
    """A short text about a request that got no response; other errors are raised again."""
    match error:
        case FetchError():
            return str(error)
        case TargetError():
            return "forbidden address"
        case TimeoutError():
            return "no answer in time"
        case OSError() | UnicodeError():
            return "unknown host"
    import httpx

    match error:
        case httpx.TimeoutException():
            return "no answer in time"
        case httpx.HTTPError() | httpx.InvalidURL():
            return "no connection"
    raise error
