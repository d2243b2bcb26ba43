"""Sends messages to checked addresses, without redirects and with a time limit."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk import __version__
from frontdesk.domain.local_time import iso_utc
from frontdesk.outbound.checked_http import TIMEOUT_SECONDS, CheckedHttp, failure_of, tls_context
from frontdesk.outbound.targets import NOT_PUBLIC, Target, TargetError
from frontdesk.outbound.webhooks.connections import Connections, ReceiverError, ReceiverLostError
from frontdesk.outbound.webhooks.signing import signed_headers


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of an attempt. `failure` is a short text, or None if the message was received."""

    status: int | None
    milliseconds: int
    failure: str | None


class Sender:
    def __init__(self, *, allow_private: bool, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.allow_private = allow_private
        self._http = CheckedHttp(allow_private=allow_private, timeout_seconds=timeout_seconds)
        self._connections = Connections(tls_context)

    async def check(self, url: str) -> None:
        """Refuse a URL that is not allowed. A name that cannot be resolved now is accepted."""
        await self._http.check(url)

    async def check_public(self, url: str) -> None:
        """Refuse a URL unless it is https and its host has only public addresses, as seen now."""
        try:
            async with asyncio.timeout(self._http.timeout_seconds):
                await self._http.resolve(url, public_only=True)
        except (OSError, UnicodeError):  # told like a private address: names of the internal network stay unknown
            raise TargetError(NOT_PUBLIC) from None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, *, public_only: bool = False) -> Sent:
        began = time.perf_counter()
        status: int | None = None
        failure: str | None = None
        try:
            async with asyncio.timeout(self._http.timeout_seconds):
                status = await self._post(url, headers, body, public_only=public_only)
            if not 200 <= status < 300:
                failure = "redirect" if 300 <= status < 400 else "refused"
        except ReceiverError:
            failure = "no connection"
        except Exception as error:
            failure = failure_of(error)
        return Sent(status, round((time.perf_counter() - began) * 1000), failure)

    async def close(self) -> None:
        self._connections.close()
        await self._http.close()

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes, *, public_only: bool) -> int:
        target, addresses = await self._http.resolve(url, public_only=public_only)
        request = _request(target, headers, body)
        for address in addresses:
            if (kept := self._connections.kept(target, address)) is not None:
                try:
                    return await kept.post(request)
                except ReceiverLostError:  # the receiver closed it while it was idle
                    continue
        *others, last = addresses
        for address in others:
            try:
                connection = await self._connections.open(target, address)
            except ReceiverError:
                continue
            return await connection.post(request)
        return await (await self._connections.open(target, last)).post(request)


async def send_test(
    sender: Sender, url: str, keys: Sequence[bytes], now: datetime, *, public_only: bool = False
) -> Sent:
    """Send a signed test message."""
    body = orjson.dumps({"type": "webhook.test", "timestamp": iso_utc(now), "data": {}})
    headers = signed_headers(keys, f"evt_test_{secrets.token_hex(8)}", now, body)
    return await sender.send(url, headers, body, public_only=public_only)


def _request(target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = {
        "Host": target.authority,
        "User-Agent": f"frontdesk/{__version__}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {target.path} HTTP/1.1\r\n{head}\r\n".encode() + body
