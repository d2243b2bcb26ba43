"""The databases of tests on a Citus cluster that CITUS_DATABASE names by the address of its coordinator.

The cluster lets these logins in without a password, from every node: the superuser of the address, and the service's.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg

from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.distribution import session_settings_of, set_plan_mode
from frontdesk.store.embedded.server import OWNER_ROLE
from frontdesk.store.migrate import distribute, migrate

TEMPLATE = "frontdesk_template"
_END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = ANY ($1) AND pid <> pg_backend_pid()
"""


def named_address() -> str | None:
    return os.environ.get("CITUS_DATABASE")


class CitusCluster:
    """Creates each database on the coordinator and on every worker."""

    def __init__(self, address: str) -> None:
        self._url = urlsplit(address)
        self._workers: list[str] = []

    def dsn(self, role: str) -> str:
        return self._at(f"{self._url.hostname}:{self._url.port or 5432}", "frontdesk", role)

    def _at(self, node: str, database: str, role: str | None = None) -> str:
        return f"postgresql://{role or self._url.username}@{node}/{database}?"

    @property
    def coordinator(self) -> str:
        return f"{self._url.hostname}:{self._url.port or 5432}"

    async def start(self) -> None:
        """Creates the template: a migrated, empty and distributed database."""
        rows = await self._run(
            self.coordinator,
            self._url.path.strip("/"),
            "SELECT nodename || ':' || nodeport AS node FROM pg_dist_node WHERE groupid <> 0 ORDER BY 1",
        )
        self._workers = [row["node"] for row in rows]
        assert self._workers, "Register the workers in the database of this address: SELECT citus_add_node(...)."
        for role, rights in ((OWNER_ROLE, "SUPERUSER"), (SERVICE_ROLE, "NOSUPERUSER"), ("postgres", "SUPERUSER")):
            for node in self._nodes:
                if not await self._run(node, "postgres", "SELECT FROM pg_roles WHERE rolname = $1", role):
                    await self._run(node, "postgres", f"CREATE ROLE {role} LOGIN {rights}")
        await self.create_empty(TEMPLATE)
        dsn = self._at(self.coordinator, TEMPLATE)
        await migrate(dsn)
        await distribute(dsn, lambda _step, _steps: None)

    @property
    def _nodes(self) -> list[str]:
        return [self.coordinator, *self._workers]

    async def create_empty(self, name: str) -> None:
        await self.drop(name)
        for node in self._nodes:
            await self._run(node, "postgres", f"CREATE DATABASE {name}")
            await self._run(node, name, "CREATE EXTENSION citus")
            await self._run(
                node, name, f"ALTER DATABASE {name} SET citus.override_table_visibility = off"
            )  # see decision 22
        host, port = self.coordinator.split(":")
        await self._run(self.coordinator, name, "SELECT citus_set_coordinator_host($1, $2::integer)", host, int(port))
        for node in self._workers:
            host, port = node.split(":")
            await self._run(self.coordinator, name, "SELECT citus_add_node($1, $2::integer)", host, int(port))

    async def create(self, name: str, template: str) -> None:
        await self.drop(name)  # of a run that was interrupted

        async def at(node: str) -> None:
            for attempt in range(20):  # Citus's maintenance of the template may have started again
                await self._run(node, "postgres", _END_SESSIONS, [template])
                try:
                    await self._run(node, "postgres", f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
                    return
                except asyncpg.ObjectInUseError:
                    if attempt == 19:
                        raise

        await asyncio.gather(*(at(node) for node in self._nodes))
        for statement in session_settings_of(name):
            await self._run(self.coordinator, name, statement)
        connection = await asyncpg.connect(self._at(self.coordinator, name), statement_cache_size=0)
        try:
            await set_plan_mode(connection)
        finally:
            await connection.close()

    async def drop(self, name: str) -> None:
        await asyncio.gather(
            *(self._run(node, "postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)") for node in self._nodes)
        )

    async def _run(self, node: str, database: str, statement: str, *args: object) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self._at(node, database), statement_cache_size=0)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *args)
            return rows
        finally:
            await connection.close()


@dataclass
class NewDatabase:
    """A database for one test, in the place of a recycled one."""

    dsn: str

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        database = Database(self.dsn, pool_size=8)
        await database.open()
        try:
            yield database
        finally:
            await database.close()
