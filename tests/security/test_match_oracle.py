"""A client that reads a phone number out of match_patient digit by digit: its misses make it wait, then lock it out."""

import asyncio
from typing import Any

import httpx

from frontdesk.access.clients.records import AccessLimits
from tests.assistants.connecting import connected
from tests.console.signing_in import signed_in
from tests.doors.mcp_speech import send
from tests.security.test_patient_budget import events, second_node
from tests.support.world import PRACTICE, World, confirmed, patient_id

ADA = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10"}


async def match(client: httpx.AsyncClient, phone: str, **person: Any) -> httpx.Response:
    return await client.post("/api/patients/match", json={**ADA, "phone": phone, **person})


async def subjects(world: World, client: httpx.AsyncClient) -> list[tuple[str, list[str]]]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch(
            "SELECT outcome, subject_ids FROM audit_record WHERE actor = $1 ORDER BY record_id",
            client.headers["X-Test-Client"],
        )
    return [(row["outcome"], row["subject_ids"]) for row in rows]


async def test_a_phone_number_cannot_be_read_digit_by_digit(world: World) -> None:
    person = '{number: 5, firstName: Vera, lastName: Rubin, dob: 1988-07-23, phone: "+1 987 698 7698"}'
    await world.import_file(f"{PRACTICE.replace('SLUG', 'harbor')}  - {person}\n")
    vera = {"firstName": "Vera", "lastName": "Rubin", "dob": "1988-07-23"}
    agent = await world.client()
    known, answers = "7698", []
    assert (await match(agent, known, **vera)).status_code == 200
    for _ in range(7):
        for digit in "0123456789":
            answer = await match(agent, digit + known, **vera)
            answers.append(answer)
            if answer.status_code == 200:
                known = digit + known
                break
            if answer.status_code == 429:
                # Matching what is known already neither resets the misses nor passes the pause.
                answers.append(await match(agent, known, **vera))
    assert known == "7698", "no further digit was read"
    refusals = [answer for answer in answers if answer.status_code == 429]
    assert {answer.json()["code"] for answer in refusals} == {"rate_limited"}
    details = {answer.json()["detail"] for answer in refusals}
    assert details == {"This client has failed too often to match this person. Try again in 15 seconds."}
    assert int(refusals[0].headers["retry-after"]) == 15
    assert world.service.engine.refusals == {"matches_of_person": len(refusals)}

    # The audit shows the pattern: one person, asked for again and again, without saying who it is.
    records = await subjects(world, agent)
    asked = {subject for _, ids in records for subject in ids if subject.startswith("asked_")}
    assert len(asked) == 1
    assert ("rate_limited", [*asked]) in records
    assert ("not_found", [*asked]) in records


async def test_the_pause_grows_into_a_lock_on_every_node(world: World) -> None:
    agent = await world.client()
    wrong = iter(range(2000, 3000))

    async def miss(client: httpx.AsyncClient) -> int:
        """Seconds to wait for the next question, 0 if it was answered."""
        answer = await match(client, str(next(wrong)))
        assert answer.status_code in (404, 429)
        return int(answer.headers.get("retry-after", 0))

    async with second_node(world) as other:
        twin = other.anonymous()
        twin.headers["Authorization"] = agent.headers["Authorization"]
        assert [await miss(agent), await miss(twin), await miss(agent)] == [0, 0, 0]
        assert [await miss(twin), await miss(agent)] == [15, 15]
        world.clock.advance(seconds=15)
        assert [await miss(twin), await miss(agent)] == [0, 60]
        world.clock.advance(seconds=60)
        assert [await miss(agent), await miss(twin)] == [0, 3600], "five misses lock"
        assert (await match(twin, "0199")).status_code == 429, "a right answer, too"
        assert (await match(agent, "0123", firstName="Alan", lastName="Turing", dob="1990-06-23")).status_code == 200
    assert [kind for kind, _ in await events(world)] == ["client.matchingLocked"]
    stranger = await world.client()
    assert (await match(stranger, "0199")).status_code == 200, "only the client that guessed is locked"
    world.clock.advance(seconds=3600)
    await world.renew(agent)
    assert [await miss(agent), await miss(agent)] == [0, 7200], "the next miss locks for longer"
    world.clock.advance(days=8)
    await world.renew(agent)
    assert [await miss(agent), await miss(agent)] == [0, 0], "after a week without misses they are forgotten"


async def test_concurrent_guesses_get_no_more_answers(world: World) -> None:
    agent = await world.client()
    answers = await asyncio.gather(*(match(agent, f"{guess:04}") for guess in range(2000, 2040)))
    codes = [answer.status_code for answer in answers]
    assert codes.count(404) == 3
    assert codes.count(429) == 37


async def test_names_that_differ_in_vowel_signs_count_as_one_person(world: World) -> None:
    agent = await world.client()
    guesses = {"2000": "राम", "2001": "रीमा", "2002": "रमा", "2003": "रूमा"}
    codes = [(await match(agent, phone, firstName=name)).status_code for phone, name in guesses.items()]
    assert codes == [404] * 3 + [429]


async def test_creating_and_updating_patients_answer_no_more_than_matching(world: World) -> None:
    agent = await world.client()
    codes = [
        (await agent.post("/api/patients", json={**ADA, "phone": f"555 02{guess:03}99"})).status_code
        for guess in range(20)
    ]
    assert codes == [428] * 3 + [429] * 17
    created = await world.client()
    mine = {"firstName": "Mallory", "lastName": "Mine", "dob": "1990-01-01", "phone": "+1 555 999 0000"}
    patient = (await confirmed(created, "POST", "/api/patients", mine)).json()["patientId"]
    codes = [
        (await created.patch(f"/api/patients/{patient}", json={**ADA, "phone": f"555 02{guess:03}99"})).status_code
        for guess in range(20)
    ]
    assert codes == [428] * 3 + [429] * 17
    assert (await created.patch(f"/api/patients/{patient}", json={"email": "m@example.com"})).status_code == 428


async def test_a_decoy_of_the_same_name_does_not_end_the_count(world: World) -> None:
    agent = await world.client()
    decoy = {**ADA, "phone": "+1 900 000 0000"}
    assert (await confirmed(agent, "POST", "/api/patients", decoy)).status_code == 201
    codes = []
    for guess in range(2000, 2010):
        await match(agent, "900 000 0000")  # the whole number of a record of this person
        codes.append((await match(agent, str(guess))).status_code)
    assert codes == [404] * 2 + [429] * 8, "creating the decoy was the first miss"


async def test_an_update_does_not_tell_a_right_number_while_the_client_has_to_wait(world: World) -> None:
    agent = await world.client()
    ada = await patient_id(agent)
    phones = [*(f"+1 555 777 {guess:04}" for guess in range(4)), "+1 555 010 0199"]
    codes = [(await agent.patch(f"/api/patients/{ada}", json={"phone": phone})).status_code for phone in phones]
    assert codes == [428] * 3 + [429] * 2


async def test_ordinary_use_is_not_hurt(world: World) -> None:
    agent = await world.client()
    # A typo and its repetition, the right number, and the same again later.
    for phone, status in (("0198", 404), ("0198", 404), ("0197", 404), ("555 010 0199", 200), ("0196", 404)):
        assert (await match(agent, phone)).status_code == status
    # A new patient: no match, a create that repeats the question, the confirmation, and the match that now succeeds.
    grace = {"firstName": "Hedy", "lastName": "Lamarr", "dob": "1990-11-09", "phone": "+1 555 010 0555"}
    for phone in ("0555", "010 0555", grace["phone"]):
        assert (await agent.post("/api/patients/match", json={**grace, "phone": phone})).status_code == 404
    assert (await confirmed(agent, "POST", "/api/patients", grace)).status_code == 201
    assert (await agent.post("/api/patients/match", json=grace)).status_code == 200
    unlimited = await world.client(access_limits=AccessLimits(match_misses=0))
    assert {(await match(unlimited, str(guess))).status_code for guess in range(2000, 2030)} == {404}


async def test_an_agent_that_tries_one_person_after_another_has_to_wait_and_an_integration_has_not(
    world: World,
) -> None:
    agent = await world.client(access_limits=AccessLimits(match_misses=1))
    codes = [(await match(agent, "0199", firstName=f"Ada{who}")).status_code for who in range(21)]
    assert codes == [404] * 20 + [429]
    refusal = await match(agent, "0199")
    assert (refusal.status_code, refusal.headers["retry-after"]) == (429, "3600")
    assert "match patients" in refusal.json()["detail"]
    world.clock.advance(hours=1)
    await world.renew(agent)
    assert (await match(agent, "0199")).status_code == 200
    sync = await world.client(grant="integration", access_limits=AccessLimits(match_misses=1))
    assert {(await match(sync, "0199", firstName=f"Ada{who}")).status_code for who in range(30)} == {404}


async def test_an_area_code_proves_nothing_where_numbers_match_by_their_ending(world: World) -> None:
    await world.import_file(PRACTICE.replace("slug: SLUG", "slug: harbor, phoneMatch: ending"))
    unlimited = AccessLimits(match_misses=0)
    for grant, limits in (("agent", unlimited), ("agent", AccessLimits()), ("integration", AccessLimits())):
        client = await world.client(grant=grant, access_limits=limits)
        miss, other_miss = await match(client, "5550"), await match(client, "0199", dob="1985-12-11")
        assert (miss.status_code, miss.json()["code"]) == (404, "not_found")
        assert miss.json()["detail"] == other_miss.json()["detail"], "it does not say which field was wrong"
        for phone in ("0199", "5550100199", "555 010 0"):
            assert (await match(client, phone)).status_code == 200, phone
    counted = await world.client()
    codes = [(await match(counted, phone)).status_code for phone in ("1555", "5550", "5501", "0100")]
    assert codes == [404, 404, 404, 429]


async def test_assistants_match_by_the_ending_whatever_the_practice_says(world: World) -> None:
    assistant, agent = await connected(world, await signed_in(world, name="Sam")), await world.client()
    for client, phone, found in (
        (assistant.http, "5550", False),
        (assistant.http, "0199", True),
        (agent, "5550", True),
    ):
        called = await send(client, "tools/call", {"name": "match_patient", "arguments": {**ADA, "phone": phone}})
        assert ("patientKind" in called.text) is found
