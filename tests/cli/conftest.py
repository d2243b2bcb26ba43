"""A data directory per module. Its database stays up while the module runs, so that commands need not start it."""

import asyncio
from collections.abc import Iterator

import pytest

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from tests.cli.command_line import CommandLine
from tests.store.embedded_processes import superuser_login, temporary_home
from tests.world import PRACTICE


@pytest.fixture(scope="module")
def line() -> Iterator[CommandLine]:
    with temporary_home() as home:
        postgres = EmbeddedPostgres(home)
        with superuser_login():
            postgres.start()
        asyncio.run(migrate(postgres.dsn(OWNER_ROLE)))
        yield CommandLine(home.parent)
        postgres.stop()


@pytest.fixture(scope="module")
def harbor(line: CommandLine) -> str:
    line.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"))
    return "harbor"
