"""A server as an operator runs it: its own processes, real sockets, its log in a file. Two practices, and clients."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from frontdesk.access.clients.records import AS_THE_PRACTICE, AccessLimits, add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import Service, build_service
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN
from tests.support.world import PRACTICE

PRACTICES = ("harbor", "other")

_secrets: dict[str, str] = {}  # of the clients that were made here, also for servers that are started later


@dataclass
class RealServer:
    url: str
    port: int
    service: Service
    log: Path
    process: asyncio.subprocess.Process

    async def token(
        self,
        practice: str = "harbor",
        grant: str = "agent",
        access_limits: AccessLimits = AS_THE_PRACTICE,
        **limits: int,
    ) -> str:
        record, secret = await add_client(
            self.service.database, self.service.ring, practice=practice, name=grant, grant=grant, scopes=SCOPES,
            access_limits=access_limits, **{"per_minute": 1_000_000, **limits},
        )  # fmt: skip
        _secrets[record.client_id] = secret
        return await self.token_of(record.client_id)

    async def token_of(self, client_id: str) -> str:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": _secrets[client_id]}
        async with httpx.AsyncClient(timeout=30) as http:
            answer = await http.post(f"{self.url}/oauth/token", data=form)
        assert answer.status_code == 200, answer.text
        text: str = answer.json()["access_token"]
        return text

    def http(self, token: str | None = None) -> httpx.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30)

    async def wire(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def real_server(
    database: Database,
    dsn: str,
    owner_dsn: str,
    data_dir: Path,
    *,
    workers: int = 1,
    files: int | None = None,
    **settings: str,
) -> AsyncIterator[RealServer]:
    """`settings` are further FRONTDESK_ variables. `files` is how many files each process may open."""
    port = free_port()
    environment = {
        **NO_DRAIN,
        "FRONTDESK_DATABASE_URL": dsn,
        "FRONTDESK_MIGRATION_DATABASE_URL": owner_dsn,
        "FRONTDESK_DATA_DIR": str(data_dir),
        **{f"FRONTDESK_{name.upper()}": value for name, value in settings.items()},
    }
    service = build_service(Settings(data_dir=data_dir, port=port), database)
    for slug in PRACTICES:
        await import_practice(database, parse(PRACTICE.replace("SLUG", slug)), datetime.now(UTC))
    await service.ring.load()
    log = data_dir / "server.log"
    process = await _start(environment, port, workers, files, log)
    server = RealServer(service.settings.public_url, port, service, log, process)
    try:
        await _until_ready(server)
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.wait()


_FEW_FILES = "import os, resource, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)); "


async def _start(
    environment: Mapping[str, str], port: int, workers: int, files: int | None, log: Path
) -> asyncio.subprocess.Process:
    limited = (
        () if files is None else (sys.executable, "-c", f"{_FEW_FILES}os.execv(sys.argv[2], sys.argv[2:])", str(files))
    )
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *limited, Path(sys.executable).parent / "frontdesk",
            "serve", "--port", str(port), "--workers", str(workers),
            env={**os.environ, **environment}, stdout=output, stderr=output,
        )  # fmt: skip


async def _until_ready(server: RealServer) -> None:
    async with asyncio.timeout(120), httpx.AsyncClient() as http:
        while server.process.returncode is None:
            with contextlib.suppress(httpx.TransportError):
                if (await http.get(f"{server.url}/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{server.log.read_text()}")
