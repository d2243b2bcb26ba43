"""Writes to a FHIR server with the connection to it, or to PostgreSQL, cut at every message."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.fhir.practice import Upstream, extend_timeouts, fhir_world, forgive, opened, settle
from tests.fhir.writes import WRITES, Scene, nothing_is_left_over
from tests.proof.cuts.proxy import Fault, Proxy, http_proxy
from tests.proof.cuts.stage import CUT_EVERY, MAX_MESSAGES, UNKNOWN, proxied
from tests.proof.cuts.writes import Marks
from tests.support.shared_database import as_superuser, new_database
from tests.support.shared_database import opened as database_opened
from tests.support.world import UNLIMITED

OPEN = {"upstream_unavailable", "confirmation_incomplete", UNKNOWN}
OPERATIONS = {
    "book": "book_appointment",
    "cancel": "cancel_appointment",
    "confirm": "confirm_attendance",
    "reschedule": "reschedule_appointment",
    "create": "create_patient",
    "update": "update_patient",
}


@dataclass
class Way:
    """The way to a FHIR server by another port."""

    port: int
    settings: Mapping[str, Any]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/fhir"


@dataclass
class FhirStage:
    scene: Scene
    owner: asyncpg.Connection
    proxies: dict[str, Proxy]

    async def sweep(self, name: str, proxy: Proxy, fault: Fault, points: range) -> int:
        for point in points:
            if not await self._call(name, proxy, fault, point):
                return point
        return points.stop

    async def _call(self, name: str, proxy: Proxy, fault: Fault, point: int) -> bool:
        """One confirmed write with a fault, and what must hold once everything works again."""
        scene = self.scene
        for client in (scene.agent, scene.integration):
            await scene.world.renew(client)
        write = await WRITES[name](scene, point)
        token = await scene.challenged(write)
        marks = await Marks.now(self.owner)
        proxy.arm({point: fault})
        answer = await scene.send(write, token)
        reached = len(proxy.seen) > point
        where = f"{name} {point} {[str(each) for each in proxy.hit]} {answer.status_code} {answer.text}"
        proxy.heal()
        forgive(scene.world)
        done = answer.status_code in (200, 201)
        assert done or answer.json()["code"] in OPEN, where
        assert answer.status_code != 502 or not await write.happened(), where
        await settle(scene.world)
        resent = await scene.send(write, token)
        assert resent.status_code in (200, 201), f"{where}: resent {resent.text}"
        assert not done or resent.json() == answer.json(), where
        assert (await scene.send(write, token)).json() == resent.json(), where
        await settle(scene.world)
        await nothing_is_left_over(scene, write)
        executed = (await marks.outcomes(self.owner, OPERATIONS[name])).count("executed")
        events = await marks.announced(self.owner)
        assert (executed, events) == (1, 1), f"{where}: {executed} audit records, {events} events"
        for each in await scene.upstream.live_appointments():
            await scene.upstream.put({**each, "status": "cancelled"})
        for slot in (await scene.upstream.taken_slots()).values():
            await scene.upstream.put({**slot, "status": "free", "identifier": []})
        return reached


@pytest.fixture
async def cut_off(
    cluster: EmbeddedPostgres, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FhirStage]:
    extend_timeouts(monkeypatch)
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(new_database(cluster, template))
        behind, database_proxy = await stack.enter_async_context(proxied(dsn, tmp_path / "sockets"))
        database = await stack.enter_async_context(database_opened(behind, 4))
        door = await stack.enter_async_context(opened("fake"))
        upstream = Upstream(door)
        await upstream.seed(days=2)
        fhir_proxy, port = await stack.enter_async_context(http_proxy(door.port))
        world = await stack.enter_async_context(fhir_world(database, tmp_path, Way(port, door.settings)))
        owner = await asyncpg.connect(as_superuser(dsn), server_settings={"search_path": "frontdesk, public"})
        stack.push_async_callback(owner.close)
        scene = Scene(
            world, upstream, await world.client(access_limits=UNLIMITED), await world.client(grant="integration")
        )
        yield FhirStage(scene, owner, {"database": database_proxy, "fhir": fhir_proxy})


@pytest.mark.heavy
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("to", ["database", "fhir"])
@pytest.mark.parametrize("name", WRITES)
async def test_a_cut_at_any_message_leaves_one_execution_and_one_answer(cut_off: FhirStage, name: str, to: str) -> None:
    messages = await cut_off.sweep(name, cut_off.proxies[to], "cut", range(0, MAX_MESSAGES, CUT_EVERY))
    assert 10 < messages < MAX_MESSAGES
