"""A mail server that keeps what it is given."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailServer:
    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    refuses: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := (await reader.readline()).strip().upper():
            if line == b"DATA":
                writer.write(b"354 go on\r\n")
                text = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(text[:-5], policy=policy.default))  # type: ignore[arg-type]
            writer.write(b"550 no\r\n" if self.refuses and line.startswith(b"RCPT") else b"250 ok\r\n")
            if line == b"QUIT":
                break
        writer.close()


@asynccontextmanager
async def running_mail_server() -> AsyncIterator[MailServer]:
    kept = MailServer()
    server = await asyncio.start_server(kept.serve, "127.0.0.1", 0)
    kept.port = server.sockets[0].getsockname()[1]
    try:
        yield kept
    finally:
        server.close()
