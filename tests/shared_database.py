"""New databases of the test cluster, and one database or one world for all tests of a module."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.world import World, build_world

_numbers = itertools.count(1)


@asynccontextmanager
async def new_database(cluster: EmbeddedPostgres, template: str, name: str | None = None) -> AsyncIterator[str]:
    """A copy of the template, dropped afterwards; its address, as the service."""
    name = name or f"test_{next(_numbers)}"
    connection = await asyncpg.connect(_at(cluster.dsn("postgres"), "postgres"))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {OWNER_ROLE} STRATEGY file_copy")
        try:
            yield _at(cluster.dsn(SERVICE_ROLE), name)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def _at(dsn: str, name: str) -> str:
    return dsn.replace("/frontdesk?", f"/{name}?")


@asynccontextmanager
async def opened(dsn: str, pool_size: int = 4) -> AsyncIterator[Database]:
    database = Database(dsn, pool_size=pool_size)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def as_owner(dsn: str) -> str:
    return dsn.replace(f"{SERVICE_ROLE}@", f"{OWNER_ROLE}@", 1)


def as_superuser(dsn: str) -> str:
    return dsn.replace(f"{SERVICE_ROLE}@", "postgres@", 1)


@asynccontextmanager
async def shared_world(cluster: EmbeddedPostgres, template: str, folder: Path) -> AsyncIterator[World]:
    async with new_database(cluster, template) as dsn, opened(dsn, 8) as database:
        world = await build_world(database, folder)
        try:
            yield world
        finally:
            await world.service.limiter.return_leases()
            await world.close()


@pytest.fixture(scope="module", name="world")
async def world_of_a_module(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """For a module that names it: its tests then share one world, instead of having one each."""
    async with shared_world(cluster, template, tmp_path_factory.mktemp("world")) as built:
        yield built
