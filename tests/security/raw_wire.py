"""Talking to a server without a library that would keep one from breaking the rules."""

import asyncio
import contextlib
import re
import socket
import time
from dataclasses import dataclass

from tests.security.real_server import RealServer


@dataclass
class Exchange:
    sent: int
    received: bytes
    closed: bool
    seconds: float

    @property
    def status(self) -> int:
        found = re.match(rb"HTTP/1\.1 (\d{3}) ", self.received)
        return int(found[1]) if found else 0

    @property
    def code(self) -> str:
        found = re.search(rb'"code":"(\w+)"', self.received)
        return found[1].decode() if found else ""


def exchange(
    server: RealServer, head: str, body: bytes = b"", repeat: int = 1, timeout_seconds: float = 20
) -> Exchange:
    """Sends a head and so many pieces of body, as far as the server takes them; reads until it closes."""
    began = time.monotonic()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=timeout_seconds)
    sent, received, closed = 0, b"", False
    with connection:
        try:
            connection.sendall(head.encode("latin-1"))
            for _ in range(repeat if body else 0):
                connection.sendall(body)
                sent += len(body)
        except (BrokenPipeError, ConnectionResetError):
            closed = True
        try:
            while piece := connection.recv(65536):
                received += piece
            closed = True
        except ConnectionResetError:
            closed = True
        except TimeoutError:
            pass
    return Exchange(sent, received, closed, time.monotonic() - began)


def prompt(server: RealServer) -> float:
    """Seconds within which an answer comes that waits for nothing, by what a plain request takes here and now."""
    plain = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    return 5 + 100 * max(exchange(server, plain).seconds for _ in range(3))


async def alive(server: RealServer) -> None:
    """A database that answers late makes a server unready for a moment."""
    async with server.http() as http, asyncio.timeout(30):
        while (await http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.1)


def dripping(server: RealServer, head: str, drop: bytes, timeout_seconds: float) -> Exchange:
    """Sends a drop every half second."""
    began = time.monotonic()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.settimeout(0.5)
    received, sent, closed = b"", 0, False
    with connection:
        connection.sendall(head.encode())
        while not closed and time.monotonic() - began < timeout_seconds:
            try:
                if drop:
                    connection.sendall(drop)
                    sent += 1
                piece = connection.recv(65536)
                received += piece
                closed = not piece
            except TimeoutError:
                continue
            except OSError:
                closed = True
    return Exchange(sent, received, closed, time.monotonic() - began)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


async def next_answer(reader: asyncio.StreamReader, *, has_body: bool = True) -> Answer:
    """The next answer on a connection that may go on."""
    async with asyncio.timeout(30):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *fields = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        length = int(headers.get("content-length", 0)) if has_body else 0
        return Answer(int(status.split()[1]), headers, await reader.readexactly(length))


async def is_at_its_end(reader: asyncio.StreamReader) -> bool:
    """Whether the server says nothing more and closes."""
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionResetError):
            return await reader.read() == b""
    return True
