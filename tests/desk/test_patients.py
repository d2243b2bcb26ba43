"""Patients: what a search text means, and the visits of a patient."""

from datetime import date
from typing import Any

import pytest

from frontdesk.desk.patients import parse_search
from frontdesk.systems.port import PatientSearch
from tests.console.desk import stored
from tests.desk.acting import action_context
from tests.support.shared_database import opened
from tests.support.world import World, book, confirmed, patient_id, slots


@pytest.mark.parametrize(
    "text",
    ["1985-12-10", "10 Dec 1985", "10th december, 1985", "Dec 10, 1985", "1985/12/10", "December 10th 1985",
     "10. Dez. 1985", "10 dic 1985", "10 de diciembre de 1985"],
)  # fmt: skip
def test_a_date_of_birth_is_read_in_any_usual_form(text: str) -> None:
    expected = PatientSearch((("", "love"), ("love", "")), None, date(1985, 12, 10))
    assert parse_search(f"love {text}", "dayFirst") == [expected]


def test_a_date_is_read_in_both_orders_first_in_that_of_the_practice() -> None:
    april, march = date(1980, 4, 3), date(1980, 3, 4)
    for text in ("03/04/1980", "3-4-1980", "03.04.1980"):
        assert [each.dob for each in parse_search(text, "dayFirst")] == [april, march]
        assert [each.dob for each in parse_search(text, "monthFirst")] == [march, april]
    for text in ("31/12/1985", "12/31/1985", "31.12.1985"):
        assert [each.dob for each in parse_search(text, "dayFirst")] == [date(1985, 12, 31)]
    assert [each.dob for each in parse_search("04/04/1980", "dayFirst")] == [date(1980, 4, 4)]
    assert parse_search("30/02/1985", "dayFirst") == [PatientSearch()]
    assert parse_search("31/31/1985", "dayFirst") == [PatientSearch()]


def test_the_readings_of_a_text_are_few() -> None:
    assert len(parse_search(" ".join(["word"] * 60), "dayFirst")[0].names) <= 12


async def test_what_is_to_come_is_shown_however_long_the_history_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.systems.port.PAGE_OF_APPOINTMENTS", 2)
    agent = await world.client()
    for _ in range(2):
        await book(agent)
    ada = await patient_id(agent)
    friday = (await slots(agent, **{"from": "2026-11-20", "to": "2026-11-20"}))[0]
    body = {"patientId": ada, "slotId": friday["id"]}
    assert (await confirmed(agent, "POST", "/api/appointments", body)).status_code == 201
    world.clock.advance(days=3)
    view = await world.service.desk.patients.read(await action_context(world), ada)
    assert len(view.upcoming) == 1


async def test_the_newest_of_a_long_history_are_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.systems.port.PAGE_OF_APPOINTMENTS", 1)
    monkeypatch.setattr("frontdesk.desk.patients._MAX_PAST", 2)
    agent = await world.client()
    booked = [await book(agent) for _ in range(3)]
    ada = await patient_id(agent)
    world.clock.advance(days=3)
    view = await world.service.desk.patients.read(await action_context(world), ada)
    assert [each.appointment.id for each in view.past] == [booked[2], booked[1]]
    assert not view.is_complete


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        ((["a"], [""], None, None), "patient_first_name"),
        (([""], ["b"], None, None), "patient_last_name"),
        (([], [], "9910", None), "patient_phone"),
        (([], [], None, "1990-01-01"), "patient_match"),
    ],
)
async def test_every_kind_of_search_has_its_index(world: World, arguments: Any, index: str) -> None:
    """Under the policy, as the service runs it, in a practice with many patients."""
    await stored(
        world,
        """INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
               phone_digits, seen, created_at, updated_at)
           SELECT $1, 'pat_' || lpad(n::text, 22, '0'), 1000 + n, 'x', 'x', md5(n::text) || '|' || md5('l' || n),
               date '1950-01-01' + n % 20000, (5550000000 + n * 37)::text, (5550000000 + n * 37)::text, false, now(),
               now() FROM generate_series(1, 5000) n RETURNING 1""",
    )
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    async with opened(world.database.dsn, 1) as new, new.transaction(practice_id) as connection:  # no older plans
        # pg_stat counts which indexes a statement used; a plan inside a function is not to be seen otherwise.
        count = "SELECT coalesce(pg_stat_get_xact_numscans(c.oid), 0) FROM pg_class c WHERE c.relname = $1"
        before = await connection.fetchval(count, index)
        firsts, lasts, tail, dob = arguments
        await connection.fetch(
            "SELECT * FROM search_patients($1, $2, $3, $4, $5::text::date, 50)", practice_id, firsts, lasts, tail, dob
        )
        assert await connection.fetchval(count, index) > before
