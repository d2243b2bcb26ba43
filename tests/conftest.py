"""A real PostgreSQL for every test that needs one: one embedded server per test process, a new database per test."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import SETTINGS, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from tests.world import World, build_world

# In CI every change meets the same examples, so that it fails for what it changed; elsewhere each run draws new ones.
settings.register_profile(
    "default", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(tmp_path_factory.mktemp("data") / "postgres")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):  # crashes are the crash suites' subject
            patch.setitem(SETTINGS, name, "off")
        postgres.start(timeout=240)
    yield postgres
    postgres.stop()


@pytest.fixture(scope="session")
async def template(cluster: EmbeddedPostgres) -> str:
    """The name of a migrated, empty database that others are copied from."""
    await migrate(cluster.dsn("postgres"))
    return "frontdesk"


def _at(dsn: str, name: str) -> str:
    return dsn.replace("/frontdesk?", f"/{name}?")


@pytest.fixture
async def owner_dsn(cluster: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """A fresh, migrated database, as its owner."""
    name = f"test_{next(_numbers)}"
    connection = await asyncpg.connect(_at(cluster.dsn("postgres"), "postgres"))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        yield _at(cluster.dsn("postgres"), name)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@pytest.fixture
def database_dsn(cluster: EmbeddedPostgres, owner_dsn: str) -> str:
    """The same database, as the service."""
    return owner_dsn.replace("postgres@", f"{SERVICE_ROLE}@", 1)


@pytest.fixture
async def database(database_dsn: str) -> AsyncIterator[Database]:
    opened = Database(database_dsn, pool_size=8)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    """A running service in this process with two practices, and clients to call it with."""
    built = await build_world(database, tmp_path)
    yield built
    await built.close()
