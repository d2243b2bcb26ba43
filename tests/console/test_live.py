"""Live updates: a booking reaches every open calendar of its practice, on every node, and nobody else's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.app import Service, build_app, build_service
from frontdesk.console.pages import live as live_pages
from frontdesk.desk import live_updates
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.hosts import Hosts
from frontdesk.store.notifications import NotificationListener
from tests.console.desk import entries
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.console.streams import WAIT_TIMEOUT, stream
from tests.support.running import running as running_steps
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

CHANGED = "event: calendar\ndata: changed\n\n"


@asynccontextmanager
async def listening(service: Service, dsn: str) -> AsyncIterator[None]:
    """What a running service does beside answering: it listens for changes, and tells of its own."""
    listener = NotificationListener(Hosts(dsn), service.on_change)
    async with running_steps(listener.step, service.calendar_notifier.step):
        async with asyncio.timeout(WAIT_TIMEOUT):
            await listener.listening.wait()
        yield


@pytest.fixture
async def running(world: World, database_dsn: str) -> AsyncIterator[World]:
    async with listening(world.service, database_dsn):
        yield world


@pytest.fixture
async def node(world: World, database_dsn: str, tmp_path: Path) -> AsyncIterator[Any]:
    """Another service on the same database, as another machine runs it."""
    database = Database(database_dsn, pool_size=4)
    await database.open()
    service = build_service(Settings(data_dir=tmp_path, base_url="http://test"), database, world.clock)
    await service.ring.load()
    async with listening(service, database_dsn):
        yield build_app(service)
    await database.close()


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def test_a_stream_is_an_event_stream_that_nobody_keeps(running: World, staff: httpx.AsyncClient) -> None:
    async with stream(running.transport.app, staff) as opened:
        assert opened.status == 200
        assert opened.headers["content-type"].startswith("text/event-stream")
        assert opened.headers["cache-control"] == "no-store"
        await opened.until("retry: 2000\n\n")
    assert running.service.desk.live.streams == 0


async def test_a_booking_on_one_node_reaches_a_calendar_on_another(
    running: World, node: Any, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async with stream(node, staff) as opened:
        await opened.until("retry")
        booked = await book(agent)
        await opened.until(CHANGED)
        page = await staff.get("/console/calendar/grid?date=2026-11-16")
        assert booked in entries(page.text)
        for private in (booked, "Ada", "Lovelace", "pat_", "2026"):
            assert private not in opened.text


async def test_every_kind_of_change_is_told(
    running: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_updates, "PAUSE_SECONDS", 0.0)
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry")
        changes = 0
        booked = await book(agent)
        await opened.until(CHANGED, changes := changes + 1)
        await confirmed(agent, "POST", f"/api/appointments/{booked}/confirm", {})
        await opened.until(CHANGED, changes := changes + 1)
        await staff.post(f"/console/appointments/{booked}/cancel", data={"key": "k"})
        await opened.until(CHANGED, changes := changes + 1)
        await running.import_file(PRACTICE.replace("SLUG", "harbor"))  # as `frontdesk practice import` does elsewhere
        await opened.until(CHANGED, changes := changes + 1)


async def test_a_challenge_is_told_because_the_calendar_shows_what_is_proposed(
    running: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry")
        body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
        assert (await agent.post("/api/appointments", json=body)).status_code == 428
        await opened.until(CHANGED)


async def test_another_practices_bookings_are_not_heard(running: World, staff: httpx.AsyncClient) -> None:
    stranger = await signed_in(running, practice="other")
    async with (
        stream(running.transport.app, staff) as ours,
        stream(running.transport.app, stranger) as theirs,
    ):
        await ours.until("retry")
        await theirs.until("retry")
        await book(await running.client("other"))
        await theirs.until(CHANGED)
        assert CHANGED not in ours.text


async def test_many_changes_at_once_are_few_words(running: World) -> None:
    notified: list[str] = []
    heard = asyncio.Event()

    def hear(kind: str, id_: str) -> None:
        if kind == "calendar":
            notified.append(id_)
            heard.set()

    running.service.desk.live.on_change = hear  # type: ignore[method-assign]
    for _ in range(500):
        running.service.calendar_notifier.changed(7)
        running.service.calendar_notifier.changed(8)
    async with asyncio.timeout(WAIT_TIMEOUT):
        await heard.wait()
        while len(notified) < 2:
            await asyncio.sleep(0.01)
    assert sorted(notified) == ["7", "8"]


async def test_a_stream_ends_with_its_session(
    running: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_pages, "_CHECK_SECONDS", 0.0)
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry")
        cookies = dict(staff.cookies)
        await staff.post("/console/sign-out")
        assert cookies
        await book(agent)
        await opened.until("event: signed-out")
        await opened.until_ended()
        assert CHANGED not in opened.text
    assert running.service.desk.live.streams == 0


async def test_a_quiet_stream_says_that_it_is_still_there(
    running: World, staff: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_pages, "HEARTBEAT_SECONDS", 0.05)
    async with stream(running.transport.app, staff) as opened:
        await opened.until(": still here", 3)


async def test_a_reader_who_goes_away_gives_the_place_back(running: World, staff: httpx.AsyncClient) -> None:
    live = running.service.desk.live
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry")
        assert live.streams == 1
        opened.leave()
        await opened.until_ended()
    assert live.streams == 0


async def test_the_streams_of_one_person_are_bounded(running: World, staff: httpx.AsyncClient) -> None:
    live = running.service.desk.live
    staff_id = staff.headers["X-Test-Staff"]
    places = [live.listening(1, "harbor", staff_id) for _ in range(8)]
    for place in places:
        place.__enter__()
    answer = await staff.get("/console/live")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "30"
    for place in places:
        place.__exit__(None, None, None)
    async with stream(running.transport.app, staff) as opened:
        assert opened.status == 200


async def test_streams_end_when_the_process_is_told_to(running: World, staff: httpx.AsyncClient) -> None:
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry")
        running.service.desk.live.close()
        await opened.until_ended()
    assert (await staff.get("/console/live")).status_code == 429


async def test_after_a_break_in_listening_everybody_looks_again(
    world: World, staff: httpx.AsyncClient, database_dsn: str
) -> None:
    live = world.service.desk.live
    async with stream(world.transport.app, staff) as opened:
        await opened.until("retry")
        listener = NotificationListener(Hosts(database_dsn), world.service.on_change, live.wake_all)
        async with running_steps(listener.step):
            await opened.until(CHANGED)
            await world.database.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            )
            await opened.until(CHANGED, 2)


async def test_a_stream_is_only_for_those_who_are_signed_in(running: World) -> None:
    async with stream(running.transport.app, running.anonymous()) as opened:
        assert opened.status == 401
        await opened.until_ended()


async def test_a_proposal_of_an_agent_wakes_the_calendars_too(
    running: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    body = {"patientId": await patient_id(agent, "Ada"), "slotId": (await slots(agent))[0]["id"]}
    async with stream(running.transport.app, staff) as opened:
        await opened.until("retry: 2000\n\n")
        assert (await agent.post("/api/appointments", json=body)).status_code == 428
        await opened.until(CHANGED)


async def test_a_page_that_outlived_its_session_goes_on_with_the_new_one(
    world: World, staff: httpx.AsyncClient
) -> None:
    answer = (await staff.get("/console/session")).json()
    assert answer == {"staff": staff.headers[TEST_STAFF], "csrf": staff.headers["X-CSRF-Token"]}
    nobody: Any = world.anonymous()
    gone = await nobody.get("/console/session", headers={"Sec-Fetch-Dest": "empty"})
    assert gone.status_code == 401
