"""Splits the bytes of a connection into the messages of PostgreSQL's protocol, or into the parts of HTTP messages."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Sender = Literal["client", "server"]

_LENGTH = struct.Struct("!I")
_UNTYPED = {80877103: "SSLRequest", 80877104: "GSSENCRequest", 80877102: "CancelRequest"}
_SHUTDOWN = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
SHUTDOWN = b"E" + _LENGTH.pack(len(_SHUTDOWN) + 4) + _SHUTDOWN


@dataclass(frozen=True)
class Message:
    sender: Sender
    kind: str
    content: bytes

    def __str__(self) -> str:
        return f"{self.sender} {self.kind}"


class Framing(Protocol):
    """The state of one connection."""

    def split(self, sender: Sender, data: bytes) -> Iterator[Message]:
        """The messages that are complete with these bytes."""
        ...


class PostgresFraming:
    """Typed messages, after the untyped ones that open a connection."""

    def __init__(self) -> None:
        self._buffers = {"client": bytearray(), "server": bytearray()}
        self._opened = False
        self._answers_of_a_byte = 0

    def split(self, sender: Sender, data: bytes) -> Iterator[Message]:
        buffer = self._buffers[sender]
        buffer += data
        while True:
            if sender == "server" and self._answers_of_a_byte and buffer:
                self._answers_of_a_byte -= 1
                kind, length = "refusal of encryption", 1
            elif sender == "client" and not self._opened:
                if len(buffer) < 8:
                    return
                length = _LENGTH.unpack_from(buffer)[0]
                kind = _UNTYPED.get(_LENGTH.unpack_from(buffer, 4)[0], "startup")
            else:
                if len(buffer) < 5:
                    return
                kind, length = chr(buffer[0]), 1 + _LENGTH.unpack_from(buffer, 1)[0]
            if len(buffer) < length:
                return
            self._opened |= kind == "startup"
            self._answers_of_a_byte += kind in ("SSLRequest", "GSSENCRequest")
            yield Message(sender, kind, bytes(buffer[:length]))
            del buffer[:length]


class HttpFraming:
    """The first line, each half of the other lines, and each half of the body."""

    def __init__(self) -> None:
        self._buffers = {"client": bytearray(), "server": bytearray()}

    def split(self, sender: Sender, data: bytes) -> Iterator[Message]:
        buffer = self._buffers[sender]
        buffer += data
        while (end := buffer.find(b"\r\n\r\n") + 4) > 3:
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", buffer[:end])
            whole = end + (int(length[1]) if length else 0)
            if len(buffer) < whole:
                return
            line = buffer.find(b"\r\n") + 2
            parts = {"line": line, "fields": (line + end) // 2, "end of head": end, "body": (end + whole) // 2}
            begin = 0
            for kind, until in {**parts, "end of body": whole}.items():
                if until > begin:
                    yield Message(sender, kind, bytes(buffer[begin:until]))
                begin = until
            del buffer[:whole]
