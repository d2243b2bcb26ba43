"""A data directory per module. Its database stays up while the module runs, so that commands need not start it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.cli.command_line import CommandLine
from tests.store.embedded_processes import copy_of, superuser_login
from tests.support.world import PRACTICE


@pytest.fixture(scope="module")
def line(made_server: Path) -> Iterator[CommandLine]:
    with copy_of(made_server) as home:
        postgres = EmbeddedPostgres(home)
        with superuser_login():
            postgres.start()
        yield CommandLine(home.parent)
        postgres.stop()


@pytest.fixture(scope="module")
def harbor(line: CommandLine) -> str:
    line.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"))
    return "harbor"
