"""Finding a patient by four fields, reading one record, and what a search costs."""

import logging
from typing import Any, get_args

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.domain.names import digits
from frontdesk.domain.patients import PhoneMatch, same_phone
from frontdesk.store.database import SERVICE_ROLE, session_settings
from frontdesk.store.practices import practice_id_of
from tests.support.shared_database import as_superuser
from tests.support.world import World, patient_id, rules

ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "+1 555 010 0199", "dob": "1985-12-10"}
GRACE = {"firstName": "Grace", "lastName": "Hopper", "phone": "+1 555 010 0142", "dob": "1986-12-09"}
JOSE = {"firstName": "José", "lastName": "Núñez-O'Brien", "phone": "+1 555 010 0177", "dob": "1990-02-28"}


async def match(client: httpx.AsyncClient, person: dict[str, Any], **changed: Any) -> httpx.Response:
    return await client.post("/api/patients/match", json={**person, **changed})


async def test_a_match_is_the_id_and_the_kind_and_nothing_else(world: World) -> None:
    agent = await world.client()
    ada = await match(agent, ADA)
    assert ada.status_code == 200
    assert ada.json() == {"items": [{"id": await patient_id(agent, "Ada"), "patientKind": "existing"}]}
    grace = {"firstName": "Grace", "lastName": "Hopper", "phone": "0142", "dob": "1986-12-09"}
    assert (await match(agent, grace)).json()["items"][0]["patientKind"] == "new"


async def test_names_match_however_they_are_written(world: World) -> None:
    agent = await world.client()
    for first, last in (
        ("José", "Núñez-O'Brien"),
        ("JOSÉ", "NÚÑEZ-O'BRIEN"),
        ("jose", "nunez obrien"),
        ("Jose\u0301", "Nu\u0301n\u0303ez O’Brien"),  # accents as characters of their own
        ("  José ", " Núñez  -  O'Brien. "),
        ("Ｊｏｓｅ", "Nunez–OBrien"),  # full-width letters
        ("J-o-s-e", "NunezO'Brien"),
    ):
        assert (await match(agent, JOSE, firstName=first, lastName=last)).status_code == 200, (first, last)
    for first, last in (
        ("Jos", "Núñez-O'Brien"),
        ("José", "Núñez"),
        ("Núñez-O'Brien", "José"),
        ("José Núñez", "O'Brien"),  # what belongs to which name does count
        ("Joseph", "Núñez-O'Brien"),
    ):
        assert (await match(agent, JOSE, firstName=first, lastName=last)).status_code == 404, (first, last)


async def test_letters_that_fold_into_several_match(world: World) -> None:
    people = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
patients:
  - {number: 11, firstName: Jürgen, lastName: Weißmüller, dob: 1970-01-01, phone: "555 010 0001"}
  - {number: 12, firstName: İpek, lastName: Ångström, dob: 1970-01-01, phone: "555 010 0002"}
  - {number: 13, firstName: 太郎, lastName: 山田, dob: 1970-01-01, phone: "555 010 0003"}
"""
    await world.import_file(people)
    agent = await world.client()
    born = {"dob": "1970-01-01"}
    assert (await match(agent, {**born, "firstName": "JURGEN", "lastName": "WEISSMULLER", "phone": "0001"})).is_success
    assert (await match(agent, {**born, "firstName": "ipek", "lastName": "Angstrom", "phone": "0002"})).is_success
    assert (await match(agent, {**born, "firstName": "太郎", "lastName": "山田", "phone": "0003"})).is_success
    assert (await match(agent, {**born, "firstName": "太", "lastName": "山田", "phone": "0003"})).status_code == 404


async def test_phones_match_by_their_digits_either_way_round(world: World) -> None:
    agent = await world.client()
    for phone in (
        "+1 555 010 0199",
        "15550100199",
        "(555) 010-0199",
        "0199",
        "010 01",
        "001 555 010 0199",  # another way to write the country code
        "+1 (555) 010.0199 x",
        "٠١٩٩",  # the same digits in another script
    ):
        assert (await match(agent, ADA, phone=phone)).status_code == 200, phone
    for phone in ("0198", "+1 555 010 0199 7", "9910", "555 0199"):
        expected = 200 if "15550100199" in digits(phone) else 404
        assert (await match(agent, ADA, phone=phone)).status_code == expected, phone
    assert (await match(agent, ADA, dob="1985-12-11")).status_code == 404


async def test_several_people_may_match(world: World) -> None:
    twins = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
patients:
  - {number: 21, firstName: Sam, lastName: Doe, dob: 2000-02-29, phone: "555 010 7001", seen: true}
  - {number: 22, firstName: SÁM, lastName: doe, dob: 2000-02-29, phone: "555 010 7002"}
  - {number: 23, firstName: Sam, lastName: Doe, dob: 2000-02-28, phone: "555 010 7003"}
"""
    await world.import_file(twins)
    agent = await world.client()
    sam = {"firstName": "Sam", "lastName": "Doe", "dob": "2000-02-29"}
    items = (await match(agent, {**sam, "phone": "555 010 70"})).json()["items"]
    assert [item["patientKind"] for item in items] == ["existing", "new"]
    assert len({item["id"] for item in items}) == 2
    assert len((await match(agent, {**sam, "phone": "7002"})).json()["items"]) == 1


async def test_nobody_matching_is_not_found_and_echoes_nothing(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    person = {"firstName": "Zebulon", "lastName": "Quux", "phone": "555 987 6543", "dob": "1977-07-07"}
    nobody = await match(agent, person)
    assert (nobody.status_code, nobody.json()["code"]) == (404, "not_found")
    for value in person.values():
        assert value not in nobody.text
    assert set(nobody.json()) == {"type", "title", "status", "code", "detail", "requestId"}
    ours = (await match(agent, ADA)).json()["items"][0]["id"]
    theirs = (await match(stranger, ADA)).json()["items"][0]["id"]
    assert ours != theirs, "each practice knows its own patients"


async def test_the_rules_of_a_match(world: World) -> None:
    agent = await world.client()
    empty = await agent.post("/api/patients/match", json={})
    assert (empty.status_code, rules(empty)) == (422, dict.fromkeys(ADA, "required"))
    for changed, status, expected in (
        ({"phone": "123"}, 422, {"phone": "minDigits"}),
        ({"phone": "(---) abc"}, 422, {"phone": "minDigits"}),
        ({"phone": "1" * 16}, 422, {"phone": "maxLength"}),
        ({"phone": "1234" + " " * 29}, 422, {"phone": "maxLength"}),
        ({"phone": 15550100199}, 400, {"phone": "Binding"}),
        ({"dob": "1985-12-10T00:00:00"}, 400, {"dob": "Binding"}),
        ({"dob": "10.12.1985"}, 400, {"dob": "Binding"}),
        ({"dob": "1985-02-29"}, 400, {"dob": "Binding"}),
        ({"dob": 19851210}, 400, {"dob": "Binding"}),
        ({"dob": "2026-11-16"}, 422, {"dob": "notFuture"}),
        ({"dob": "9999-12-31"}, 422, {"dob": "notFuture"}),
        ({"dob": None}, 422, {"dob": "required"}),
        ({"firstName": ""}, 422, {"firstName": "notBlank"}),
        ({"firstName": " \u00a0\u3000 "}, 422, {"firstName": "notBlank"}),
        ({"lastName": "x" * 101}, 422, {"lastName": "maxLength"}),
        ({"lastName": "Love\x00lace"}, 422, {"lastName": "characters"}),
        ({"lastName": "Love\nlace"}, 422, {"lastName": "characters"}),
        ({"firstName": ["Ada"]}, 400, {"firstName": "Binding"}),
        ({"firstName": {"a": 1}, "phone": "1", "middleName": "x"}, 400,
         {"firstName": "Binding", "phone": "minDigits", "middleName": "unknown"}),
    ):  # fmt: skip
        answer = await match(agent, ADA, **changed)
        assert (answer.status_code, rules(answer)) == (status, expected), changed
        for value in (*ADA.values(), *(str(value) for value in changed.values() if len(str(value)) > 4)):
            assert value not in answer.text, changed
    for changed in ({"dob": "2026-11-15"}, {"dob": "0001-01-01"}, {"firstName": "x" * 100}, {"phone": "1" * 15}):
        assert (await match(agent, ADA, **changed)).status_code == 404, changed


async def test_tomorrow_is_judged_by_the_practices_own_day(world: World) -> None:
    world.clock.now = world.clock.now.replace(hour=2)  # still Saturday in New York
    agent = await world.client()
    assert (await match(agent, ADA, dob="2026-11-14")).status_code == 404
    assert rules(await match(agent, ADA, dob="2026-11-15")) == {"dob": "notFuture"}


async def test_a_patient_record_has_the_decided_fields(world: World) -> None:
    agent = await world.client()
    ada, grace = await patient_id(agent, "Ada"), await patient_id(agent, "Grace")
    assert (await agent.get(f"/api/patients/{ada}")).json() == {
        "id": ada,
        "number": 1,
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dob": "1985-12-10",
        "phone": "+1 555 010 0199",
        "patientKind": "existing",
    }
    assert (await agent.get(f"/api/patients/{grace}")).json() == {
        "id": grace,
        "number": 2,
        "firstName": "Grace",
        "lastName": "Hopper",
        "dob": "1986-12-09",
        "phone": "+1 555 010 0142",
        "email": "grace@example.com",
        "patientKind": "new",
    }


async def test_an_unknown_malformed_or_foreign_patient_is_not_found(world: World) -> None:
    agent, stranger = await world.client(), await world.client("other")
    ada = await patient_id(agent, "Ada")
    for unknown in (
        "pat_" + "0" * 22,
        "1",
        ada[:-1],
        ada + "0",
        ada.upper(),
        "apt_" + ada[4:],
        "%00",
        ada + "%0a",
        "ä",
    ):
        answer = await agent.get(f"/api/patients/{unknown}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), unknown
    foreign, nobody = await stranger.get(f"/api/patients/{ada}"), await stranger.get("/api/patients/pat_" + "0" * 22)
    assert foreign.status_code == 404
    assert {**foreign.json(), "requestId": ""} == {**nobody.json(), "requestId": ""}


phone_digits = st.text("01", min_size=1, max_size=9) | st.text("0123456789", min_size=1, max_size=15)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    stored=st.lists(phone_digits | st.just(""), min_size=1, max_size=8),
    asked=st.lists(phone_digits.filter(lambda text: len(text) >= 4) | st.just(""), min_size=1, max_size=8),
    joined=st.booleans(),
)
async def test_the_database_matches_phones_as_the_domain_does(
    world: World, database_dsn: str, stored: list[str], asked: list[str], joined: bool
) -> None:
    if joined:  # numbers that contain each other, which chance rarely makes
        asked = [*asked, *(f"00{number}{asked[0]}"[:15] for number in stored)]
    practice = await practice_id_of(world.database, "harbor")
    connection: Any = await asyncpg.connect(database_dsn, server_settings=session_settings(SERVICE_ROLE))
    try:
        await connection.execute("BEGIN")
        await connection.execute("SELECT set_config('frontdesk.practice_id', $1, true)", str(practice))
        for number, phone in enumerate(stored, 1000):
            await connection.execute(
                """INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
                       phone_digits, seen, created_at, updated_at)
                   VALUES ($1, $2, $3, 'A', 'B', 'a|b', '2000-01-01', $4, $4, true, now(), now())""",
                practice,
                f"pat_{number:022}",
                number,
                phone,
            )
        for phone in asked:
            for rule in get_args(PhoneMatch):
                rows = await connection.fetch(
                    "SELECT number FROM match_patients($1, 'a|b', '2000-01-01', $2, $3)",
                    practice,
                    digits(phone),
                    rule == "ending",
                )
                expected = [number for number, kept in enumerate(stored, 1000) if same_phone(phone, kept, rule)]
                assert [row["number"] for row in rows] == expected
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("given_phone", "stored", "same"),
    [
        ("0199", "15550100199", True),
        ("15550100199", "5550100", True),
        ("15550100199", "555010", False),  # too short a stored number says nothing
        ("555010", "555010", True),
        ("", "15550100199", False),
        ("+1 555 010 0199", "(555) 010-0199", True),
    ],
)
def test_stored_numbers_of_seven_digits_may_lie_inside_the_given_one(given_phone: str, stored: str, same: bool) -> None:
    assert same_phone(given_phone, stored) is same


@pytest.mark.parametrize(
    ("given_phone", "stored", "same"),
    [
        ("0199", "15550100199", True),
        ("5550", "15550100199", False),  # an area code
        ("010019", "15550100199", False),
        ("5550100", "15550100199", True),  # seven digits are known to few
        ("15550100199", "5550100199", True),
        ("+44 555 010 0199", "(555) 010-0199", True),
        ("0199", "019", False),
        ("", "15550100199", False),
    ],
)
def test_few_digits_end_a_number_where_the_practice_says_so(given_phone: str, stored: str, same: bool) -> None:
    assert same_phone(given_phone, stored, "ending") is same


async def test_a_match_looks_people_up_in_the_index(world: World, database_dsn: str) -> None:
    """The plans of the very statement that the service runs, as its role and under its row-level policies."""
    practice = await practice_id_of(world.database, "harbor")
    async with world.database.transaction(practice) as connection:
        await connection.execute(
            """INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
                   phone_digits, seen, created_at, updated_at)
               SELECT $1, 'pat_' || lpad(n::text, 22, '0'), n, 'A', 'B', 'a' || n % 500 || '|b',
                      date '1950-01-01' + n % 20000, '5550100', lpad(n::text, 10, '5'), true, now(), now()
               FROM generate_series(1000, 10999) n""",
            practice,
        )
    plans: list[str] = []
    connection = await asyncpg.connect(as_superuser(database_dsn), server_settings=session_settings(None))
    try:
        await connection.execute("ANALYZE patient")
        connection.add_log_listener(lambda _connection, message: plans.append(message.message))
        await connection.execute(
            f"""LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
                SET client_min_messages = log; SET ROLE {SERVICE_ROLE}"""
        )
        for _ in range(8):  # past the point where PostgreSQL settles on one plan for every value
            await connection.fetch(
                "SELECT * FROM match_patients($1, 'a7|b', date '1950-01-01' + 1007, '5550', false)", practice
            )
    finally:
        await connection.close()
    of_the_search = [plan for plan in plans if "FROM patient p" in plan]
    assert len(of_the_search) == 8
    for plan in of_the_search:
        assert "patient_match" in plan, plan
        assert "Seq Scan" not in plan, plan


async def test_what_was_sent_in_a_match_is_in_no_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    agent = await world.client()
    assert (await match(agent, GRACE)).status_code == 200
    await match(agent, GRACE, phone="123")
    text = "\n".join(str(record.__dict__) for record in caplog.records if record.name.startswith("frontdesk"))
    assert "match_patient" in text
    for value in GRACE.values():  # none is so short that a random id could spell it
        assert value not in text
