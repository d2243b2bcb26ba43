"""A practice behind the proxy, callers that are cut off, and what must hold afterwards."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.proof.cuts.proxy import Fault, Proxy, postgres_proxy
from tests.proof.cuts.writes import LOST, WRITES, Marks, Reply, Write, over_mcp, over_rest
from tests.support.shared_database import as_superuser, new_database, opened
from tests.support.world import UNLIMITED, World, build_world, open_world

WAYS = ("challenge", "confirmation", "key", "plain")
DOORS = {"rest": over_rest, "mcp": over_mcp}
MAX_MESSAGES = 400
CUT_EVERY = int(os.environ.get("CUT_EVERY", "1"))  # messages, where a suite would take too long otherwise
UNAVAILABLE, UNKNOWN, CHALLENGE, DONE = "upstream_unavailable", "internal", "confirmation_required", "done"
_RESENDS = 3
EXECUTED = {DONE: (1,), UNAVAILABLE: (0,), UNKNOWN: (0, 1), LOST: (0, 1)}  # how often, by what the caller learned


@dataclass
class Stage:
    """`steady` goes past the proxy: it prepares and looks. `harmed` is the service that is cut off."""

    steady: World
    harmed: World
    proxy: Proxy
    owner: asyncpg.Connection
    integration: httpx.AsyncClient  # of the steady service
    agent: httpx.AsyncClient  # of the steady service
    callers: Mapping[str, httpx.AsyncClient]  # of the harmed service, by grant
    calls: Callable[[], int] = lambda: 0  # that the service still works on
    turn: int = 0
    impatient: bool = False  # the harmed service gives up soon what the database does not answer

    async def sweep(
        self, name: str, way: str, door: str, fault: Fault, *, every: int = 1, lost_before: bool = False
    ) -> int:
        """One call per message of the call, or per `every` so many, each with the fault at the next. The number of
        messages.

        `lost_before`: the connection is lost at the first message, so that the fault also hits the next connection.
        """
        for point in range(0, MAX_MESSAGES, every):
            if self.harmed is not self.steady:
                await self._reopen(impatient=fault == "drop")
            faults: dict[int, Fault] = {**({0: "cut"} if lost_before else {}), point: fault}
            if not await self.call(name, way, door, faults):
                return point
        raise AssertionError("the call never came through")

    async def call(self, name: str, way: str, door: str, faults: Mapping[int, Fault]) -> bool:
        """One call with faults, and what must hold after it. Whether the last fault was reached."""
        self.turn += 1
        write = await WRITES[name](self.integration, self.turn)
        send, key = DOORS[door], f"key-{self.turn}" if way == "key" else None
        token = None
        if way == "confirmation":
            token = (await over_rest(self.agent, write, None)).document["confirmationToken"]
        marks = await Marks.now(self.owner)
        caller = self.callers["integration" if way in ("key", "plain") else "agent"]
        self.proxy.arm(faults)
        try:
            reply = await send(caller, write, token, key)
        finally:
            hit = [str(message) for message in self.proxy.hit]
            reached = len(self.proxy.seen) > max(faults)
            self.proxy.heal()
        # What a busy machine answered too late did not come through.
        reached = reached or reply.kind not in (DONE, CHALLENGE)
        await self._quiet()
        if self.impatient:  # the rest is to be answered at leisure
            await self._reopen(impatient=False)
        where = f"{name} {way} {door} {dict(faults)} {hit} {reply.kind}"
        try:
            if way == "challenge":
                await self._check_challenge(write, reply, marks, send, caller, where)
            else:
                await self._check_write(write, reply, marks, where)
            if way in ("confirmation", "key"):
                for _ in range(_RESENDS):
                    again = await send(caller, write, token, key)
                    if again.kind != UNAVAILABLE:  # a busy machine may still count calls too late
                        break
                assert again.kind == DONE, f"{where}: resent {again}"
                assert reply.kind != DONE or again.document == reply.document, where
                assert await send(caller, write, token, key) == again, where
                assert await self._executed(write, marks) == 1, where
        finally:
            await self._tidy()
        return reached

    async def _reopen(self, *, impatient: bool) -> None:
        self.impatient = impatient
        await self.harmed.database.close()
        await self.harmed.database.open()

    async def _check_challenge(
        self, write: Write, reply: Reply, marks: Marks, send: Any, caller: httpx.AsyncClient, where: str
    ) -> None:
        """Nothing was executed, and a token that was given works."""
        assert reply.kind in (CHALLENGE, UNAVAILABLE, LOST), where
        assert await self._executed(write, marks) == 0, where
        outcomes = await marks.outcomes(self.owner, write.operation)
        assert outcomes == [CHALLENGE] or (reply.kind != CHALLENGE and outcomes == []), f"{where}: {outcomes}"
        token = (reply if reply.kind == CHALLENGE else await send(caller, write, None)).document["confirmationToken"]
        assert (await send(caller, write, token)).kind == DONE, where
        assert await self._executed(write, marks) == 1, where

    async def _check_write(self, write: Write, reply: Reply, marks: Marks, where: str) -> None:
        """A result means executed once, 502 means not executed, 500 means that either is possible."""
        executed = await self._executed(write, marks)
        assert executed in EXECUTED[reply.kind], f"{where}: {executed} times"

    async def _executed(self, write: Write, marks: Marks) -> int:
        """How often the write was executed: by its change, its audit records and its events."""
        changes = await self.owner.fetchval(write.happened)
        records = (await marks.outcomes(self.owner, write.operation)).count("executed")
        events = await marks.announced(self.owner)
        assert changes == records == events, f"{changes} changes, {records} audit records, {events} events"
        return int(changes)

    async def _quiet(self) -> None:
        """Until the database has noticed every end, and nothing runs that was sent before it."""
        working = """SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
                     AND backend_type = 'client backend'"""
        async with asyncio.timeout(30):
            while self.calls() or await self.owner.fetchval(working):
                await asyncio.sleep(0.002)

    async def _tidy(self) -> None:
        live = "SELECT appointment_id FROM appointment WHERE practice_id = 1 AND status <> 'cancelled'"
        for row in await self.owner.fetch(live):
            answer = await self.integration.post(f"/api/appointments/{row['appointment_id']}/cancel", json={})
            assert answer.status_code == 200, answer.text


@contextlib.asynccontextmanager
async def stage(cluster: EmbeddedPostgres, template: str, folder: Path) -> AsyncIterator[Stage]:
    async with contextlib.AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(new_database(cluster, template))
        behind, proxy = await stack.enter_async_context(proxied(dsn, folder))
        steady_database = await stack.enter_async_context(opened(dsn))
        steady = await build_world(steady_database, folder / "data")
        harmed_database = await stack.enter_async_context(opened(behind, 2))
        harmed = await open_world(harmed_database, folder / "data")
        owner = await asyncpg.connect(as_superuser(dsn), server_settings={"search_path": "frontdesk, public"})
        stack.push_async_callback(owner.close)
        agent, integration = await steady.client(access_limits=UNLIMITED), await steady.client(grant="integration")
        callers = {}
        for grant, client in (("agent", agent), ("integration", integration)):
            callers[grant] = harmed.anonymous()
            callers[grant].headers.update(client.headers)
        built = Stage(steady, harmed, proxy, owner, integration, agent, callers)
        for world in (steady, harmed):
            stack.push_async_callback(world.close)
        for name in WRITES:  # fills the caches of both services
            await built.call(name, "confirmation", "rest", {MAX_MESSAGES: "cut"})
        yield built


@contextlib.asynccontextmanager
async def proxied(dsn: str, folder: Path) -> AsyncIterator[tuple[str, Proxy]]:
    """The address of the same database behind a proxy."""
    found = re.search(r"host=([^&]+)&port=(\d+)", dsn)
    assert found is not None
    folder.mkdir(exist_ok=True)
    async with postgres_proxy(Path(found[1].replace("%2F", "/")), int(found[2]), folder) as proxy:
        yield dsn.replace(f"host={found[1]}", f"host={folder}"), proxy
