"""CPU time that one call costs the service's process, by operation, warm and not: the whole path from ASGI to ASGI.

Runs the application in this process on an embedded PostgreSQL of its own. Time spent in PostgreSQL and waiting for it
is not counted. Prints the least and the median of many short rounds: the least is what the work costs when nobody else
disturbs the caches.

    .venv/bin/python bench/operation_cpu.py
"""

import itertools
import logging
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import orjson
import uvloop

from frontdesk.access.clients.records import add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import build_app, build_service
from frontdesk.demo import demo_bookings, demo_practice
from frontdesk.settings import Settings
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from frontdesk.store.practices import import_practice

ROUNDS, CALLS = 40, 50


class Caller:
    """Calls an ASGI application with nothing in between."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._headers = [(b"host", b"bench"), (b"authorization", f"Bearer {token}".encode()), (b"accept", b"*/*")]

    async def get(self, path: str, query: dict[str, Any] | None = None) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": urlencode(query or {}).encode(), "headers": self._headers, "http_version": "1.1",
            "scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        await self._app(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]


async def cpu_microseconds(call: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            await call()
        rounds.append((time.process_time() - began) / CALLS * 1e6)
    return min(rounds), statistics.median(rounds)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres")
        postgres.start()
        await migrate(postgres.dsn(OWNER_ROLE))
        database = Database(postgres.dsn(SERVICE_ROLE))
        await database.open()
        settings = Settings(data_dir=Path(folder), base_url="http://bench")
        service = build_service(settings, database)
        await service.ring.load()
        file = demo_practice(datetime.now(UTC).date())
        await import_practice(database, file, datetime.now(UTC))
        print(f"{len(demo_bookings(file, datetime.now(UTC).date()))} bookings in the demo")
        client, secret = await add_client(
            database,
            service.ring,
            practice="demo",
            name="bench",
            grant="integration",
            scopes=SCOPES,
            per_minute=10**9,
            quota=10**12,
        )
        app = build_app(service)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://bench")
        form = {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": secret}
        caller = Caller(app, (await http.post("/oauth/token", data=form)).json()["access_token"])
        logging.getLogger("frontdesk.request").setLevel(logging.WARNING)

        first = datetime.now(UTC).date() + timedelta(days=1)
        found = orjson.loads(
            (await caller.get("/api/slots/first-available", {"visitTypeId": 21, "procedureId": 102}))[1]
        )
        one = found["items"][0]
        query = {k: one[k] for k in ("providerId", "locationId", "visitTypeId", "procedureId")}
        query |= {"from": first.isoformat(), "to": (first + timedelta(days=14)).isoformat(), "limit": 50}
        status, body = await caller.get("/api/slots", query)
        print("search_slots:", status, len(orjson.loads(body)["items"]), "items")
        never_asked = (dict(pairs) for pairs in itertools.permutations(query.items()))

        async def unseen() -> None:
            service.engine.slot_json._known.clear()
            await caller.get("/api/slots", next(never_asked))

        cases: dict[str, Callable[[], Awaitable[Any]]] = {
            "search_slots, 14 days, 50 items": lambda: caller.get("/api/slots", query),
            "the same, never asked before": lambda: caller.get("/api/slots", next(never_asked)),
            "the same, no slot shown before": unseen,
            "get_slot": lambda: caller.get(f"/api/slots/{one['id']}"),
            "find_first_available": lambda: caller.get(
                "/api/slots/first-available", {"visitTypeId": 21, "procedureId": 102}
            ),
            "list_providers": lambda: caller.get("/api/providers"),
            "get_capabilities": lambda: caller.get("/api/capabilities"),
        }
        for name, call in cases.items():
            await call()
            least, median = await cpu_microseconds(call)
            print(f"{name:36} {least:6.0f} us of CPU at least, {median:6.0f} in the median", flush=True)
        await http.aclose()
        await database.close()
        postgres.stop()


if __name__ == "__main__":
    uvloop.run(main())
