"""A real PostgreSQL for every test that needs one: one embedded server per test process, a clean database per test."""

import asyncio
import fcntl
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, settings

from frontdesk.store.database import Database
from frontdesk.store.embedded.server import OWNER_ROLE, SETTINGS, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from tests.citus.cluster import TEMPLATE, CitusCluster, NewDatabase, named_address
from tests.store.embedded_processes import copy_of, superuser_login, temporary_home
from tests.support.longest_first import LongestFirst
from tests.support.recycled_databases import RecycledDatabase, RecycledDatabases
from tests.support.shared_database import as_owner, new_database, opened
from tests.support.world import World, build_world, open_world

# In CI every change meets the same examples, so that it fails for what it changed; elsewhere each run draws new ones.
settings.register_profile(
    "default", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")

for variable in [name for name in os.environ if name.startswith("FRONTDESK_")]:
    del os.environ[variable]  # tests set their own

# httpx looks for it at every request, and pytest makes looking for a missing module slow.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


def pytest_configure(config: pytest.Config) -> None:
    """Gives each run a temporary folder of its own: at their end, runs beside each other clear away shared ones."""
    config.pluginmanager.register(LongestFirst(config))
    if config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="frontdesk-")
        config.add_cleanup(partial(shutil.rmtree, config.option.basetemp, ignore_errors=True))


def pytest_collection_modifyitems() -> None:
    gc.freeze()  # what thousands of tests are made of stays: looking through it again and again takes 4% of the time


@pytest.fixture(scope="session", autouse=True)
def trusted_authorities() -> Iterator[None]:
    """Loaded once: it takes longer than most tests."""
    loaded = cache(httpx.create_ssl_context)
    with pytest.MonkeyPatch.context() as patch:
        for user in (httpx, httpx._transports.default):
            patch.setattr(user, "create_ssl_context", loaded)
        yield


@pytest.fixture(scope="session", autouse=True)
def longer_timeouts() -> Iterator[None]:
    """On a busy machine a database may answer late, and be well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frontdesk.store.database.ACQUIRE_SECONDS", 60.0)
        patch.setattr("frontdesk.store.migrate._READINESS_SECONDS", 30.0)
        yield


@contextmanager
def quick_settings() -> Iterator[None]:
    """For servers that this process starts meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):  # crashes are the crash suites' subject
            patch.setitem(SETTINGS, name, "off")
        patch.setitem(SETTINGS, "autovacuum", "off")  # would add statistics, and with them other plans, at any time
        yield


@pytest.fixture(scope="session")
def made_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stopped server with a migrated, empty database, made once for all test processes. Copy it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    made = shared / "postgres"
    with (shared / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with temporary_home() as home, quick_settings():
                postgres = EmbeddedPostgres(home)
                postgres.start(timeout=240)
                asyncio.run(migrate(postgres.dsn(OWNER_ROLE)))
                postgres.stop_and_await_end()
                new = made.with_suffix(".new")
                subprocess.run(["cp", "-a", home, new], check=True)
                new.rename(made)
    return made


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An embedded server, or the Citus cluster that `make citus-test` names."""
    if citus := named_address():
        distributed = CitusCluster(citus)
        asyncio.run(distributed.start())
        yield distributed
        asyncio.run(distributed.drop(TEMPLATE))
        return
    made_server = request.getfixturevalue("made_server")
    with copy_of(made_server) as home:
        postgres = EmbeddedPostgres(home)
        with superuser_login(), quick_settings():
            postgres.start(timeout=240)
        yield postgres
        postgres.stop_and_await_end()


@pytest.fixture(scope="session")
def template() -> str:
    """The name of a migrated, empty database that others are copied from."""
    return TEMPLATE if named_address() else "frontdesk"


@pytest.fixture(scope="session")
async def world_template(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, Path]]:
    """The name of a database with the practices and keys of a world, and the data directory that goes with it."""
    folder = tmp_path_factory.mktemp("world")
    async with new_database(cluster, template, "world") as dsn:
        async with opened(dsn) as database:
            await build_world(database, folder)
        yield "world", folder


@pytest.fixture(scope="session")
async def recycled_databases(cluster: EmbeddedPostgres) -> AsyncIterator[RecycledDatabases]:
    databases = RecycledDatabases(cluster)
    yield databases
    await databases.close()


@pytest.fixture
async def recycled(
    request: pytest.FixtureRequest, cluster: Any, recycled_databases: RecycledDatabases, template: str
) -> AsyncIterator[RecycledDatabase | NewDatabase]:
    source = request.getfixturevalue("world_template")[0] if "world_template" in request.fixturenames else template
    if named_address():
        async with new_database(cluster, source) as dsn:
            yield NewDatabase(dsn)
        return
    async with recycled_databases.lend(source) as lent:
        yield lent


@pytest.fixture
def database_dsn(recycled: RecycledDatabase | NewDatabase) -> str:
    """A migrated database, as the service: empty, or with the practices of the world for a test that has one."""
    return recycled.dsn


@pytest.fixture
def owner_dsn(database_dsn: str) -> str:
    """The same database, as its owner."""
    return as_owner(database_dsn)


@pytest.fixture
async def owner(owner_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the test's database, as its owner."""
    connection = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})
    yield connection
    await connection.close()


@pytest.fixture
async def database(recycled: RecycledDatabase | NewDatabase) -> AsyncIterator[Database]:
    async with recycled.opened() as database:
        yield database


@pytest.fixture
async def world(database: Database, world_template: tuple[str, Path], tmp_path: Path) -> AsyncIterator[World]:
    """A running service in this process with two practices, and clients to call it with."""
    shutil.copytree(world_template[1], tmp_path, dirs_exist_ok=True)
    built = await open_world(database, tmp_path)
    yield built
    await built.close()
