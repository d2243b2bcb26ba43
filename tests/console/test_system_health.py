"""How the scheduling system is, seen at the console: the native one, and FHIR servers that work and that do not."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontdesk.desk import health
from frontdesk.store.database import Database
from frontdesk.systems.fhir.transport import breaker
from tests.console.admin_pages import text_of
from tests.console.signing_in import TEST_STAFF, audited, signed_in
from tests.fhir.practice import Upstream, extend_timeouts, fhir_world, opened
from tests.support.world import World, patient_id

SEARCH = {
    "providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101, "from": "2026-11-16", "to": "2026-11-16",
}  # fmt: skip


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with opened("fake") as door:
        seeded = Upstream(door)
        await seeded.seed()
        yield seeded


@pytest.fixture
async def fhir(
    database: Database, tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    extend_timeouts(monkeypatch)
    monkeypatch.setattr(health, "CHECK_SECONDS", 120.0)
    async with fhir_world(database, tmp_path, upstream.door) as world:
        yield world


async def test_the_native_calendar_shows_its_database_and_its_records(world: World, admin: httpx.AsyncClient) -> None:
    await patient_id(await world.client())
    text = text_of(await admin.get("/console/practice/system"))
    assert re.search(r"Reachable Answers in [0-9.]+ ms", text)
    assert "the oldest since" in text
    await world.service.engine.audit.seal_pending()
    text = text_of(await admin.get("/console/practice/system"))
    assert re.search(r"Sealed \d+ records, the newest of Sun 15 Nov 2026, 03:00 Waiting none", text)
    checked = text_of(await admin.post("/console/practice/system"))
    assert "calendar works kept in this database" in checked
    assert ("console.check_system", "executed", admin.headers[TEST_STAFF]) in await audited(world)


async def test_a_fhir_server_that_works_is_checked_part_by_part(fhir: World) -> None:
    admin = await signed_in(fhir, role="admin")
    assert "Not asked yet" in text_of(await admin.get("/console/practice/system"))
    agent = await fhir.client()
    assert (await agent.get("/api/slots", params=SEARCH)).status_code == 200
    text = text_of(await admin.get("/console/practice/system"))
    assert "State Working" in text
    assert "Open writes none" in text
    checked = text_of(await admin.post("/console/practice/system"))
    assert "location 1 (Downtown) works Location/downtown" in checked
    assert "Book an appointment works" in checked
    assert "ran out of time" not in checked


async def test_a_fhir_server_that_fails_is_shown_to_be_left_alone(fhir: World, upstream: Upstream) -> None:
    admin, agent = await signed_in(fhir, role="admin"), await fhir.client()
    await agent.get("/api/slots", params=SEARCH)
    upstream.door.harm = lambda _request: "error_before"
    await agent.get("/api/slots", params=SEARCH)
    assert "State Failing" in text_of(await admin.get("/console/practice/system"))
    for _ in range(breaker.FAILURES):
        assert (await agent.get("/api/slots", params=SEARCH)).status_code == 502
    assert "State Paused" in text_of(await admin.get("/console/practice/system"))
    assert "connection unreachable" in text_of(await admin.post("/console/practice/system"))


async def test_a_check_of_a_slow_server_ends_in_time_and_says_so(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await signed_in(fhir, role="admin")
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.0)
    text = text_of(await admin.post("/console/practice/system"))
    assert "ran out of time" in text
    assert "frontdesk practice check harbor" in text


async def test_staff_reach_nothing_of_it_whatever_a_page_forgets(world: World, staff: httpx.AsyncClient) -> None:
    assert (await staff.get("/console/practice/system")).status_code == 403
    assert (await staff.post("/console/practice/system")).status_code == 403
