"""Connects to the host of a database address that accepts writes, and remembers it for the next connection."""

import asyncio
import re
import socket
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg import exceptions as pg

ACCEPTED = "read-write"  # target_session_attrs
HOST_SECONDS = 3.0  # for each host, where there are several: the next one is tried then

# A network that swallows packets must not look like a slow statement. Seconds; see tcp(7).
_KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
_USER_TIMEOUT_MILLISECONDS = 6000

# Another host may do what this one cannot do now.
_NEXT_HOST = (pg.TargetServerAttributeNotMatched, pg.CannotConnectNowError, pg.PostgresConnectionError, OSError)


class Hosts:
    """The hosts of an address, the last good one first. A standby is refused: reads must see the last write."""

    def __init__(self, dsn: str) -> None:
        self._dsns = addresses(dsn)

    @property
    def has_alternatives(self) -> bool:
        return len(self._dsns) > 1

    async def connect(self, *, timeout: float, **options: object) -> "asyncpg.Connection[asyncpg.Record]":  # noqa: ASYNC109 - as in asyncpg
        """Tries every host. `timeout` is for the only host; each of several has `HOST_SECONDS`."""
        errors: list[Exception] = []
        for dsn in list(self._dsns):
            try:
                connection = await _connect(dsn, HOST_SECONDS if self.has_alternatives else timeout, options)
            except _NEXT_HOST as error:
                self._move(dsn, to_front=False)
                errors.append(error)
            else:
                self._move(dsn, to_front=True)
                return connection
        standbys = [error for error in errors if isinstance(error, pg.TargetServerAttributeNotMatched)]
        raise (standbys or errors)[0]

    @property
    def last_good(self) -> str:
        return self._dsns[0]

    async def accepting_writes(self, **options: object) -> set[str]:
        """The addresses of the hosts that accept writes now. They are tried first from now on."""
        asked = list(self._dsns)
        answers = await asyncio.gather(*(_accepts_writes(dsn, options) for dsn in asked))
        found = [dsn for dsn, accepts in zip(asked, answers, strict=True) if accepts]
        self._dsns = [*found, *(dsn for dsn in self._dsns if dsn not in found)]
        return set(found)

    def _move(self, dsn: str, *, to_front: bool) -> None:
        others = [other for other in self._dsns if other != dsn]
        self._dsns = [dsn, *others] if to_front else [*others, dsn]


async def _accepts_writes(dsn: str, options: dict[str, object]) -> bool:
    try:
        connection = await _connect(dsn, HOST_SECONDS, options)
    except _NEXT_HOST:
        return False
    except pg.PostgresError:  # it answers, but has no connection left, for example
        return True
    connection.terminate()
    return True


async def _connect(dsn: str, seconds: float, options: dict[str, Any]) -> "asyncpg.Connection[asyncpg.Record]":
    options = {**options, "timeout": seconds, "target_session_attrs": ACCEPTED}
    connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(dsn, **options)
    _notice_lost_peers(connection._transport.get_extra_info("socket"))  # type: ignore[attr-defined]  # private
    return connection


def _notice_lost_peers(wire: socket.socket) -> None:
    if wire.family == socket.AF_UNIX:
        return
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _KEEPALIVE.items():
        if hasattr(socket, name):
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MILLISECONDS)


def addresses(dsn: str) -> list[str]:
    """An address for each host that `dsn` names, in its host part or in the parameter `host`."""
    scheme, separator, rest = dsn.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]  # newer versions of urlsplit refuse [::1] and another host
    login, at, hosts = authority.rpartition("@")
    if "," in hosts:
        tail = rest.removeprefix(authority)
        return [f"{scheme}{separator}{login}{at}{host}{tail}" for host in hosts.split(",")]
    url = urlsplit(dsn)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    names, ports = query.get("host", "").split(","), query.get("port", "").split(",")
    if hosts or len(names) == 1:
        return [dsn]
    if len(ports) == 1:
        ports *= len(names)
    return [
        urlunsplit(url._replace(query=urlencode({**query, "host": name, "port": port}, quote_via=quote)))
        for name, port in zip(names, ports, strict=True)
    ]
