"""A real server for clients that nobody here wrote: a process of its own, real HTTP, a practice and credentials."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from frontdesk.access.clients.records import add_client, trust_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import Service, build_app, build_service
from frontdesk.practice_file import parse
from frontdesk.serving.connection import Connection, WorkerState
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN
from tests.support.world import PRACTICE

START_SECONDS = 90.0


@dataclass(frozen=True)
class Credentials:
    client_id: str
    secret: str


@dataclass(frozen=True)
class Served:
    url: str
    service: Service
    log: Path

    @property
    def port(self) -> int:
        return self.service.settings.port

    @property
    def mcp_url(self) -> str:
        return f"{self.url}/mcp"

    async def client(
        self,
        grant: str = "agent",
        scopes: Sequence[str] = SCOPES,
        practice: str = "harbor",
        *,
        trusted_to_ask: bool = False,
    ) -> Credentials:
        record, secret = await add_client(
            self.service.database, self.service.ring, practice=practice, name=grant, grant=grant, scopes=list(scopes)
        )
        if trusted_to_ask:
            await trust_client(self.service.database, record.client_id)
        return Credentials(record.client_id, secret)

    async def token(
        self,
        grant: str = "agent",
        scopes: Sequence[str] = SCOPES,
        practice: str = "harbor",
        *,
        trusted_to_ask: bool = False,
    ) -> str:
        credentials = await self.client(grant, scopes, practice, trusted_to_ask=trusted_to_ask)
        form = {"client_id": credentials.client_id, "client_secret": credentials.secret}
        async with httpx.AsyncClient(timeout=30) as http:
            answer = await http.post(f"{self.url}/oauth/token", data={"grant_type": "client_credentials", **form})
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    async def practice_that_demands(self, **consents: str) -> str:
        """The slug of a further practice, where these writes need a consent."""
        wanted = ", ".join(f"{name}: {consent}" for name, consent in consents.items())
        text = PRACTICE.replace("SLUG", "demanding").replace("timeZone", f"consent: {{{wanted}}}, timeZone", 1)
        await import_practice(self.service.database, parse(text), datetime.now(UTC))
        return "demanding"


def coming_days() -> dict[str, str]:
    """A window that surely holds open slots of the practice, seen from the real clock."""
    today = datetime.now(UTC).date()
    return {"from": (today + timedelta(days=1)).isoformat(), "to": (today + timedelta(days=14)).isoformat()}


@contextlib.asynccontextmanager
async def serving(database: Database, database_dsn: str, owner_dsn: str, data_dir: Path) -> AsyncIterator[Served]:
    """Runs the server as an operator would, until the block ends."""
    port = free_port()
    environment = {
        **NO_DRAIN,
        "FRONTDESK_DATABASE_URL": database_dsn,
        "FRONTDESK_MIGRATION_DATABASE_URL": owner_dsn,
        "FRONTDESK_DATA_DIR": str(data_dir),
    }
    settings = Settings(data_dir=data_dir, port=port)
    service = build_service(settings, database)
    await import_practice(database, parse(PRACTICE.replace("SLUG", "harbor")), datetime.now(UTC))
    await service.ring.load()
    log = data_dir / "server.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "frontdesk", "serve", "--port", str(port),
            env={**os.environ, **environment}, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        await _until_ready(settings.public_url, process, log)
        yield Served(settings.public_url, service, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def serving_here(
    database: Database, data_dir: Path, host_name: str = "127.0.0.1", **changed: Any
) -> AsyncIterator[Served]:
    """Serves in this process, so that a test can replace what the service fetches from the internet."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    settings = Settings(data_dir=data_dir, port=port, base_url=f"http://{host_name}:{port}", **changed)
    service = build_service(settings, database)
    await import_practice(database, parse(PRACTICE.replace("SLUG", "harbor")), datetime.now(UTC))
    await service.ring.load()
    config = uvicorn.Config(build_app(service), interface="asgi3", http=Connection, lifespan="off", log_config=None)
    config.load()
    state = WorkerState(100, {})
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(config=config, server_state=state, app_state={}), sock=listener
    )
    async with server:
        yield Served(settings.public_url, service, data_dir)


async def _until_ready(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(START_SECONDS), httpx.AsyncClient() as http:
        while process.returncode is None:
            with contextlib.suppress(httpx.TransportError):
                if (await http.get(f"{url}/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")
