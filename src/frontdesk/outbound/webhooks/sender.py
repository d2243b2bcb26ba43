"""Sends one message to one checked address, without redirects and with a time limit."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.domain.local_time import iso_utc
from frontdesk.outbound.checked_http import TIMEOUT_SECONDS, CheckedHttp, failure_of
from frontdesk.outbound.webhooks.signing import signed_headers


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of an attempt. `failure` is a short text, or None if the message was received."""

    status: int | None
    milliseconds: int
    failure: str | None


class Sender:
    def __init__(self, *, allow_private: bool, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._http = CheckedHttp(allow_private=allow_private, timeout_seconds=timeout_seconds)

    async def check(self, url: str) -> None:
        """Refuse a URL that is not allowed. A name that cannot be resolved now is accepted."""
        await self._http.check(url)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        began = time.perf_counter()
        status: int | None = None
        failure: str | None = None
        try:
            async with asyncio.timeout(self._http.timeout_seconds):
                answer = await self._http.open("POST", url, {"Content-Type": "application/json", **headers}, body)
                status = answer.status_code
                await answer.aclose()
            if not 200 <= status < 300:
                failure = "redirect" if 300 <= status < 400 else "refused"
        except Exception as error:
            failure = failure_of(error)
        return Sent(status, round((time.perf_counter() - began) * 1000), failure)

    async def close(self) -> None:
        await self._http.close()


async def send_test(sender: Sender, url: str, keys: Sequence[bytes], now: datetime) -> Sent:
    """Send a signed test message."""
    body = orjson.dumps({"type": "webhook.test", "timestamp": iso_utc(now), "data": {}})
    return await sender.send(url, signed_headers(keys, f"evt_test_{secrets.token_hex(8)}", now, body), body)
