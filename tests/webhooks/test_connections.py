"""Connections to receivers are kept, but only for the same host at the same address."""

import asyncio
from collections.abc import Sequence

import pytest

from frontdesk.outbound.webhooks.sender import Sender
from tests.support.listening import listening
from tests.webhooks.test_targets import resolving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request with the next of `answers`, or the last again, and keeps or closes the connection."""

    def __init__(self, answers: Sequence[bytes] = (OK,), *, requests_per_connection: int = 1000) -> None:
        self.answers = list(answers)
        self.requests_per_connection = requests_per_connection
        self.connections: list[list[str]] = []  # the hosts that were asked for over each

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hosts: list[str] = []
        self.connections.append(hosts)
        for _ in range(self.requests_per_connection):
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            except asyncio.IncompleteReadError:
                return
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
            hosts.append(head.split("host: ")[1].split(":")[0])
            writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
            await writer.drain()


@pytest.fixture
async def sender(monkeypatch: pytest.MonkeyPatch) -> Sender:
    monkeypatch.setattr("frontdesk.outbound.webhooks.connections.IDLE_SECONDS", 60.0)  # longer than any test takes
    return Sender(allow_private=True, timeout_seconds=30)


async def send(sender: Sender, port: int, *hosts: str) -> list[str | int | None]:
    """What became of one message to each host, one after the other."""
    sent = [await sender.send(f"http://{host}:{port}/", {}, b"{}") for host in hosts]
    return [one.failure or one.status for one in sent]


async def test_a_connection_is_kept_for_its_host_and_no_other(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["127.0.0.1"])
    server = Server()
    async with listening(server.serve) as port:
        assert await send(sender, port, "one.example", "two.example", "one.example", "two.example") == [200] * 4
        await sender.close()
    assert server.connections == [["one.example"] * 2, ["two.example"] * 2]


async def test_a_kept_connection_is_not_used_when_the_name_has_moved(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    server = Server()
    async with listening(server.serve) as port:
        assert await send(sender, port, "one.example", "one.example") == [200, "no connection"]
        await sender.close()
    assert server.connections == [["one.example"]]


async def test_a_message_is_sent_again_when_its_kept_connection_was_closed(sender: Sender) -> None:
    server = Server(requests_per_connection=1)
    async with listening(server.serve) as port:
        assert await send(sender, port, *["127.0.0.1"] * 4) == [200] * 4
        await sender.close()
    assert server.connections == [["127.0.0.1"]] * 4


async def test_a_new_connection_that_is_closed_without_an_answer_is_a_failure(sender: Sender) -> None:
    server = Server([b""], requests_per_connection=1)
    async with listening(server.serve) as port:
        assert await send(sender, port, "127.0.0.1") == ["no connection"]
        await sender.close()
    assert len(server.connections) == 1


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 200),
        (OK + OK, 200),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70000, 200),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n", 200),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000, "no connection"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "no connection"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no connection"),
    ],
    ids=["asked-to-close", "two-answers", "large", "unfinished", "unbounded", "large-head", "upgrade", "no-http"],
)
async def test_a_connection_is_not_kept_after_an_answer_that_leaves_its_state_open(
    sender: Sender, answer: bytes, result: str | int
) -> None:
    server = Server([answer, OK])
    async with listening(server.serve) as port:
        assert await send(sender, port, "127.0.0.1", "127.0.0.1") == [result, 200]
        await sender.close()
    assert len(server.connections) == 2


async def test_interim_answers_are_skipped(sender: Sender) -> None:
    server = Server([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK])
    async with listening(server.serve) as port:
        assert await send(sender, port, "127.0.0.1", "127.0.0.1") == [200, 200]
        await sender.close()
    assert len(server.connections) == 1


async def test_an_idle_connection_is_closed_after_a_while(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.outbound.webhooks.connections.IDLE_SECONDS", 0.0)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await reader.read(-1)
        ended.set()

    async with listening(serve) as port:
        await send(sender, port, "127.0.0.1")
        await asyncio.wait_for(ended.wait(), 30)
        await sender.close()
