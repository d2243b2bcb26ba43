"""Connection pool of one practice's FHIR server, with DNS lookups in a thread of their own.

In the shared thread pool, lookups that hang for one practice would block those of all others.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import httpcore
import httpx


class Connections(httpx.AsyncHTTPTransport):
    def __init__(self, authorities: ssl.SSLContext, most: int) -> None:
        super().__init__(verify=authorities)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=authorities, max_connections=most, keepalive_expiry=5.0, network_backend=_OwnLookups()
        )


class _OwnLookups(httpcore.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the backend's own parameter
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                *others, last = await _addresses(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError from error
        connect = super().connect_tcp
        share = None if timeout is None else timeout / (len(others) + 1)
        for address in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await connect(address, port, share, local_address, socket_options)
        return await connect(last, port, share, local_address, socket_options)


async def _addresses(host: str, port: int) -> list[str]:
    lookup = ThreadPoolExecutor(1, "fhir-lookup")
    try:
        found = await asyncio.get_running_loop().run_in_executor(
            lookup, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
    finally:
        lookup.shutdown(wait=False)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
