"""What the suites of others need: a real server, and the Node programs. They fail where they cannot run."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.store.database import Database
from tests.mcp.node_clients import NodeClients, node_clients
from tests.mcp.served import Served, serving


@pytest.fixture
async def served(database: Database, database_dsn: str, owner_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(database, database_dsn, owner_dsn, tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
async def node() -> NodeClients:
    return await node_clients()
