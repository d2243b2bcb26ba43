"""Webhooks: how fast a backlog of events, in tables without statistics, reaches a receiver on this machine."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import practices
from measuring import Progress, Row, Sizes
from service import Service

from frontdesk.access.keys.encryption import load_secret_key
from frontdesk.access.keys.ring import KeyRing
from frontdesk.outbound.webhooks.endpoints import add_endpoint
from frontdesk.settings import Settings
from frontdesk.store.database import Database

PENDING = 100_000
_ENDPOINTS = 8
_WARM_SECONDS = 3.0
_FILL = """
ALTER TABLE outbox SET (autovacuum_enabled = off);
ALTER TABLE webhook_delivery SET (autovacuum_enabled = off);
INSERT INTO outbox (practice_id, type, subject, occurred_at)
SELECT {practice}, 'appointment.booked', jsonb_build_object('appointmentId', 'apt_' || n), now()
FROM generate_series(1, {events}) n
"""


class Receiver(asyncio.Protocol):
    """Counts requests, and answers each as soon as it may be whole."""

    received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._data.endswith(b"}"):  # the body is a JSON document
            self._data = b""
            Receiver.received += 1
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def backlog(folder: Path, sizes: Sizes, progress: Progress) -> list[Row]:
    service = Service(folder, workers=2)
    service.environment |= {"FRONTDESK_WEBHOOK_ALLOW_PRIVATE": "true"}
    with _receiving() as port:
        try:
            service.start()
            practice = service.import_practice(practices.office("hooked"))
            progress.at("filling")
            service.execute(_FILL.format(practice=practice, events=PENDING))
            _add_endpoints(service, practice, port)
            time.sleep(_WARM_SECONDS)
            before, began = Receiver.received, time.monotonic()
            time.sleep(max(5.0, sizes.seconds * 20))
            rate = (Receiver.received - before) / (time.monotonic() - began)
        finally:
            service.stop()
    title = f"webhook deliveries a second of {PENDING:,} pending events to {_ENDPOINTS} endpoints, without statistics"
    return [Row("webhook backlog", title, rate, unit="/s", figures=f"{rate:,.0f} a second")]


def _add_endpoints(service: Service, practice: int, port: int) -> None:
    async def add(database: Database, _ring: KeyRing) -> None:
        cipher = load_secret_key(Settings(data_dir=service.folder))
        for number in range(_ENDPOINTS):
            url = f"http://127.0.0.1:{port}/{number}"
            await add_endpoint(database, cipher, practice, url, (), datetime.now(UTC))

    service.with_keys(add)
    service.query("UPDATE webhook_endpoint SET after_event_id = 0 WHERE practice_id = $1", practice)


@contextmanager
def _receiving() -> Iterator[int]:
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Receiver, "127.0.0.1", 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
