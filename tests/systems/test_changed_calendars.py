"""Searches in calendars of which only what changed is read again, against an exhaustive search."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Location, OpeningHours, Practice, Procedure, Provider
from frontdesk.domain.local_time import DAY_MINUTES
from frontdesk.store.calendar_versions import CurrentVersions
from frontdesk.systems.native.calendar_cache import CalendarCache, CalendarRange, CalendarRow, ProviderCalendar
from frontdesk.systems.native.opening_times import ProviderOffers
from frontdesk.systems.port import SlotQuery
from tests.domain.open_times import free_lane
from tests.support.world import World
from tests.systems.nearly_full import EPOCH, VISITS, NearlyFull, as_busy

ANY_VISIT = SlotQuery(20, VISITS[0].id, None, None, None, None)
MORE_THAN_ON_RECORD = 12


class Changing(NearlyFull):
    """Changes one calendar at a time, by one appointment or hold."""

    async def change(self) -> None:
        changes = (self.book, self.cancel, self.move, self.hold, self.release, self.confirm, self.book_many, self.wait)
        await self.chosen.choice(changes)()

    async def book(self) -> None:
        async with self.world.database.transaction(self.practice_id) as connection:
            place = await self._free(connection)
            if place is not None:
                await self._book(connection, *place)

    async def book_many(self) -> None:
        for _ in range(MORE_THAN_ON_RECORD):
            await self.book()

    async def cancel(self) -> None:
        await self._update_one("appointment", "status <> 'cancelled'", "status = 'cancelled'")

    async def confirm(self) -> None:
        await self._update_one("appointment", "status = 'booked'", "status = 'confirmed'")

    async def release(self) -> None:
        await self._update_one("slot_hold", "live", "live = false")

    async def wait(self) -> None:
        self.world.clock.advance(minutes=11)  # longer than a hold

    async def move(self) -> None:
        async with self.world.database.transaction(self.practice_id) as connection:
            place = await self._free(connection)
        if place is not None:
            provider_id, location_id, start, end, lane = place
            starts, ends = EPOCH + timedelta(minutes=start), EPOCH + timedelta(minutes=end)
            await self._update_one(
                "appointment",
                "status <> 'cancelled'",
                f"provider_id = {provider_id}, location_id = {location_id}, lane = {lane}, "
                f"starts_at = '{starts}', ends_at = '{ends}', busy_until = '{ends}'",
            )

    async def hold(self) -> None:
        now = self.world.clock.now
        async with self.world.database.transaction(self.practice_id) as connection:
            await connection.execute("UPDATE slot_hold SET live = false WHERE held_until <= $1", now)
            place = await self._free(connection)
            if place is not None:
                provider_id, location_id, start, end, lane = place
                await connection.execute(
                    """INSERT INTO slot_hold VALUES ($1, 'hold_' || gen_random_uuid(), 'client', $2, $3, 20, 100, $4,
                       $5, $6, $6, $7, $7::timestamptz + interval '10 minutes', true)""",
                    *(self.practice_id, provider_id, location_id, lane),
                    *(EPOCH + timedelta(minutes=start), EPOCH + timedelta(minutes=end), now),
                )

    async def _update_one(self, table: str, which: str, change: str) -> None:
        async with self.world.database.transaction(self.practice_id) as connection:
            places = [row[0] for row in await connection.fetch(f"SELECT ctid::text FROM {table} WHERE {which}")]
            if places:
                await connection.execute(
                    f"UPDATE {table} SET {change} WHERE ctid = $1::text::tid", self.chosen.choice(places)
                )

    async def _free(self, connection: Any) -> tuple[int, int, int, int, int] | None:
        """A provider's place that nothing takes: provider, location, start, end and lane."""
        provider = self.chosen.choice([*self.directory.providers.values()])
        location_id = self.chosen.choice([*provider.location_ids])
        times = OpenTimes(self.directory.practice, provider, self.directory.locations[location_id])
        busy = as_busy(await self._taken(connection, provider.id))
        offered = self._offered(times, VISITS[0], busy)
        if not offered:
            return None
        start = self.chosen.choice(offered)
        lane = free_lane(busy, start, start + 20, provider.capacity)
        assert lane is not None
        return provider.id, location_id, start, start + 20, lane


async def nearly_full(world: World) -> Changing:
    practice = Changing(world, 5)
    await practice.imported()
    await practice.filled(0.9)
    return practice


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(2, 12))])
async def test_a_search_after_small_changes_is_as_good_as_an_exhaustive_one(world: World, seed: int) -> None:
    practice = Changing(world, seed)
    await practice.imported()
    await practice.filled(0.9)
    for _ in range(40):
        await practice.check(queries=1)
        for _ in range(practice.chosen.choice((1, 1, 2, 3))):
            await practice.change()
    await practice.check()


def test_a_change_at_the_beginning_of_a_week_closes_visits_of_the_week_before() -> None:
    week, long_visit = 7 * DAY_MINUTES, Procedure(1, "Long", 60, buffer_after_minutes=30)
    always = (OpeningHours(1, frozenset(range(7)), 0, DAY_MINUTES),)
    provider, location = Provider(1, "P1", hours=always), Location(1, "L1", "UTC")
    practice = Practice("p", "P", "UTC", slot_interval_minutes=30)
    offers = ProviderOffers(provider, "UTC", (1,), (OpenTimes(practice, provider, location),))
    cache, span = CalendarCache(), CalendarRange(0, 3 * week)

    def open_starts(calendar: ProviderCalendar) -> list[int]:
        return [*cache.open_starts(1, {1: calendar}, long_visit, 99, offers, 2 * week - 120, 2 * week + 60)]

    free = cache.update(1, 1, span, CalendarRow(1, 7, 0, 3 * week, None, None), None)
    assert open_starts(free) == [*range(2 * week - 120, 2 * week + 60, 30)]
    booked = struct.pack("!3i", 2 * week, 2 * week + 30, 1)
    taken = cache.update(1, 1, span, CalendarRow(2, 8, 2 * week, 2 * week + 31, booked, None), free)
    assert open_starts(taken) == [2 * week - 120, 2 * week - 90, 2 * week + 30]
    assert open_starts(free) == [*range(2 * week - 120, 2 * week + 60, 30)], "as it was read"


@contextmanager
def appointments_read(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, int]]:
    """By provider: how many appointments the searches meanwhile read."""
    read: dict[int, int] = {}
    fetch = world.database.fetch

    async def counting(sql: str, *args: Any) -> Any:
        rows = await fetch(sql, *args)
        if "changed_busy_times" in sql:
            for row in rows:
                read[row["provider_id"]] = read.get(row["provider_id"], 0) + len(row["appointments"] or b"") // 12
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(world.database, "fetch", counting)
        yield read


async def test_a_search_after_one_change_reads_only_what_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    practice = await nearly_full(world)
    with appointments_read(world, monkeypatch) as read:
        await practice.found(ANY_VISIT, 50)
    assert set(read) == set(practice.directory.providers)
    assert max(read.values()) > 100
    for change in (practice.cancel, practice.confirm, practice.hold, practice.release):
        await change()
        with appointments_read(world, monkeypatch) as read:
            await practice.found(ANY_VISIT, 50)
        [(provider_id, count)] = read.items()
        assert count <= practice.directory.providers[provider_id].capacity + 1, change
    await practice.book_many()
    with appointments_read(world, monkeypatch) as read:
        assert await practice.found(ANY_VISIT, 50) == (await practice.exhaustive(ANY_VISIT))[:50]


async def test_a_search_after_a_booking_reads_no_calendar(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    practice = await nearly_full(world)
    await practice.found(ANY_VISIT, 999)
    for _ in range(MORE_THAN_ON_RECORD):
        await practice.book()
        with appointments_read(world, monkeypatch) as read:
            assert await practice.found(ANY_VISIT, 999) == await practice.exhaustive(ANY_VISIT)
        assert read == {}


async def test_a_booking_before_another_change_is_read_with_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    practice = await nearly_full(world)
    await practice.found(ANY_VISIT, 999)
    for _ in range(MORE_THAN_ON_RECORD):
        await practice.book()
        await practice.cancel()
        with appointments_read(world, monkeypatch) as read:
            assert await practice.found(ANY_VISIT, 999) == await practice.exhaustive(ANY_VISIT)
        assert read


async def test_appointments_that_are_booked_together_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    practice = Changing(world, 5)
    await practice.imported()
    full = await practice.found(ANY_VISIT, 999)
    provider_id = full[0][1]
    taken = [start for start, provider, _ in full if provider == provider_id][::5][:2]
    async with world.database.transaction(practice.practice_id) as connection:
        patient = await connection.fetchval("SELECT patient_id FROM patient")
        await connection.execute(
            """INSERT INTO appointment
               SELECT $1, 'apt_' || lpad(s::text, 22, '0'), $2, $3, $4, 20, 100, 1, to_timestamp(s * 60.0),
                      to_timestamp((s + 20) * 60.0), to_timestamp((s + 20) * 60.0), 'booked', 'x', now(), now()
               FROM unnest($5::integer[]) AS s""",
            *(practice.practice_id, patient, provider_id, full[0][2], taken),
        )
    with appointments_read(world, monkeypatch) as read:
        assert await practice.found(ANY_VISIT, 999) == await practice.exhaustive(ANY_VISIT)
    assert read == {provider_id: 2}


async def test_a_calendar_is_read_whole_if_what_changed_is_not_on_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    practice = await nearly_full(world)
    await practice.found(ANY_VISIT, 50)
    async with world.database.transaction(practice.practice_id) as connection:
        await connection.execute("UPDATE calendar_version SET version = version + 1 WHERE provider_id = 1")
    with appointments_read(world, monkeypatch) as read:
        await practice.found(ANY_VISIT, 50)
    assert set(read) == {1}
    assert read[1] > 10


async def test_a_change_that_was_lost_in_a_fail_over_is_forgotten_although_its_version_was_given_again(
    world: World,
) -> None:
    practice = await nearly_full(world)
    provider_id = next(each.id for each in practice.directory.providers.values() if each.capacity == 1)
    query = replace(ANY_VISIT, provider_id=provider_id)
    async with world.database.transaction(practice.practice_id) as connection:
        before = await connection.fetchrow(
            "SELECT version, recent FROM calendar_version WHERE provider_id = $1", provider_id
        )
        rows = await connection.fetch(
            "SELECT appointment_id FROM appointment WHERE provider_id = $1 ORDER BY starts_at", provider_id
        )
        lost, *later = [row["appointment_id"] for row in rows[len(rows) // 2 :][:3]]
    full = await practice.found(query, 999)
    async with world.database.transaction(practice.practice_id) as connection:
        await connection.execute("UPDATE appointment SET status = 'cancelled' WHERE appointment_id = $1", lost)
    assert len(await practice.found(query, 999)) > len(full)
    async with world.database.transaction(practice.practice_id) as connection:
        await connection.execute("UPDATE appointment SET status = 'booked' WHERE appointment_id = $1", lost)
        await connection.execute(
            "UPDATE calendar_version SET version = $1, recent = $2 WHERE provider_id = $3", *before, provider_id
        )
        for other in later:
            await connection.execute("UPDATE appointment SET status = 'cancelled' WHERE appointment_id = $1", other)
    assert await practice.found(query, 999) == await practice.exhaustive(query)


async def test_a_booking_is_not_added_to_a_calendar_whose_last_change_was_lost_in_a_fail_over(world: World) -> None:
    practice = await nearly_full(world)
    provider_id = next(each.id for each in practice.directory.providers.values() if each.capacity == 1)
    query = replace(ANY_VISIT, provider_id=provider_id)
    (lost, *place), (later, *other) = (await practice.found(query, 99))[:2]
    async with world.database.transaction(practice.practice_id) as connection:
        before = await connection.fetchrow(
            "SELECT version, recent FROM calendar_version WHERE provider_id = $1", provider_id
        )
        await practice._book(connection, *place, lost, lost + 20, 1)
    await practice.found(query, 99)
    async with world.database.transaction(practice.practice_id) as connection:
        cancel = "UPDATE appointment SET status = 'cancelled' WHERE starts_at = $1"
        await connection.execute(cancel, EPOCH + timedelta(minutes=lost))
        await connection.execute(
            "UPDATE calendar_version SET version = $1, recent = $2 WHERE provider_id = $3", *before, provider_id
        )
        await connection.execute("UPDATE appointment SET status = status WHERE provider_id = $1", provider_id)
        await practice._book(connection, *other, later, later + 20, 1)
    current = await CurrentVersions(world.database).read(practice.practice_id)
    booking = current.last_booking(provider_id)
    assert booking is not None
    assert booking.changes == before["version"] + 2, "one more than the search has seen"
    assert await practice.found(query, 99) == (await practice.exhaustive(query))[:99]


async def test_a_minute_that_an_appointment_has_begun_is_taken(world: World) -> None:
    practice = Changing(world, 5)
    await practice.imported()
    free = (await practice.found(ANY_VISIT, 1))[0]
    async with world.database.transaction(practice.practice_id) as connection:
        await practice._book(connection, free[1], free[2], free[0] - 60, free[0], 1)
        assert await practice.found(ANY_VISIT, 1) == [free]
        a_second_later = EPOCH + timedelta(minutes=free[0], seconds=1)
        await connection.execute("UPDATE appointment SET busy_until = $1", a_second_later)
    assert (await practice.found(ANY_VISIT, 1))[0] != free
