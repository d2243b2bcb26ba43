"""New databases of the test cluster, and one database or one world for all tests of a module."""

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType

import asyncpg
import pytest

from frontdesk.store import database as store
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.citus.cluster import CitusCluster
from tests.support.world import World, build_world

AnyCluster = EmbeddedPostgres | CitusCluster
_numbers = itertools.count(1)


@asynccontextmanager
async def new_database(cluster: AnyCluster, template: str, name: str | None = None) -> AsyncIterator[str]:
    """A copy of the template, dropped afterwards; its address, as the service."""
    name = await create_database(cluster, template, name)
    try:
        yield address(cluster, SERVICE_ROLE, name)
    finally:
        await drop_database(cluster, name)


async def create_database(cluster: AnyCluster, template: str, name: str | None = None) -> str:
    name = name or f"test_{next(_numbers)}"
    if isinstance(cluster, CitusCluster):
        await cluster.create(name, template)
        return name
    await _administer(cluster, f"CREATE DATABASE {name} TEMPLATE {template} OWNER {OWNER_ROLE} STRATEGY file_copy")
    return name


async def drop_database(cluster: AnyCluster, name: str) -> None:
    if isinstance(cluster, CitusCluster):
        await cluster.drop(name)
        return
    await _administer(cluster, f"DROP DATABASE {name} WITH (FORCE)")


async def _administer(cluster: AnyCluster, statement: str) -> None:
    connection = await asyncpg.connect(address(cluster, "postgres", "postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def address(cluster: AnyCluster, role: str, name: str) -> str:
    return cluster.dsn(role).replace("/frontdesk?", f"/{name}?")


@asynccontextmanager
async def opened(dsn: str, pool_size: int = 4) -> AsyncIterator[Database]:
    database = Database(dsn, pool_size=pool_size)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@contextmanager
def patient_statements(settings: Mapping[str, str] = MappingProxyType({"lock_timeout": "50s"})) -> Iterator[None]:
    """Statements of databases that are opened meanwhile wait for a busy machine, or for a lock that a test holds."""
    served = store.session_settings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "STATEMENT_SECONDS", 50)
        patch.setattr(store, "session_settings", lambda role: {**served(role), **settings})
        yield


def as_owner(dsn: str) -> str:
    return dsn.replace(f"{SERVICE_ROLE}@", f"{OWNER_ROLE}@", 1)


def as_superuser(dsn: str) -> str:
    return dsn.replace(f"{SERVICE_ROLE}@", "postgres@", 1)


@pytest.fixture(name="database_dsn")
async def dsn_of_a_new_database(
    request: pytest.FixtureRequest, cluster: AnyCluster, template: str
) -> AsyncIterator[str]:
    """For a module that names it: its tests count or end sessions, and nobody else may have one."""
    source = request.getfixturevalue("world_template")[0] if "world_template" in request.fixturenames else template
    async with new_database(cluster, source) as dsn:
        yield dsn


@pytest.fixture(name="database")
async def newly_opened_database(database_dsn: str) -> AsyncIterator[Database]:
    """For a module that names it: its tests interfere with the connections."""
    async with opened(database_dsn, 8) as database:
        yield database


@asynccontextmanager
async def shared_world(cluster: AnyCluster, template: str, folder: Path) -> AsyncIterator[World]:
    async with new_database(cluster, template) as dsn, opened(dsn, 8) as database:
        world = await build_world(database, folder)
        try:
            yield world
        finally:
            await world.service.limiter.return_leases()
            await world.close()


@pytest.fixture(scope="module", name="world")
async def world_of_a_module(
    cluster: AnyCluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """For a module that names it: its tests then share one world, instead of having one each."""
    async with shared_world(cluster, template, tmp_path_factory.mktemp("world")) as built:
        yield built
