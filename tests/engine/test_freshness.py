"""Strictly fresh, on every node: what was answered before a search began is in the search, warm or not."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from struct import pack
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.app import build_app, build_service
from frontdesk.practice_file import parse
from frontdesk.store.calendar_versions import CurrentVersions, PracticeVersions
from frontdesk.store.database import Database, DatabaseUnavailable, PartUnavailable
from frontdesk.store.practices import import_practice
from tests.support.shared_database import opened
from tests.support.world import NOW, PRACTICE, World, book

SEARCH: dict[str, Any] = {
    "visitTypeId": 22, "procedureId": 103, "locationId": 1, "from": "2026-11-16", "to": "2026-11-17", "limit": 200,
}  # fmt: skip
FIRST: dict[str, Any] = {"visitTypeId": 22, "procedureId": 103, "locationId": 1, "limit": 50}
WRITERS, SEARCHERS, SECONDS = 4, 8, 4.0


@pytest.fixture
async def nodes(world: World, database_dsn: str) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Two services on one database, each with connections of its own, and a client of each with the same token."""
    token = (await world.client(grant="integration")).headers["Authorization"]
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            database = await stack.enter_async_context(opened(database_dsn, 8))
            service = build_service(world.service.settings, database, world.clock)
            await service.ring.load()
            transport = httpx.ASGITransport(app=build_app(service))
            client = httpx.AsyncClient(
                transport=transport, base_url="http://test", headers={"Authorization": token}, timeout=60
            )
            found.append(await stack.enter_async_context(client))
            stack.push_async_callback(service.limiter.return_leases)
        yield found


@dataclass
class Known:
    """What has been answered so far: what is taken, and what is free. A slot that is being changed is neither."""

    taken: dict[str, str] = field(default_factory=dict)  # slot id to appointment id
    free: set[str] = field(default_factory=set)
    changes: Counter[str] = field(default_factory=Counter)  # that have begun, by slot id

    def untouched_since(self, slots: set[str], changes: Counter[str]) -> set[str]:
        return {slot for slot in slots if self.changes[slot] == changes[slot]}


async def change(nodes: list[httpx.AsyncClient], known: Known, patient: str, choose: random.Random) -> None:
    """Books a free slot or cancels what was booked, and notes it only when it has been answered."""
    node = choose.choice(nodes)
    if known.free and (not known.taken or choose.random() < 0.6):
        slot = choose.choice(sorted(known.free))
        known.free.discard(slot)
        known.changes[slot] += 1
        answer = await node.post("/api/appointments", json={"patientId": patient, "slotId": slot})
        if answer.status_code == 201:
            known.taken[slot] = answer.json()["appointmentId"]
        else:  # the patient is somewhere else at that time
            assert answer.json()["code"] == "validation", answer.text
            known.free.add(slot)
    elif known.taken:
        slot = choose.choice(sorted(known.taken))
        appointment = known.taken.pop(slot)
        known.changes[slot] += 1
        answer = await node.post(f"/api/appointments/{appointment}/cancel", json={"reason": "changed"})
        assert answer.status_code == 200, answer.text
        known.free.add(slot)


async def look(nodes: list[httpx.AsyncClient], known: Known, choose: random.Random) -> None:
    """One read, compared with what was certain before it began and was not touched until it ended."""
    taken, free, changes = set(known.taken), set(known.free), known.changes.copy()
    node, kind = choose.choice(nodes), choose.randrange(4)
    if kind == 0 and taken | free:
        slot = choose.choice(sorted(taken | free))
        answer = await node.get(f"/api/slots/{slot}")
        if known.untouched_since({slot}, changes):
            assert answer.json()["available"] is (slot in free)
        return
    path, query = ("/api/slots/first-available", FIRST) if kind == 1 else ("/api/slots", {**SEARCH, "providerId": 10})
    answer = await node.get(path, params=query)
    assert answer.status_code == 200, answer.text
    seen = {item["id"] for item in answer.json()["items"]}
    assert not seen & known.untouched_since(taken, changes), "a slot was offered that had been given away"
    if kind > 1:
        assert known.untouched_since(free, changes) <= seen, "a slot was missing that had been given back"


async def test_a_dated_list_has_what_was_booked_at_a_location_that_another_node_added(
    world: World, nodes: list[httpx.AsyncClient]
) -> None:
    listed = {"from": "2026-11-16", "to": "2026-11-20"}
    assert (await nodes[1].get("/api/appointments", params=listed)).json()["items"] == []
    hours = 'hours: [{location: 1, days: [mon, tue, wed, thu, fri], from: "09:00", to: "12:00"}]'
    moved = PRACTICE.replace("SLUG", "harbor").replace(hours, hours.replace("location: 1", "location: 3"))
    third = moved.replace("providers:\n", "  - {id: 3, name: Eastside}\nproviders:\n", 1)
    await import_practice(world.database, parse(third), NOW)
    booked = await book(await world.client(), providerId=12, locationId=3)
    page = (await nodes[1].get("/api/appointments", params=listed)).json()
    assert [item["id"] for item in page["items"]] == [booked]


async def test_no_search_misses_what_was_answered_before_it_began(nodes: list[httpx.AsyncClient]) -> None:
    people = []
    for number in range(WRITERS):
        person = {
            "firstName": f"P{number}",
            "lastName": "Crowd",
            "phone": f"+1 555 020 {number:04}",
            "dob": "1980-01-01",
        }
        people.append((await nodes[0].post("/api/patients", json=person)).json()["patientId"])
    items = (await nodes[0].get("/api/slots", params={**SEARCH, "providerId": 10})).json()["items"]
    known = Known(free={item["id"] for item in items[:12]})
    ends = asyncio.get_running_loop().time() + SECONDS
    looks = 0

    async def write(number: int) -> None:
        choose = random.Random(number)
        while asyncio.get_running_loop().time() < ends:
            await change(nodes, known, people[number], choose)
            await asyncio.sleep(choose.random() * 0.02)

    async def search(number: int) -> None:
        nonlocal looks
        choose = random.Random(100 + number)
        while asyncio.get_running_loop().time() < ends or looks <= SEARCHERS:
            await look(nodes, known, choose)
            looks += 1

    async with asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(write(number))
        for number in range(SEARCHERS):
            group.create_task(search(number))


async def test_searches_at_once_share_their_questions(world: World) -> None:
    agent = await world.client()
    wanted = {**SEARCH, "providerId": 10}
    for _ in range(3):  # the lease of the limiter grows with the rate
        await asyncio.gather(*(agent.get("/api/slots", params=wanted) for _ in range(32)))
    counted = []
    for _ in range(5):
        before = world.database.statements
        answers = await asyncio.gather(*(agent.get("/api/slots", params=wanted) for _ in range(32)))
        counted.append(world.database.statements - before)
        assert len({answer.content for answer in answers}) == 1
    assert min(counted) <= 3


class Questions:
    """A database whose answers come when a test says so."""

    def __init__(self) -> None:
        self.version = 1
        self.asked: list[asyncio.Future[None]] = []

    async def fetch(self, _sql: str, practices: int | list[int]) -> list[tuple[int | bytes | None, ...]]:
        calendars = pack(">qq", 10, self.version)
        found: list[tuple[int | bytes | None, ...]]  # read now, answered later
        if isinstance(practices, int):
            found = [(practices, calendars, None)]
        else:
            found = [(practice, practice, calendars, None) for practice in practices]
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append(answered)
        await answered
        return found

    async def under_way(self, number: int) -> None:
        async with asyncio.timeout(30):
            while len(self.asked) < number:
                await asyncio.sleep(0)


def ask(versions: CurrentVersions, practice: int = 1) -> "asyncio.Task[PracticeVersions]":
    return asyncio.create_task(versions.read(practice))


async def nobody_waits(versions: CurrentVersions) -> None:
    async with asyncio.timeout(30):
        while versions._reader is not None:
            await asyncio.sleep(0)
    assert not versions._waiting


async def test_who_comes_while_a_question_is_under_way_gets_the_answer_of_the_next() -> None:
    database: Any = Questions()
    versions = CurrentVersions(database)
    early = ask(versions)
    await database.under_way(1)
    database.version = 2  # committed and answered before the next one comes
    late, latest, of_another = ask(versions), ask(versions), ask(versions, 2)
    await asyncio.sleep(0)
    database.asked[0].set_result(None)
    assert await early == PracticeVersions(1, {10: 1})
    assert not late.done()
    await database.under_way(2)
    database.asked[1].set_result(None)
    assert await late == await latest == PracticeVersions(1, {10: 2})
    assert await of_another == PracticeVersions(2, {10: 2})
    await nobody_waits(versions)
    assert len(database.asked) == 2


async def test_who_gives_up_takes_nothing_from_the_others() -> None:
    database: Any = Questions()
    versions = CurrentVersions(database)
    asking, sharing, giving_up = ask(versions), ask(versions), ask(versions)
    await database.under_way(1)
    later, giving_up_later = ask(versions), ask(versions)
    await asyncio.sleep(0)
    asking.cancel()
    giving_up.cancel()
    database.asked[0].set_result(None)
    assert await sharing == PracticeVersions(1, {10: 1})
    await database.under_way(2)
    giving_up_later.cancel()
    database.asked[1].set_result(None)
    assert await asyncio.wait_for(later, 30) == PracticeVersions(1, {10: 1})
    assert asking.cancelled()
    assert giving_up.cancelled()
    assert giving_up_later.cancelled()
    await nobody_waits(versions)


async def test_everybody_who_waits_hears_of_a_failure_and_the_next_question_is_asked() -> None:
    database: Any = Questions()
    versions = CurrentVersions(database)
    first, sharing = ask(versions), ask(versions)
    await database.under_way(1)
    database.asked[0].set_exception(DatabaseUnavailable())
    for waiting in (first, sharing):
        with pytest.raises(DatabaseUnavailable):
            await waiting
    again = ask(versions)
    await database.under_way(2)
    database.asked[1].set_result(None)
    assert await again == PracticeVersions(1, {10: 1})


async def test_a_lost_part_of_the_database_concerns_its_practices_only() -> None:
    database: Any = Questions()
    versions = CurrentVersions(database)
    lost, other = ask(versions, 1), ask(versions, 2)
    await database.under_way(1)
    database.asked[0].set_exception(PartUnavailable())
    await database.under_way(3)
    database.asked[1].set_exception(PartUnavailable())
    database.asked[2].set_result(None)
    with pytest.raises(DatabaseUnavailable):
        await lost
    assert await other == PracticeVersions(2, {10: 1})
    await nobody_waits(versions)


async def test_nobody_waits_for_an_answer_when_the_service_ends() -> None:
    database: Any = Questions()
    versions = CurrentVersions(database)
    asking = ask(versions)
    await database.under_way(1)
    waiting = ask(versions)
    await asyncio.sleep(0)
    assert versions._reader is not None
    versions._reader.cancel()
    await asyncio.wait([asking, waiting], timeout=30)
    assert (asking.cancelled(), waiting.cancelled()) == (True, True)


async def test_practices_share_questions_and_each_gets_its_own_answer(world: World) -> None:
    await book(await world.client())
    versions, before = CurrentVersions(world.database), world.database.statements
    found = await asyncio.gather(*(versions.read(practice) for practice in (1, 2, 404, 2, 1)))
    assert world.database.statements - before == 1
    assert [versions.calendars for versions in found] == [{10: 1}, {}, {}, {}, {10: 1}]
    assert found[2].directory is None, "like nothing that is kept"


async def test_a_database_that_is_away_is_said_to_be(world: World) -> None:
    agent = await world.client()
    wanted = {**SEARCH, "providerId": 10}
    assert (await agent.get("/api/slots", params=wanted)).status_code == 200
    await world.database.close()
    try:
        refused = await agent.get("/api/slots", params=wanted)
    finally:
        await world.database.open()
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    assert refused.headers["retry-after"]
    assert (await agent.get("/api/slots", params=wanted)).status_code == 200


async def versions_of(database: Database, practice: int) -> dict[int, int]:
    async with database.transaction(practice) as connection:
        rows = await connection.fetch("SELECT provider_id, version FROM calendar_version")
    return {row["provider_id"]: row["version"] for row in rows}


async def test_a_bulk_load_counts_once_for_each_provider(world: World, owner_dsn: str) -> None:
    owner = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk"})
    insert = """
        INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id,
            procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
        SELECT 1, 'apt_' || p || n, (SELECT min(patient_id) FROM patient WHERE practice_id = 1), p, 1, 22, 103, 1, t,
               t + interval '15 minutes', t + interval '15 minutes', 'cancelled', 'load', now(), now()
        FROM unnest($1::integer[]) p, generate_series(1, 50) n,
             LATERAL (SELECT '2026-11-16 14:00Z'::timestamptz + n * interval '15 minutes') AS s (t)"""
    try:
        await owner.execute(insert, [10, 12])
        assert await versions_of(world.database, 1) == {10: 1, 12: 1}
        await owner.execute("UPDATE appointment SET provider_id = 11 WHERE provider_id = 12")
        assert await versions_of(world.database, 1) == {10: 1, 11: 1, 12: 2}
        await owner.execute("UPDATE appointment SET status = 'cancelled' WHERE provider_id = 99")
        await owner.execute("DELETE FROM appointment WHERE provider_id = 11")
        assert await versions_of(world.database, 1) == {10: 1, 11: 2, 12: 2}
        assert await versions_of(world.database, 2) == {}
    finally:
        await owner.close()


async def test_those_who_move_appointments_between_two_providers_do_not_lock_each_other_out(world: World) -> None:
    """Everybody moves one from its provider to the other at the same time, to and fro."""
    desk = await world.client(grant="integration")
    offered = {
        provider: [
            item["id"]
            for item in (
                await desk.get("/api/slots", params={**SEARCH, "providerId": provider, "to": "2026-11-16"})
            ).json()["items"]
        ]
        for provider in (10, 11)
    }
    moving = []
    for number in range(8):
        person = {
            "firstName": f"P{number}",
            "lastName": "Crowd",
            "phone": f"+1 555 020 {number:04}",
            "dob": "1980-01-01",
        }
        patient = (await desk.post("/api/patients", json=person)).json()["patientId"]
        own = (offered[10][number], offered[11][number])
        answer = await desk.post("/api/appointments", json={"patientId": patient, "slotId": own[number % 2]})
        assert answer.status_code == 201, answer.text
        moving.append((answer.json()["appointmentId"], own, number))

    async def to_and_fro(appointment: str, own: tuple[str, str], number: int) -> None:
        for turn in range(1, 6):
            body = {"slotId": own[(number + turn) % 2]}
            answer = await desk.post(f"/api/appointments/{appointment}/reschedule", json=body)
            assert answer.status_code == 200, answer.text

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for each in moving:
            group.create_task(to_and_fro(*each))
    assert await versions_of(world.database, 1) == {10: 4 + 40, 11: 4 + 40}
