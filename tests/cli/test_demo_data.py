"""The demo practice in the database: around today at first, then left alone until its calendar runs out."""

import json
import stat
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access.clients.records import disable_client
from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.keys.ring import KeyRing
from frontdesk.audit.trail import COMMAND_LINE, AuditContext
from frontdesk.cli.connection import CommandContext
from frontdesk.cli.demo_data import CREDENTIALS_FILE, Demo, prepare_demo
from frontdesk.demo import demo_practice
from frontdesk.domain.availability import OVERRIDE_LANE
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice, practice_id_of
from tests.support.world import stored_directory

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=40)


class Desk:
    """A service's storage whose demo is prepared at chosen times."""

    def __init__(self, context: CommandContext, ring: KeyRing) -> None:
        self.context, self.ring = context, ring
        self.steps: list[str] = []

    @property
    def database(self) -> Database:
        return self.context.database

    async def prepare(self, now: datetime) -> Demo:
        self.steps.clear()
        return await prepare_demo(self.context, self.ring, now, self.steps.append)

    async def appointments(self, since: datetime = NOW - timedelta(days=365)) -> list[Any]:
        practice = await practice_id_of(self.database, "demo")
        assert practice is not None
        async with self.database.transaction(practice) as connection:
            return list(
                await connection.fetch(
                    "SELECT * FROM appointment WHERE practice_id = $1 AND starts_at > $2 ORDER BY starts_at, lane, 2",
                    practice,
                    since,
                )
            )


@pytest.fixture
async def desk(database: Database, tmp_path: Path) -> Desk:
    # With a secret key of its own and an external database the data directory may not exist yet.
    settings = Settings(data_dir=tmp_path / "data", secret_key="s" * 32)
    context = CommandContext(settings, database, AuditContext(COMMAND_LINE, NOW, "0" * 32))
    return Desk(context, await context.ring())


async def test_the_first_start_brings_a_practice_a_living_calendar_and_two_clients(desk: Desk) -> None:
    demo = await desk.prepare(NOW)
    assert desk.steps == ["Importing the demo practice"]
    assert await stored_directory(desk.database, "demo") == demo_practice(NOW.date()).directory
    past = [row for row in await desk.appointments() if row["starts_at"] < NOW]
    ahead = await desk.appointments(NOW)
    assert len(past) >= 20
    assert len(ahead) >= 60
    assert {row["status"] for row in past} <= {"completed", "cancelled"}
    assert all((row["cancelled_at"] is None) == (row["status"] != "cancelled") for row in past + ahead)
    assert {row["lane"] for row in ahead} == {1, 2, OVERRIDE_LANE}
    [overbooked] = [row for row in ahead if row["lane"] == OVERRIDE_LANE]
    beside = [row for row in ahead if row["starts_at"] == overbooked["starts_at"]]
    assert overbooked["provider_id"] in [row["provider_id"] for row in beside if row is not overbooked]
    for grant in ("agent", "integration"):
        client = getattr(demo, grant)
        assert (await authenticate(desk.database, desk.ring, client.client_id, client.client_secret)).grant == grant
    practice = await practice_id_of(desk.database, "demo")
    async with desk.database.transaction(practice) as connection:
        rows = await connection.fetch("SELECT operation FROM audit_record WHERE practice_id = $1", practice)
        [reason] = await connection.fetch("SELECT * FROM appointment_override WHERE practice_id = $1", practice)
    assert (reason["appointment_id"], reason["rules"]) == (overbooked["appointment_id"], ["full"])
    made = ["console.add_client", "console.add_client", "console.add_staff", "console.import_practice_file"]
    assert sorted(row["operation"] for row in rows) == made


async def test_visits_of_the_same_evening_are_still_ahead_when_it_is_tomorrow_in_utc(desk: Desk) -> None:
    tuesday_evening = datetime(2026, 12, 2, 0, 10, tzinfo=UTC)  # Lakeside is open until 02:00 UTC
    demo = await desk.prepare(tuesday_evening)
    assert demo.placed_on == date(2026, 12, 1)
    assert await stored_directory(desk.database, "demo") == demo_practice(demo.placed_on).directory
    assert "completed" not in [row["status"] for row in await desk.appointments(tuesday_evening)]


async def test_a_later_start_changes_nothing_while_the_calendar_lasts(desk: Desk) -> None:
    demo = await desk.prepare(NOW)
    before = await desk.appointments()
    assert await desk.prepare(NOW + timedelta(days=3)) == demo
    assert desk.steps == []
    assert await desk.appointments() == before


async def test_a_calendar_that_has_run_out_is_filled_again_around_the_day(desk: Desk) -> None:
    await desk.prepare(NOW)
    before = await desk.appointments()
    await desk.prepare(LATER)
    assert desk.steps == ["Filling the demo practice's calendar"]
    assert len(await desk.appointments(LATER)) >= 60
    assert [row["lane"] for row in await desk.appointments(LATER)].count(OVERRIDE_LANE) == 1
    assert [row for row in await desk.appointments() if row["starts_at"] <= LATER] == before
    assert await stored_directory(desk.database, "demo") == demo_practice(LATER.date()).directory
    await desk.prepare(LATER)
    assert desk.steps == []


async def test_what_people_changed_in_the_directory_stays(desk: Desk) -> None:
    await desk.prepare(NOW)
    file = demo_practice(NOW.date())
    locations = {**file.directory.locations, 1: replace(file.directory.locations[1], name="Renamed")}
    await import_practice(desk.database, replace(file, directory=replace(file.directory, locations=locations)), NOW)
    await desk.prepare(LATER)
    stored = await stored_directory(desk.database, "demo")
    assert stored is not None
    assert stored.locations[1].name == "Renamed"
    assert len(await desk.appointments(LATER)) >= 60
    assert [row["lane"] for row in await desk.appointments(LATER)].count(OVERRIDE_LANE) == 1


async def test_new_bookings_keep_out_of_the_way_of_those_that_people_made(desk: Desk) -> None:
    await desk.prepare(NOW)
    practice = await practice_id_of(desk.database, "demo")
    assert practice is not None
    async with desk.database.transaction(practice) as connection:
        # Somebody has filled every lane of every provider for the two days after the calendar has run out.
        await connection.execute(
            """INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id,
                   visit_type_id, procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at,
                   updated_at)
               SELECT $1, 'apt_' || p.provider_id || '_' || lane, (SELECT min(patient_id) FROM patient), p.provider_id,
                   1, 21, 102, lane, t, t + interval '2 days', t + interval '2 days', 'booked', 'a person', t, t
               FROM provider p, generate_series(1, p.capacity) AS lane, CAST($2 AS timestamptz) AS t""",
            practice,
            LATER,
        )
    await desk.prepare(LATER)
    assert desk.steps != []
    ahead = await desk.appointments(LATER)
    assert min(row["starts_at"] for row in ahead if row["booked_by"] == "demo") >= LATER + timedelta(days=2)
    by_lane: dict[tuple[int, int], list[Any]] = {}
    for row in await desk.appointments():
        if row["status"] != "cancelled":
            by_lane.setdefault((row["provider_id"], row["lane"]), []).append(row)
    for rows in by_lane.values():
        assert all(first["busy_until"] <= second["starts_at"] for first, second in pairwise(rows))


async def test_the_credentials_are_kept_for_their_owner_alone(desk: Desk, tmp_path: Path) -> None:
    demo = await desk.prepare(NOW)
    path = tmp_path / "data" / CREDENTIALS_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["agent"]["clientId"] == demo.agent.client_id
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")] == []


async def test_credentials_that_no_longer_work_are_replaced_and_the_others_stay(desk: Desk) -> None:
    demo = await desk.prepare(NOW)
    await disable_client(desk.database, demo.agent.client_id)
    again = await desk.prepare(NOW)
    assert again.agent != demo.agent
    assert again.integration == demo.integration
    await authenticate(desk.database, desk.ring, again.agent.client_id, again.agent.client_secret)


async def test_a_practice_of_ones_own_under_that_name_is_left_alone(desk: Desk) -> None:
    await import_practice(desk.database, replace(demo_practice(NOW.date()), patients=()), NOW)
    await desk.prepare(NOW)
    assert desk.steps == []
    assert await desk.appointments() == []
