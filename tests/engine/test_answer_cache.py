"""The answer cache: who gets a cached answer, and when it is no longer fresh."""

import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.access.clients.authentication import STATUS_TTL_SECONDS
from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.records import disable_client
from frontdesk.access.keys.ring import CURSORS, SETTLING, SLOT_IDS
from frontdesk.cache import BoundedCache
from frontdesk.doors.mcp.messages import PARSE_ERROR
from frontdesk.doors.rest import RestDoor
from frontdesk.engine.answer_cache import MAX_ENTRY_BYTES, Answer, AnswerCache, CacheKey, Entry
from frontdesk.operations import OPERATIONS, SlotJson
from frontdesk.store.calendar_versions import CurrentVersions, PracticeVersions
from frontdesk.store.practices import set_suspended
from tests.access.stopped_clock import StoppedClock
from tests.doors.mcp_speech import EVERY, framed, headers, request
from tests.support.shared_database import as_superuser, shared_world
from tests.support.world import MONDAY, PRACTICE, World, book, confirmed, patient_id, slots

SEARCH = "/api/slots?providerId=10&locationId=1&visitTypeId=21&procedureId=101&from=2026-11-16&to=2026-11-18&limit=200"
ON_DIRECTORY = (
    "/api/practice",
    "/api/locations",
    "/api/locations/1",
    "/api/providers?limit=2",
    "/api/providers/10",
    "/api/visit-types",
    "/api/visit-types/21",
    "/api/visit-types/21/procedures",
)
ON_CALENDAR = (SEARCH, "/api/slots/first-available?visitTypeId=22&procedureId=103&limit=50")
NOTICE = PRACTICE.replace('phone: "+1 555 0100"}', 'phone: "+1 555 0100", minimumNoticeMinutes: 90}', 1)


def entries(world: World) -> dict[Any, Entry]:
    return dict(world.service.engine.answers._entries.items())


def empty_cache() -> AnswerCache:
    return AnswerCache(lambda _: 1, lambda _: 1)


async def anew(world: World, agent: httpx.AsyncClient, path: str) -> bytes:
    """The answer of an engine that has nothing cached."""
    engine = replace(world.service.engine, answers=empty_cache(), slot_json=SlotJson())
    door = httpx.ASGITransport(app=RestDoor(engine, world.service.settings, world.service.requests))
    async with httpx.AsyncClient(transport=door, base_url="http://test", headers=agent.headers) as client:
        answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.content


async def statements(world: World, agent: httpx.AsyncClient, path: str) -> int:
    """Beside those of the limiter and of the caller's status, which happen now and then: the least of several."""
    counted = []
    for _ in range(5):
        before = world.database.statements
        assert (await agent.get(path)).status_code == 200
        counted.append(world.database.statements - before)
    return min(counted[1:])


async def test_an_answer_from_the_directory_is_cached_and_takes_no_statement(world: World) -> None:
    agent = await world.client()
    for path in ON_DIRECTORY:
        first = await agent.get(path)
        assert await statements(world, agent, path) == 0
        again = await agent.get(path)
        assert (again.content, again.status_code) == (first.content, 200)
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.headers["x-svc-trace-id"] != first.headers["x-svc-trace-id"]
    assert len(entries(world)) == len(ON_DIRECTORY)


async def test_an_answer_from_the_calendar_is_cached_and_takes_one_statement(world: World) -> None:
    agent = await world.client()
    one = f"/api/slots/{(await slots(agent))[0]['id']}"
    for path in (*ON_CALENDAR, one):
        first = await agent.get(path)
        assert await statements(world, agent, path) == 1
        assert (await agent.get(path)).content == first.content == await anew(world, agent, path)


async def test_every_call_still_counts_and_is_logged(world: World) -> None:
    seen: list[Any] = []
    world.service.requests.observers.append(lambda kind, *_: seen.append(kind))
    agent = await world.client(per_minute=4)
    answers = [await agent.get("/api/providers") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
    left = [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers]
    assert left == [f'"minute";r={n}' for n in (3, 2, 1, 0, 0)]
    noted = [(each.operation, each.status, each.client_id) for each in seen if each.door == "rest"]
    assert noted == [("list_providers", 200, agent.headers["X-Test-Client"])] * 4


async def test_a_booking_shows_in_the_next_search(world: World) -> None:
    agent = await world.client()
    before = (await agent.get(SEARCH)).json()["items"]
    appointment = await book(agent)
    after = (await agent.get(SEARCH)).json()["items"]
    assert after == before[1:]
    reading = await agent.get(f"/api/slots/{before[0]['id']}")
    assert reading.json()["available"] is False
    await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {"reason": "ill"})
    assert (await agent.get(SEARCH)).json()["items"] == before
    assert (await agent.get(f"/api/slots/{before[0]['id']}")).json()["available"] is True


async def test_a_booking_leaves_the_answers_of_other_providers_cached(world: World) -> None:
    agent, answers = await world.client(), world.service.engine.answers
    other = SEARCH.replace("providerId=10", "providerId=11")
    for path in (SEARCH, other):
        await agent.get(path)
    await book(agent)
    hits, misses = answers.hits["search_slots"], answers.misses["search_slots"]
    assert (await agent.get(other)).content == await anew(world, agent, other)
    assert (answers.hits["search_slots"], answers.misses["search_slots"]) == (hits + 1, misses)
    assert (await agent.get(SEARCH)).content == await anew(world, agent, SEARCH)
    assert (answers.hits["search_slots"], answers.misses["search_slots"]) == (hits + 1, misses + 1)


async def test_a_search_uses_the_versions_that_its_cached_answer_was_compared_with(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, reads = await world.client(), 0
    one = f"/api/slots/{(await slots(agent))[0]['id']}"
    paths = (*ON_CALENDAR, one)
    for path in paths:
        await agent.get(path)
    await book(agent)
    read = CurrentVersions.read

    async def counting(self: CurrentVersions, practice_id: int) -> PracticeVersions:
        nonlocal reads
        reads += 1
        return await read(self, practice_id)

    monkeypatch.setattr(CurrentVersions, "read", counting)
    shown = []
    for path in paths:
        reads = 0
        shown.append((await agent.get(path)).content)
        assert reads == 1
    monkeypatch.undo()
    assert shown == [await anew(world, agent, path) for path in paths]


@pytest.mark.parametrize("role", ["origin", "replica"])
async def test_a_change_that_went_past_the_service_shows_in_the_next_search(
    world: World, database_dsn: str, role: str
) -> None:
    """Even in a session that turns ordinary triggers off."""
    agent = await world.client()
    await book(agent)
    before = (await agent.get(SEARCH)).json()["items"]
    owner = await asyncpg.connect(
        as_superuser(database_dsn), server_settings={"search_path": "frontdesk", "session_replication_role": role}
    )
    try:
        for change in (
            "UPDATE appointment SET starts_at = starts_at + interval '1 hour', ends_at = ends_at + interval '1 hour', "
            "busy_until = busy_until + interval '1 hour'",
            "UPDATE appointment SET provider_id = 11",
            "UPDATE appointment SET provider_id = 10",
            "UPDATE appointment SET status = 'cancelled'",
            "UPDATE appointment SET status = 'booked'",
            "DELETE FROM appointment",
        ):
            await owner.execute(change)
            after = (await agent.get(SEARCH)).json()["items"]
            assert after != before, change
            before = after
    finally:
        await owner.close()


async def test_an_import_shows_at_once(world: World) -> None:
    agent = await world.client()
    for path in (*ON_DIRECTORY, *ON_CALENDAR):
        await agent.get(path)
    changed = PRACTICE.replace("SLUG", "harbor").replace("Robert Chen", "Roberta Chen").replace("09:00", "10:00")
    await world.import_file(changed)
    for path in (*ON_DIRECTORY, *ON_CALENDAR):
        assert (await agent.get(path)).content == await anew(world, agent, path), path
    assert "Roberta" in (await agent.get("/api/providers/10")).text
    assert (await agent.get(SEARCH)).json()["items"][0]["start"] == "2026-11-16T10:00:00-05:00"


async def test_practices_do_not_share_answers(world: World) -> None:
    here, there = await world.client("harbor"), await world.client("other")
    await world.import_file(PRACTICE.replace("SLUG", "other").replace("Robert Chen", "Olga Other"))
    await book(there)
    for path in (*ON_DIRECTORY, *ON_CALENDAR):
        for agent in (here, there, here, there):
            assert (await agent.get(path)).content == await anew(world, agent, path)
    assert "Olga" in (await there.get("/api/providers/10")).text
    assert "Olga" not in (await here.get("/api/providers/10")).text


async def test_a_caller_without_the_scope_gets_no_answer_that_another_got(world: World) -> None:
    agent, reader = await world.client(), await world.client(scopes=["practices:read"])
    assert (await agent.get(SEARCH)).status_code == 200
    refused = await reader.get(SEARCH)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_scope")


async def test_what_cannot_be_accepted_is_refused_as_before(world: World) -> None:
    agent = await world.client()
    assert (await agent.get("/api/providers")).status_code == 200
    assert (await agent.get("/api/providers", headers={"Accept": "image/png"})).status_code == 406
    text = await agent.get("/api/providers", headers={"Accept": "text/plain"})
    assert text.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.fixture
def aged(world: World, monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """The clock of the status of clients; no notification arrives."""
    clock = StoppedClock()
    monkeypatch.setattr(world.service.authenticator, "_monotonic", clock.monotonic)
    return clock


@pytest.mark.parametrize("path", ["/api/providers", SEARCH])
async def test_a_disabled_client_gets_no_cached_answer(world: World, aged: StoppedClock, path: str) -> None:
    agent = await world.client()
    assert (await agent.get(path)).status_code == 200
    await disable_client(world.database, agent.headers["X-Test-Client"])
    aged.advance(seconds=STATUS_TTL_SECONDS)
    assert (await agent.get(path)).status_code == 401


@pytest.mark.parametrize("path", ["/api/providers", SEARCH])
async def test_a_suspended_practice_gets_no_cached_answer(world: World, aged: StoppedClock, path: str) -> None:
    agent = await world.client()
    assert (await agent.get(path)).status_code == 200
    await set_suspended(world.database, "harbor", suspended=True)
    aged.advance(seconds=STATUS_TTL_SECONDS)
    refused = await agent.get(path)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_tenant")


async def test_a_slot_is_gone_with_the_moment_in_which_its_notice_passes(world: World) -> None:
    await world.import_file(NOTICE.replace("SLUG", "harbor"))
    world.clock.now = world.clock.now.replace(day=16, hour=12, minute=30)  # ninety minutes before nine in New York
    agent = await world.client()
    nine = "2026-11-16T09:00:00-05:00"
    assert (await agent.get(SEARCH)).json()["items"][0]["start"] == nine
    slot = f"/api/slots/{(await slots(agent))[0]['id']}"
    assert (await agent.get(slot)).json()["available"] is True
    world.clock.advance(microseconds=1)
    assert (await agent.get(SEARCH)).json()["items"][0]["start"] > nine
    assert (await agent.get(slot)).json()["available"] is False


@pytest.mark.parametrize("purpose", [SLOT_IDS, CURSORS])
async def test_new_keys_are_used_as_soon_as_they_settle(world: World, purpose: str) -> None:
    agent = await world.client()
    paths = ["/api/providers?limit=2", SEARCH.replace("limit=200", "limit=5")]
    before = [(await agent.get(path)).content for path in paths]
    await world.service.ring.rotate(purpose)
    assert [(await agent.get(path)).content for path in paths] == before, "not yet"
    world.clock.advance(seconds=SETTLING.total_seconds())
    after = [(await agent.get(path)).content for path in paths]
    assert after == [await anew(world, agent, path) for path in paths]
    assert after[1] != before[1]
    assert (after[0] != before[0]) == (purpose == CURSORS)
    world.clock.advance(days=8)  # now the old key has ceased to open anything
    await world.renew(agent)
    assert [(await agent.get(path)).content for path in paths] == [await anew(world, agent, path) for path in paths]


@pytest.fixture(scope="module")
async def moving(cluster: Any, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("moving")
    async with shared_world(cluster, template, folder) as built:
        await built.import_file(NOTICE.replace("SLUG", "harbor"))
        agent = await built.client()
        await book(agent)
        await book(agent, "Alan", procedureId=102)
        yield built


@given(
    st.lists(
        st.one_of(
            st.sampled_from([timedelta(microseconds=1), timedelta(seconds=59, microseconds=999_999)]),
            st.integers(0, 600).map(lambda seconds: timedelta(seconds=seconds)),
            st.integers(1, 30).map(lambda minutes: timedelta(minutes=minutes)),
        ),
        max_size=12,
    )
)
@settings(max_examples=15)
async def test_at_every_moment_the_answer_is_what_would_be_answered_anew(moving: World, steps: list[timedelta]) -> None:
    moving.clock.now = moving.clock.now.replace(day=MONDAY.day, hour=11, minute=0, second=0, microsecond=0)
    agent = await moving.client()
    slot = f"/api/slots/{(await slots(agent))[0]['id']}"
    for step in steps:
        moving.clock.now += step
        await moving.renew(agent)
        for path in (*ON_CALENDAR, slot):
            assert (await agent.get(path)).content == await anew(moving, agent, path), moving.clock.now


async def test_protected_data_and_refusals_are_never_cached(world: World) -> None:
    agent = await world.client()
    patient = await patient_id(agent)
    appointment = await book(agent)
    before = set(entries(world))
    for path in (
        f"/api/patients/{patient}",
        f"/api/appointments/{appointment}",
        "/api/appointments?from=2026-11-16",
        "/api/capabilities",
        "/api/providers/99",
        "/api/slots/slt_" + "A" * 40,
        "/api/slots?providerId=0",
    ):
        await agent.get(path)
    assert set(entries(world)) == before
    assert b"Lovelace" not in b"".join(each.answer.content for each in entries(world).values())


def test_only_reads_without_protected_data_are_cached() -> None:
    cached = [operation for operation in OPERATIONS if operation.depends_on is not None]
    assert len(cached) > 1
    for operation in cached:
        assert (operation.kind, operation.method, operation.reads_phi) == ("read", "GET", False)
        assert operation.scope in ("practices:read", "slots:read")


async def test_a_simulated_refusal_is_neither_cached_nor_hidden_by_a_cached_answer(world: World) -> None:
    await world.import_file(PRACTICE.replace("SLUG, name", "harbor, sandbox: true, name", 1))
    agent = await world.client()
    wanted = {"Frontdesk-Simulate": "not_found"}
    assert (await agent.get("/api/providers/10", headers=wanted)).status_code == 404
    assert not entries(world)
    assert (await agent.get("/api/providers/10")).status_code == 200
    assert (await agent.get("/api/providers/10", headers=wanted)).status_code == 404


async def test_the_cache_is_bounded_and_keeps_what_was_used_last(world: World) -> None:
    answers, limit = world.service.engine.answers, 300_000
    answers._entries = BoundedCache(limit)
    agent = await world.client()
    for number in range(1, 150):
        await agent.get("/api/providers")
        await agent.get(SEARCH.replace("limit=200", f"limit={number}"))
        assert sum(len(entry.answer.content) for entry in entries(world).values()) < answers._entries.weight <= limit
    assert 5 < len(entries(world)) < 100
    assert any(key[1] == "/api/providers" for key in entries(world))


async def test_answers_from_the_calendar_take_no_memory_after_their_minute(world: World) -> None:
    agent = await world.client()
    world.clock.now = world.clock.now.replace(second=30)
    for path in ("/api/providers", SEARCH, SEARCH.replace("limit=200", "limit=5")):
        assert (await agent.get(path)).status_code == 200
    world.clock.advance(seconds=20)
    assert (await agent.get(SEARCH.replace("limit=200", "limit=6"))).status_code == 200
    assert len(entries(world)) == 4
    world.clock.advance(seconds=20)
    assert (await agent.get(SEARCH)).status_code == 200
    assert sorted(path for _, path, _ in entries(world)) == ["/api/providers", "/api/slots"]
    assert await statements(world, agent, SEARCH) == 1


async def emptied(world: World) -> tuple[AnswerCache, Caller, Callable[[CacheKey, Answer], None]]:
    """An empty cache, a caller, and what stores answers of list_providers to it there."""
    agent, cache = await world.client(), empty_cache()
    await agent.get("/api/providers")
    (entry,) = entries(world).values()
    caller = await world.service.authenticator.identify(agent.headers["Authorization"].removeprefix("Bearer "))
    operation = next(each for each in OPERATIONS if each.name == "list_providers")

    def store(key: CacheKey, answer: Answer) -> None:
        cache.store(caller, operation, key, answer, entry.versions, entry.stamp)

    return cache, caller, store


async def test_an_answer_that_is_too_large_is_not_cached(world: World) -> None:
    cache, _, store = await emptied(world)
    key = ("/api/providers", b"")
    for size, stored in ((MAX_ENTRY_BYTES, 0), (MAX_ENTRY_BYTES // 3, 1)):
        store(key, Answer(200, b"x" * size))
        assert len(cache._entries) == stored


async def test_entries_take_no_more_memory_than_they_weigh(world: World) -> None:
    cache, caller, store = await emptied(world)
    tracemalloc.start()
    try:
        for number in range(200):
            answer = Answer(200, orjson.dumps({"items": "x" * 400}))
            key = ("list_providers", orjson.dumps({"limit": number}))
            store(key, answer)
            stored = cache.lookup(caller, key)
            assert stored is not None
            assert orjson.dumps(stored.answer.quoted) == orjson.dumps('{"items":"' + "x" * 400 + '"}')
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache._entries) == 200
    assert 200 * 800 < taken < cache._entries.weight * 1.1


async def test_hits_and_misses_are_counted_by_operation(world: World) -> None:
    agent, answers = await world.client(), world.service.engine.answers
    for path in ("/api/providers", "/api/providers", "/api/providers?limit=2", SEARCH, "/api/capabilities"):
        await agent.get(path)
    await book(agent)
    hits, misses = answers.hits.copy(), answers.misses.copy()
    await agent.get(SEARCH)
    assert (hits["list_providers"], misses["list_providers"]) == (1, 2)
    assert answers.misses - misses == {"search_slots": 1}
    assert answers.hits == hits
    assert "get_capabilities" not in answers.misses


async def test_both_doors_answer_from_the_cache(world: World) -> None:
    agent, answers = await world.client(), world.service.engine.answers
    for version in EVERY:
        message = request("tools/call", {"name": "list_providers", "arguments": {}}, version)
        replies = [
            framed(await agent.post("/mcp", json={**message, "id": one}, headers=headers(message, version)))
            for one in (1, "two", 3)
        ]
        assert [reply["id"] for reply in replies] == [1, "two", 3]
        assert len({str(reply["result"]) for reply in replies}) == 1
        assert replies[0]["result"]["structuredContent"]["items"]
    assert (answers.hits["list_providers"], answers.misses["list_providers"]) == (3 * len(EVERY) - 1, 1)


async def test_deeply_nested_arguments_are_refused_and_not_cached(world: World) -> None:
    agent, nested = await world.client(), "[" * 600 + "]" * 600
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":{"limit":%s}}}'
    named = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = await agent.post("/mcp", content=body % nested, headers=named)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, PARSE_ERROR)
    assert not entries(world)
