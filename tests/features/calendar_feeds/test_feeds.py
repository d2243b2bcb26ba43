"""Calendar feeds: valid, private, revocable, limited, and right about the time."""

import asyncio
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from icalendar import Calendar

from frontdesk.access.limits.failed_attempts import PER_ADDRESS
from frontdesk.cli.output import to_document
from frontdesk.domain.errors import Problem
from frontdesk.engine.fair_limiter import FairLimiter
from frontdesk.features.calendar_feeds.feeds import Feed, FeedError, add_feed, list_feeds, revoke_feed
from frontdesk.features.calendar_feeds.reading import READS_PER_MINUTE, CalendarFeeds
from frontdesk.store.directories import load_directory
from frontdesk.store.practices import practice_id_of
from tests.console.signing_in import browser_at
from tests.features.switching import switch
from tests.support.world import World, book, confirmed, slots

NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture
def reader(world: World) -> httpx.AsyncClient:
    return world.anonymous()


async def feed(world: World, provider: int = 10, *, with_names: bool = False) -> tuple[str, str]:
    """The id of a new feed, and its path."""
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    stored = await load_directory(world.database, practice_id)
    made, path = await add_feed(
        world.database, practice_id, stored.directory, provider, with_names=with_names, now=world.clock.now
    )
    return made.feed_id, path


async def events(reader: httpx.AsyncClient, path: str) -> list[Any]:
    answer = await reader.get(path)
    assert answer.status_code == 200, answer.text
    return list(Calendar.from_ical(answer.content).walk("VEVENT"))


async def test_a_feed_is_a_valid_calendar_of_busy_times(world: World, reader: httpx.AsyncClient) -> None:
    client = await world.client()
    await book(client)
    await book(client, "Alan", providerId=12)
    _, path = await feed(world)
    answer = await reader.get(path)
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.headers["cache-control"].startswith("private")
    calendar: Any = Calendar.from_ical(answer.content)
    assert calendar["version"] == "2.0"
    assert calendar["prodid"].startswith("-//frontdesk//")
    [event] = calendar.walk("VEVENT")
    assert event.errors == []
    assert {"UID", "DTSTAMP", "DTSTART", "DTEND"} <= set(event)
    assert event["summary"] == "Busy"
    assert event["dtstart"].dt.astimezone(NEW_YORK) == datetime(2026, 11, 16, 9, 0, tzinfo=NEW_YORK)
    assert event["dtend"].dt == datetime(2026, 11, 16, 14, 15, tzinfo=UTC)
    assert all(len(line) <= 75 for line in answer.content.split(b"\r\n"))


async def test_nobody_is_named_unless_the_feed_was_made_so(world: World, reader: httpx.AsyncClient) -> None:
    client = await world.client()
    appointment = await book(client)
    _, silent = await feed(world)
    _, telling = await feed(world, with_names=True)
    text = (await reader.get(silent)).text
    for secret in ("Ada", "Lovelace", appointment, "Follow-up", "555 010", "5550100199"):
        assert secret not in text
    [event] = await events(reader, telling)
    assert event["summary"] == "Ada Lovelace"


async def test_every_reading_is_recorded_and_with_names_whose(world: World, reader: httpx.AsyncClient) -> None:
    client = await world.client()
    await book(client)
    feed_id, path = await feed(world, with_names=True)
    await reader.get(path)
    practice_id = await practice_id_of(world.database, "harbor")
    async with world.database.transaction(practice_id) as connection:
        [row] = await connection.fetch("SELECT * FROM audit_record WHERE operation = 'read_calendar_feed'")
    assert (row["actor"], row["outcome"]) == (feed_id, "executed")
    assert len(row["subject_ids"]) == 1
    assert row["subject_ids"][0].startswith("pat_")


async def test_many_patients_are_recorded_in_several_records(
    world: World, reader: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.audit.trail._MAX_SUBJECTS", 1)
    client = await world.client()
    await book(client)
    await book(client, "Alan")
    _, path = await feed(world, with_names=True)
    assert len(await events(reader, path)) == 2
    assert [len(each) for each in await recorded_subjects(world)] == [1, 1]


async def recorded_subjects(world: World) -> list[list[str]]:
    """Of each record of a read feed."""
    async with world.database.transaction(await practice_id_of(world.database, "harbor")) as connection:
        rows = await connection.fetch("SELECT * FROM audit_record WHERE operation = 'read_calendar_feed'")
    return [row["subject_ids"] for row in rows]


async def test_reads_of_a_feed_are_rate_limited_across_addresses(world: World) -> None:
    _, path = await feed(world)
    _, other = await feed(world)
    readers = [browser_at(world, f"203.0.113.{number}") for number in range(5)]
    answers = await asyncio.gather(*(readers[number % 5].get(path) for number in range(READS_PER_MINUTE + 5)))
    assert sorted(answer.status_code for answer in answers) == [200] * READS_PER_MINUTE + [429] * 5
    refused = await readers[0].get(path)
    assert refused.json()["code"] == "rate_limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert len(await recorded_subjects(world)) == READS_PER_MINUTE
    assert (await readers[0].get(other)).status_code == 200


async def test_guessed_addresses_are_limited_and_lock_out_nobody(world: World) -> None:
    _, path = await feed(world)
    guesser, elsewhere = browser_at(world, "203.0.113.1"), browser_at(world, "203.0.113.2")

    async def guess(browser: httpx.AsyncClient) -> httpx.Response:
        return await browser.get(f"/feeds/1-{secrets.token_urlsafe(32)}.ics")

    assert {(await guess(guesser)).status_code for _ in range(PER_ADDRESS)} == {404}
    assert (await guess(guesser)).status_code == 429
    assert (await guess(elsewhere)).status_code == 404
    assert (await guesser.get(path)).status_code == 200


async def test_a_feed_waits_for_a_turn_like_other_calls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.engine.fair_limiter.WAIT_SECONDS", 0.05)
    _, path = await feed(world)
    address = path.removeprefix("/feeds/").removesuffix(".ics")
    busy = replace(world.service.engine.services[CalendarFeeds], limiter=FairLimiter(at_once=0, per_practice=0))
    with pytest.raises(Problem) as raised:
        await busy.read(address, None, "req_1")
    assert raised.value.code == "upstream_unavailable"
    await world.service.engine.services[CalendarFeeds].read(address, None, "req_2")
    assert world.service.engine.limiter.running == 0


async def test_times_are_right_on_both_sides_of_a_change_of_clocks(world: World, reader: httpx.AsyncClient) -> None:
    world.clock.now = datetime(2026, 10, 20, 8, 0, tzinfo=UTC)
    client = await world.client()
    for day in ("2026-10-30", "2026-11-02"):  # New York leaves daylight saving on the first of November
        await book(client, **{"from": day, "to": day})
    _, path = await feed(world)
    starts = [event["dtstart"].dt for event in await events(reader, path)]
    assert [start.astimezone(NEW_YORK).strftime("%m-%d %H:%M") for start in starts] == ["10-30 09:00", "11-02 09:00"]
    assert [start.astimezone(UTC).hour for start in starts] == [13, 14]


async def test_an_appointment_keeps_its_uid_when_it_is_moved_and_disappears_when_cancelled(
    world: World, reader: httpx.AsyncClient
) -> None:
    client = await world.client()
    appointment = await book(client)
    _, path = await feed(world)
    [before] = await events(reader, path)
    world.clock.advance(minutes=1)
    later = (await slots(client))[-1]
    moved = await confirmed(client, "POST", f"/api/appointments/{appointment}/reschedule", {"slotId": later["id"]})
    assert moved.status_code == 200, moved.text
    [after] = await events(reader, path)
    assert after["uid"] == before["uid"]
    assert after["dtstart"].dt > before["dtstart"].dt
    assert after["dtstamp"].dt > before["dtstamp"].dt
    assert appointment not in str(after["uid"])
    cancelled = await confirmed(client, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert cancelled.status_code == 200, cancelled.text
    assert await events(reader, path) == []


async def test_what_is_long_past_is_left_out(world: World, reader: httpx.AsyncClient) -> None:
    client = await world.client()
    await book(client)
    _, path = await feed(world)
    world.clock.advance(days=29)
    assert len(await events(reader, path)) == 1
    world.clock.advance(days=5)
    assert await events(reader, path) == []


async def test_a_revoked_feed_and_one_that_never_was_look_the_same(world: World, reader: httpx.AsyncClient) -> None:
    feed_id, path = await feed(world)
    _, other = await feed(world)
    assert (await reader.get(path)).status_code == 200
    revoked = await revoke_feed(world.database, feed_id, world.clock.now)
    assert revoked.revoked_at == world.clock.now
    gone = await reader.get(path)
    practice, secret = path.removeprefix("/feeds/").removesuffix(".ics").split("-", 1)
    flipped = ("A" if secret[0] != "A" else "B") + secret[1:]
    for wrong in (
        f"/feeds/{practice}-{flipped}.ics",
        f"/feeds/{int(practice) + 1}-{secret}.ics",
        f"/feeds/999999999999999999-{secret}.ics",
        f"/feeds/{secret}.ics",
        f"/feeds/0-{secret}.ics",
        "/feeds/.ics",
        "/feeds/x.ics",
    ):
        unknown = await reader.get(wrong)
        assert unknown.status_code == gone.status_code == 404, wrong
        assert unknown.headers["content-type"] == "application/problem+json"
        assert unknown.json()["code"] == gone.json()["code"] == "not_found"
    assert (await reader.get(other)).status_code == 200, "only the one was revoked"


async def test_another_practice_s_number_does_not_open_a_feed(world: World, reader: httpx.AsyncClient) -> None:
    _, path = await feed(world)
    theirs = await practice_id_of(world.database, "other")
    _, _, secret = path.removeprefix("/feeds/").partition("-")
    assert (await reader.get(f"/feeds/{theirs}-{secret}")).status_code == 404


async def test_a_suspended_practice_shows_no_calendar(world: World, reader: httpx.AsyncClient) -> None:
    _, path = await feed(world)
    await world.database.fetchval("UPDATE practice SET suspended = true WHERE slug = 'harbor' RETURNING 1")
    assert (await reader.get(path)).status_code == 404


async def test_the_secret_is_256_bits_and_only_its_hash_is_stored(world: World) -> None:
    _, path = await feed(world)
    practice_id = await practice_id_of(world.database, "harbor")
    secret = path.removeprefix(f"/feeds/{practice_id}-").removesuffix(".ics")
    assert len(secret) == 43
    async with world.database.transaction(practice_id) as connection:
        text = str(await connection.fetch("SELECT * FROM calendar_feed"))
    assert secret not in text


async def test_a_feed_needs_a_provider_that_the_practice_has(world: World) -> None:
    with pytest.raises(FeedError):
        await feed(world, provider=99)
    with pytest.raises(FeedError):
        await revoke_feed(world.database, "feed_1_0123456789abcdef", world.clock.now)
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    assert await list_feeds(world.database, practice_id) == []


def test_the_document_of_a_feed_is_part_of_the_command_lines_contract() -> None:
    assert to_document(Feed("f1", "harbor", 10, True, datetime(2026, 11, 16, 9, 30, 15, 999, tzinfo=UTC), None)) == {
        "feedId": "f1",
        "practice": "harbor",
        "providerId": 10,
        "withNames": True,
        "createdAt": "2026-11-16T09:30:15Z",
        "revokedAt": None,
    }


async def test_a_practice_that_has_switched_feeds_off_serves_none(world: World, reader: httpx.AsyncClient) -> None:
    _, path = await feed(world)
    await switch(world, {"calendar_feeds": {"enabled": False}})
    unknown = await reader.get(f"/feeds/1-{secrets.token_urlsafe(32)}.ics")
    refused = await reader.get(path)
    assert (refused.status_code, refused.json()["detail"]) == (404, unknown.json()["detail"])
    assert await recorded_subjects(world) == []
    await switch(world, {})
    assert (await reader.get(path)).status_code == 200
