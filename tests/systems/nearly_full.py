"""A practice with hardly a gap, whose calendars change all the time, and an exhaustive search of it."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.availability import Busy, OpenTimes
from frontdesk.domain.directory import (
    Closure,
    Directory,
    Location,
    OpeningHours,
    Practice,
    Procedure,
    Provider,
    TimeOff,
    VisitType,
)
from frontdesk.practice_file import PatientRecord, PracticeFile
from frontdesk.store.practices import import_practice
from frontdesk.systems.port import SchedulingSystem, SlotQuery
from tests.domain.open_times import free_lane
from tests.support.world import World

ZONES = ("America/New_York", "Pacific/Auckland", "Pacific/Honolulu", "Europe/London")
NOBODY = Busy((), (), ())
VISITS = (Procedure(100, "Short", 20), Procedure(101, "Long", 45, buffer_after_minutes=15))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HORIZON = 40


class NearlyFull:
    """A practice with hardly a gap, made from a number."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.chosen, self.practice_id = world, random.Random(seed), 0
        self._appointments = 0

    @property
    def today(self) -> date:
        return self.world.clock.now.date()

    def _hours(self, location_id: int) -> OpeningHours:
        opens = self.chosen.choice([480, 545, 780])
        days = frozenset(self.chosen.sample(range(7), self.chosen.randint(1, 4)))
        later = self.today + timedelta(days=self.chosen.randint(1, 30)) if self.chosen.random() < 0.2 else None
        return OpeningHours(location_id, days, opens, opens + self.chosen.choice([60, 180, 240]), effective_from=later)

    def _directory(self) -> Directory:
        chosen = self.chosen
        locations = {number: Location(number, f"L{number}", chosen.choice(ZONES)) for number in (1, 2, 3)}
        closed = self.today + timedelta(days=chosen.randint(0, 20))
        locations[1] = replace(locations[1], closures=(Closure(closed, closed + timedelta(days=3)),))
        providers = {}
        for number in range(1, 6):
            hours = tuple(self._hours(chosen.randint(1, 3)) for _ in range(chosen.randint(1, 3)))
            away = datetime.combine(self.today, datetime.min.time()) + timedelta(days=chosen.randint(1, 9))
            providers[number] = Provider(
                number,
                f"P{number}",
                capacity=chosen.choice([1, 1, 2]),
                hours=hours,
                time_off=(TimeOff(away, away + timedelta(days=2)),) if chosen.random() < 0.3 else (),
            )
        practice = Practice(
            "full", "Full", "UTC", slot_interval_minutes=20, booking_horizon_days=HORIZON, minimum_notice_minutes=90
        )
        return Directory(practice, locations, providers, {20: VisitType(20, "Visit", "any", procedures=VISITS)})

    async def imported(self) -> None:
        self.directory = self._directory()
        people = (PatientRecord(1, "Ada", "Lovelace", date(1985, 12, 10), "5550100199", None, seen=True),)
        file = PracticeFile(self.directory, people)
        self.practice_id = await import_practice(self.world.database, file, self.world.clock.now, prune=True)

    async def filled(self, share: float) -> None:
        """Takes this share of the starts that are still open, each in the lane that is free."""
        async with self.world.database.transaction(self.practice_id) as connection:
            for provider in self.directory.providers.values():
                held = [tuple(row) for row in await self._taken(connection, provider.id)]
                for location_id in provider.location_ids:
                    times = OpenTimes(self.directory.practice, provider, self.directory.locations[location_id])
                    for start in self._offered(times, VISITS[0]):
                        end = start + self.chosen.choice([20, 20, 25])
                        lane = free_lane(as_busy(held), start, end, provider.capacity)
                        if lane is not None and self.chosen.random() < share:
                            held.append((start, end, lane))
                            await self._book(connection, provider.id, location_id, start, end, lane)

    async def _book(self, connection: Any, provider_id: int, location_id: int, start: int, end: int, lane: int) -> None:
        self._appointments += 1
        await connection.execute(
            """INSERT INTO appointment
               VALUES ($1, $2, $8, $3, $4, 20, 100, $5, $6, $7, $7, 'booked', 'x', now(), now())""",
            *(self.practice_id, f"apt_{self._appointments:022}", provider_id, location_id, lane),
            *(EPOCH + timedelta(minutes=start), EPOCH + timedelta(minutes=end)),
            await connection.fetchval("SELECT patient_id FROM patient WHERE practice_id = $1", self.practice_id),
        )

    async def cancelled(self, count: int) -> None:
        async with self.world.database.transaction(self.practice_id) as connection:
            held = await connection.fetch(
                "SELECT appointment_id FROM appointment WHERE status <> 'cancelled' ORDER BY appointment_id"
            )
            for row in self.chosen.sample(held, min(count, len(held))):
                await connection.execute(
                    "UPDATE appointment SET status = 'cancelled' WHERE appointment_id = $1", row["appointment_id"]
                )

    def _offered(self, times: OpenTimes, procedure: Procedure, busy: Busy = NOBODY) -> list[int]:
        day = timedelta(days=1)
        last = self.today + (HORIZON + 2) * day
        return times.starts(procedure, self.today - day, last, self.world.clock.now.timestamp(), busy)

    async def exhaustive(self, query: SlotQuery) -> list[tuple[int, int, int]]:
        """Every open slot, looked at one by one."""
        found = []
        procedure = next(each for each in VISITS if each.id == query.procedure_id)
        taken = procedure.duration_minutes + procedure.buffer_after_minutes
        async with self.world.database.transaction(self.practice_id) as connection:
            for provider in self.directory.providers.values():
                busy = as_busy(await self._taken(connection, provider.id))
                for location_id in provider.location_ids:
                    if query.provider_id in (None, provider.id) and query.location_id in (None, location_id):
                        location = self.directory.locations[location_id]
                        times = OpenTimes(self.directory.practice, provider, location)
                        begin = times.window(query.first or date(2026, 1, 1), date(2030, 1, 1))[0]
                        found += [
                            (start, provider.id, location_id)
                            for start in self._offered(times, procedure)
                            if start >= begin and free_lane(busy, start, start + taken, provider.capacity) is not None
                        ]
        return sorted(found)

    async def system(self) -> SchedulingSystem:
        version = await self.world.database.fetchval("SELECT version FROM practice WHERE slug = 'full'")
        caller = Caller("client", self.practice_id, "full", frozenset(), "agent", version)
        return await self.world.service.engine.systems(caller)

    async def found(self, query: SlotQuery, limit: int, after: Any = None) -> list[tuple[int, int, int]]:
        found = await (await self.system()).calendar.find_slots(query, self.world.clock.now, limit=limit, after=after)
        return [(start, each.provider_id, each.location_id) for each in found.by_provider for start in each.starts]

    async def _taken(self, connection: Any, provider_id: int) -> list[Any]:
        rows: list[Any] = await connection.fetch(_TAKEN, provider_id, self.world.clock.now)
        return rows

    async def check(self, queries: int = 6) -> None:
        for _ in range(queries):
            query = SlotQuery(
                20,
                self.chosen.choice(VISITS).id,
                self.chosen.choice([None, None, None, 3]),
                self.chosen.choice([None, None, None, 2]),
                self.chosen.choice([None, None, self.today + timedelta(days=self.chosen.randint(-1, 30))]),
                None,
            )
            everything = await self.exhaustive(query)
            for limit in (1, 5, 50):
                assert await self.found(query, limit) == everything[:limit], (query, limit)
            if len(everything) > 4:
                assert await self.found(query, 3, everything[1]) == everything[2:5], "after a position"


_TAKEN = """
SELECT epoch_minutes(starts_at), end_minutes(busy_until), lane FROM appointment
WHERE provider_id = $1 AND status <> 'cancelled'
UNION ALL
SELECT epoch_minutes(starts_at), end_minutes(busy_until), lane FROM slot_hold
WHERE provider_id = $1 AND live AND held_until > $2
ORDER BY 1
"""


def as_busy(rows: list[Any]) -> Busy:
    return Busy([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
