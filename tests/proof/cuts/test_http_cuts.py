"""The connection between a caller and the service cut at every part of request and answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from frontdesk.app import build_app
from frontdesk.serving.connection import Connection, WorkerState
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.proof.cuts.proxy import Fault, http_proxy
from tests.proof.cuts.stage import WAYS, Stage
from tests.proof.cuts.writes import WRITES
from tests.support.shared_database import as_superuser, new_database, opened
from tests.support.world import UNLIMITED, build_world

PARTS = 8  # of an exchange, at least
DOORS = ("rest", "mcp")


@dataclass
class Counted:
    """An application, and how many calls it works on."""

    app: Any
    running: int = 0
    state: WorkerState = field(default_factory=lambda: WorkerState(100, {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.running += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.running -= 1


@pytest.fixture(scope="module")
async def cut_off(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(new_database(cluster, template))
        database = await stack.enter_async_context(opened(dsn))
        world = await build_world(database, tmp_path_factory.mktemp("world"))
        app = Counted(build_app(world.service))
        config = uvicorn.Config(
            app, interface="asgi3", http=Connection, lifespan="off", log_config=None, access_log=False
        )
        config.load()
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(config=config, server_state=app.state, app_state={}), "127.0.0.1", 0
        )
        await stack.enter_async_context(server)
        proxy, port = await stack.enter_async_context(http_proxy(server.sockets[0].getsockname()[1]))
        owner = await asyncpg.connect(as_superuser(dsn), server_settings={"search_path": "frontdesk, public"})
        stack.push_async_callback(owner.close)
        agent, integration = await world.client(access_limits=UNLIMITED), await world.client(grant="integration")
        stack.push_async_callback(world.close)
        callers = {}
        for grant, client in (("agent", agent), ("integration", integration)):
            headers = {name: client.headers[name] for name in ("Authorization", "X-Test-Client")}
            callers[grant] = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30)
            await stack.enter_async_context(callers[grant])
        yield Stage(world, world, proxy, owner, integration, agent, callers, lambda: app.running)


async def test_a_booking_that_is_cut_off_anywhere_is_made_once(cut_off: Stage) -> None:
    assert await cut_off.sweep("book", "confirmation", "rest", "cut") > PARTS


@pytest.mark.heavy
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRITES)
async def test_a_call_that_is_cut_off_anywhere_is_executed_once(cut_off: Stage, name: str, way: str, door: str) -> None:
    assert await cut_off.sweep(name, way, door, "cut") > PARTS


@pytest.mark.heavy
@pytest.mark.parametrize("fault", ["cut_client", "delay"])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_booking_whose_caller_leaves_at_any_time_is_made_once(
    cut_off: Stage, way: str, door: str, fault: Fault
) -> None:
    assert await cut_off.sweep("book", way, door, fault) > PARTS
