"""One real server for all that attack it from outside, and one world in this process for all that look inside."""

from collections.abc import AsyncIterator

import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.security.real_server import RealServer, real_server
from tests.support.shared_database import as_owner, new_database, opened


@pytest.fixture(scope="session")
async def server(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RealServer]:
    """Two workers, each its own process."""
    async with (
        new_database(cluster, template) as dsn,
        opened(dsn) as database,
        real_server(database, dsn, as_owner(dsn), tmp_path_factory.mktemp("server"), workers=2) as running,
    ):
        yield running
