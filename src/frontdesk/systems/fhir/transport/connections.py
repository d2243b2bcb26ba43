"""Connection pool of one practice's FHIR server, whose lookups do not delay those of other practices."""

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import httpcore
import httpx

from frontdesk.host_lookups import HostLookups


class Connections(httpx.AsyncHTTPTransport):
    def __init__(self, authorities: ssl.SSLContext, limit: int) -> None:
        super().__init__(verify=authorities)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=authorities, max_connections=limit, keepalive_expiry=5.0, network_backend=_OwnLookups()
        )


class _OwnLookups(httpcore.AnyIOBackend):
    def __init__(self) -> None:
        self._lookups = HostLookups()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the backend's own parameter
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # as in the backend
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                *others, last = await self._lookups.addresses(host)
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
