"""One migrated database, or one world, for all tests of a module, where one per test would cost more than the tests."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.world import World, build_world

_numbers = itertools.count(1)


@asynccontextmanager
async def shared_database(cluster: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """Its address, as the service."""
    name = f"shared_{next(_numbers)}"
    connection = await asyncpg.connect(cluster.dsn("postgres").replace("/frontdesk?", "/postgres?"))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        try:
            yield cluster.dsn(SERVICE_ROLE).replace("/frontdesk?", f"/{name}?")
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@asynccontextmanager
async def opened(dsn: str, pool_size: int = 4) -> AsyncIterator[Database]:
    database = Database(dsn, pool_size=pool_size)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def as_owner(dsn: str) -> str:
    return dsn.replace(f"{SERVICE_ROLE}@", "postgres@", 1)


@asynccontextmanager
async def shared_world(cluster: EmbeddedPostgres, template: str, folder: Path) -> AsyncIterator[World]:
    async with shared_database(cluster, template) as dsn, opened(dsn, 8) as database:
        world = await build_world(database, folder)
        try:
            yield world
        finally:
            await world.service.limiter.settle()
            await world.close()


@pytest.fixture(scope="module", name="world")
async def world_of_a_module(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """For a module that names it: its tests then share one world, instead of having one each."""
    async with shared_world(cluster, template, tmp_path_factory.mktemp("world")) as built:
        yield built
