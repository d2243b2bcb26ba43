"""`$hold`: a time that a client keeps for a few minutes before it books it."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits
from frontdesk.features.holds.operations import MAX_HOLDS, MAX_HOLDS_PER_HOUR
from frontdesk.housekeeping import prune_holds
from frontdesk.store.database import DatabaseUnavailable
from tests.features.switching import switch
from tests.fhir_server.fhir_calls import BASE, issue
from tests.fhir_server.test_writes import MONDAY, ada, booking, live, parameters, proposals
from tests.support.world import World

OF_NUNEZ = MONDAY.replace("Practitioner/10", "Practitioner/11")
SLOTS = "/api/slots?providerId={}&locationId=1&visitTypeId=21&procedureId=101&from=2026-11-16&to=2026-11-16"


def by_reference(resource: dict[str, Any], patient: str | None = None) -> dict[str, Any]:
    """The parameters that name a proposed or held appointment by its id, as in IHE ITI Scheduling."""
    named = [{"name": "appointment-reference", "valueReference": {"reference": f"Appointment/{resource['id']}"}}]
    if patient is not None:
        named.append({"name": "patient-reference", "valueReference": {"reference": f"Patient/{patient}"}})
    return {"resourceType": "Parameters", "parameter": named}


async def hold(client: httpx.AsyncClient, proposal: dict[str, Any], **headers: str) -> httpx.Response:
    return await client.post(f"{BASE}/Appointment/$hold", json=by_reference(proposal), headers=headers)


async def held(client: httpx.AsyncClient, proposal: dict[str, Any]) -> dict[str, Any]:
    answer = await hold(client, proposal)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def book(client: httpx.AsyncClient, resource: dict[str, Any], patient: str, **headers: str) -> httpx.Response:
    return await client.post(f"{BASE}/Appointment/$book", json=by_reference(resource, patient), headers=headers)


async def open_starts(client: httpx.AsyncClient, provider: int = 10) -> list[str]:
    return [each["start"] for each in (await client.get(SLOTS.format(provider))).json()["items"]]


async def rows(server: World, sql: str) -> list[tuple[Any, ...]]:
    async with server.database.transaction(1) as connection:
        return [tuple(row) for row in await connection.fetch(sql)]


async def test_a_held_time_is_its_holders_until_it_books_it(server: World) -> None:
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    patient = await ada(holder)
    first, second = (await proposals(other))[:2]
    rest = [each["start"] for each in await proposals(other)][1:]
    answer = await hold(holder, first)
    pending = answer.json()
    assert (answer.status_code, pending["status"], pending["start"]) == (201, "pending", first["start"])
    assert pending["extension"] == [{"url": "urn:frontdesk:held-until", "valueInstant": "2026-11-15T08:05:00Z"}]
    assert answer.headers["location"] == f"http://test{BASE}/Appointment/{pending['id']}"
    assert (await holder.get(answer.headers["location"])).json() == pending
    # No door offers the time; the slot says that it is held.
    for client in (holder, other):
        assert await open_starts(client) == rest
        assert [each["start"] for each in await proposals(client)] == rest
        slot = (await client.get(f"{BASE}/{pending['slot'][0]['reference']}")).json()
        assert slot["status"] == "busy-tentative"
        assert not (await client.get(f"/api/slots/slt_{slot['id'].replace('.', '_')}")).json()["available"]
    # Others can neither book, hold, read nor release it, and the holder books it by the hold alone.
    issue(await book(other, first, patient), 409, "slot_unavailable", "conflict")
    issue(await book(holder, first, patient), 409, "slot_unavailable", "conflict")
    issue(await hold(holder, first), 409, "slot_unavailable", "conflict")
    issue(await book(other, pending, patient), 409, "slot_unavailable", "conflict")
    issue(await other.get(f"{BASE}/Appointment/{pending['id']}"), 404, "not_found", "not-found")
    cancelled = {**pending, "status": "cancelled"}
    issue(await other.put(f"{BASE}/Appointment/{pending['id']}", json=cancelled), 404, "not_found", "not-found")
    slot_id = f"slt_{first['id'].replace('.', '_')}"
    over_rest = await other.post("/api/appointments", json={"patientId": f"pat_{patient}", "slotId": slot_id})
    assert (over_rest.status_code, over_rest.json()["code"]) == (409, "slot_unavailable")
    # It is not an appointment.
    assert await live(holder) == []
    assert (await holder.get(f"{BASE}/Appointment?status=pending")).json()["total"] == 0
    assert await rows(server, "SELECT type FROM outbox WHERE practice_id = 1") == []
    # What is sent back must agree with what is held.
    for wrong in (
        {"start": second["start"]},
        {"serviceType": [{"coding": [{"system": "urn:frontdesk:procedure", "code": "102"}]}]},
    ):
        contradicting = parameters(appointment_resource={**booking(pending, patient), **wrong})
        issue(await holder.post(f"{BASE}/Appointment/$book", json=contradicting), 422, "validation", "invalid")
    booked = await book(holder, pending, patient, **{"Idempotency-Key": "one"})
    assert booked.status_code == 201, booked.text
    [entry] = booked.json()["entry"]
    assert (entry["resource"]["status"], entry["resource"]["start"]) == ("booked", first["start"])
    assert await live(holder) == [(first["start"], "booked")]
    resent = await book(holder, pending, patient, **{"Idempotency-Key": "one"})
    assert resent.json()["entry"][0]["resource"]["id"] == entry["resource"]["id"]
    # The hold has ended with it.
    issue(await book(holder, pending, patient), 409, "slot_unavailable", "conflict")
    issue(await holder.get(f"{BASE}/Appointment/{pending['id']}"), 404, "not_found", "not-found")
    assert (await other.get(f"{BASE}/{pending['slot'][0]['reference']}")).json()["status"] == "busy"


async def test_a_released_time_is_open_again(server: World) -> None:
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    for way, first in zip(("put", "patch", "book", "cancel"), await proposals(other), strict=False):
        await _released(holder, other, first, way)


async def _released(holder: httpx.AsyncClient, other: httpx.AsyncClient, first: dict[str, Any], way: str) -> None:
    pending = await held(holder, first)
    address, cancelled = f"{BASE}/Appointment/{pending['id']}", {**pending, "status": "cancelled"}
    issue(await holder.put(address, json={**pending, "status": "booked"}), 422, "validation", "invalid")
    stale = await holder.put(address, json=cancelled, headers={"If-Match": 'W/"other"'})
    assert stale.status_code == 412
    if way == "put":
        answer = await holder.put(address, json=cancelled)
    elif way == "patch":
        patch = [{"op": "replace", "path": "/status", "value": "cancelled"}]
        answer = await holder.patch(address, json=patch, headers={"Content-Type": "application/json-patch+json"})
    elif way == "book":
        answer = await holder.post(f"{BASE}/Appointment/$book", json=parameters(appointment_resource=cancelled))
    else:
        answer = await holder.post(f"{address}/$cancel")
    assert answer.status_code == 200, answer.text
    assert first["start"] in await open_starts(other)
    assert (await other.get(f"{BASE}/{pending['slot'][0]['reference']}")).json()["status"] == "free"
    issue(await book(holder, pending, await ada(holder)), 409, "slot_unavailable", "conflict")
    assert (await book(other, first, await ada(other))).status_code == 201


async def test_a_hold_expires_at_the_whole_minute_without_anything_running(server: World) -> None:
    server.clock.advance(seconds=20)
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    patient = await ada(holder)
    first, second, *_ = await proposals(other)
    pending, spare = await held(holder, first), await held(holder, second)
    assert pending["extension"][0]["valueInstant"] == "2026-11-15T08:06:00Z"
    server.clock.now = server.clock.now.replace(minute=5, second=59, microsecond=999_999)
    assert first["start"] not in await open_starts(other)
    issue(await book(other, first, patient), 409, "slot_unavailable", "conflict")
    server.clock.now += timedelta(microseconds=1)
    # The same question, whose answer and whose calendars are cached.
    assert [first["start"], second["start"]] == (await open_starts(other))[:2]
    assert (await other.get(f"{BASE}/{pending['slot'][0]['reference']}")).json()["status"] == "free"
    issue(await book(holder, pending, patient), 409, "slot_unavailable", "conflict")
    issue(await holder.get(f"{BASE}/Appointment/{pending['id']}"), 404, "not_found", "not-found")
    cancelled = {**pending, "status": "cancelled"}
    issue(await holder.put(f"{BASE}/Appointment/{pending['id']}", json=cancelled), 404, "not_found", "not-found")
    # Another client holds and books what the first one left.
    again = await held(other, first)
    assert (await book(other, again, patient)).status_code == 201
    assert (await book(other, spare | {"id": second["id"]}, patient)).status_code == 201
    assert await prune_holds(server.database, server.clock.now) == 0
    server.clock.advance(hours=1, seconds=1)
    assert await prune_holds(server.database, server.clock.now) == 3


async def test_the_practice_says_how_long_a_hold_lasts(server: World) -> None:
    holder = await server.client(grant="integration")
    await switch(server, {"holds": {"minutes": 15}})
    pending = await held(holder, (await proposals(holder))[0])
    assert pending["extension"][0]["valueInstant"] == "2026-11-15T08:15:00Z"


async def test_a_practice_that_switched_holds_off_gives_none_and_keeps_those_it_gave(server: World) -> None:
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    first, second, third = (await proposals(holder))[:3]
    booked, released = await held(holder, first), await held(holder, second)
    await switch(server, {"holds": {"enabled": False}})
    issue(await hold(holder, third), 503, "capability_not_supported", "not-supported")
    assert await open_starts(other) == [each["start"] for each in (await proposals(other))]
    assert first["start"] not in await open_starts(other)
    assert (await book(holder, booked, await ada(holder))).status_code == 201
    address, cancelled = f"{BASE}/Appointment/{released['id']}", {**released, "status": "cancelled"}
    assert (await holder.put(address, json=cancelled)).status_code == 200
    assert second["start"] in await open_starts(other)


async def test_each_hold_takes_a_lane(server: World) -> None:
    first, second, third = [await server.client(grant="integration") for _ in range(3)]
    proposal = (await proposals(first, OF_NUNEZ))[0]
    one, two = await held(first, proposal), await held(second, proposal)
    assert proposal["start"] not in await open_starts(third, 11)
    issue(await hold(third, proposal), 409, "slot_unavailable", "conflict")
    assert (await book(second, two, await ada(second))).status_code == 201
    issue(await hold(third, proposal), 409, "slot_unavailable", "conflict")
    cancelled = {**one, "status": "cancelled"}
    assert (await first.put(f"{BASE}/Appointment/{one['id']}", json=cancelled)).status_code == 200
    assert (await hold(third, proposal)).status_code == 201


async def test_a_client_cannot_block_a_calendar(server: World) -> None:
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    times = await proposals(other)
    # At the same moment, and of two providers, so that no lock of a calendar orders them.
    elsewhere = await proposals(other, OF_NUNEZ)
    answers = await asyncio.gather(*(hold(holder, each) for each in [*times[:6], *elsewhere[:6]]))
    assert sorted(each.status_code for each in answers) == [201] * MAX_HOLDS + [409] * (12 - MAX_HOLDS)
    refused = issue(await hold(holder, times[8]), 409, "conflict", "conflict")
    assert "book or release one first" in refused["diagnostics"]
    assert (await hold(other, times[8])).status_code == 201
    begun = MAX_HOLDS
    while begun < MAX_HOLDS_PER_HOUR:
        server.clock.advance(minutes=6)
        for each in times[:MAX_HOLDS]:
            assert (await hold(holder, each)).status_code == 201
        begun += MAX_HOLDS
    server.clock.advance(minutes=6)
    refused = issue(await hold(holder, times[0]), 409, "conflict", "conflict")
    assert f"{MAX_HOLDS_PER_HOUR} holds an hour" in refused["diagnostics"]
    server.clock.advance(minutes=60)
    await server.renew(holder)
    assert (await hold(holder, times[0])).status_code == 201


async def test_of_two_that_take_a_time_at_once_one_gets_it(server: World) -> None:
    one, two = await server.client(grant="integration"), await server.client(grant="integration")
    patient = await ada(one)
    for proposal in (await proposals(one))[:3]:
        holds = await asyncio.gather(hold(one, proposal), hold(two, proposal))
        assert sorted(each.status_code for each in holds) == [201, 409]
        won = 0 if holds[0].status_code == 201 else 1
        pending = holds[won].json()
        # The holder twice, and somebody else.
        taken = await asyncio.gather(
            book((one, two)[won], pending, patient), book((one, two)[won], pending, patient),
            book((two, one)[won], proposal, patient),
        )  # fmt: skip
        # A refusal names the taken slot, or the patient who has it now.
        codes = [each.status_code for each in taken]
        assert (codes.count(201), codes.count(409) + codes.count(422)) == (1, 2)
    assert len(await live(one)) == 3
    proposal = (await proposals(one))[0]
    answers = await asyncio.gather(hold(one, proposal), book(two, proposal, patient))
    assert sorted(each.status_code for each in answers) == [201, 409]


async def test_an_unknown_patient_is_refused_before_an_ended_hold(server: World) -> None:
    holder = await server.client(grant="integration")
    pending = await held(holder, (await proposals(holder))[0])
    server.clock.advance(minutes=6)
    await server.renew(holder)
    issue(await book(holder, pending, "pat_" + "0" * 22), 404, "not_found", "not-found")
    issue(await book(holder, pending, await ada(holder)), 409, "slot_unavailable", "conflict")


async def test_a_hold_that_ends_while_it_is_booked_books_nothing(server: World) -> None:
    """The booking is judged while the hold lives, and committed after it has ended and somebody else holds the time."""
    holder, other = await server.client(), await server.client(grant="integration")
    patient = await ada(holder)
    proposal = (await proposals(holder))[0]
    token = _token(await hold(holder, proposal))
    pending = (await hold(holder, proposal, **{"Frontdesk-Confirmation-Token": token})).json()
    token = _token(await book(holder, pending, patient))
    assert await live(holder) == []
    server.clock.advance(minutes=5)
    issue(
        await book(holder, pending, patient, **{"Frontdesk-Confirmation-Token": token}),
        409,
        "slot_unavailable",
        "conflict",
    )
    theirs = await held(other, proposal)
    issue(
        await book(holder, pending, patient, **{"Frontdesk-Confirmation-Token": token}),
        409,
        "slot_unavailable",
        "conflict",
    )
    assert (await book(other, theirs, patient)).status_code == 201
    assert await live(other) == [(proposal["start"], "booked")]


async def test_a_slow_booking_does_not_take_a_time_that_somebody_else_holds_by_then(
    server: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, other = await server.client(grant="integration"), await server.client(grant="integration")
    patient, proposal = await ada(holder), (await proposals(holder))[0]
    pending = await held(holder, proposal)
    write, taken = server.database.write, list[httpx.Response]()

    async def late(sql: str, *values: Any) -> Any:
        if "commit_write" in sql and not taken:
            taken.append(httpx.Response(102))
            server.clock.advance(minutes=5)
            taken[0] = await hold(other, proposal)
        return await write(sql, *values)

    monkeypatch.setattr(server.database, "write", late)
    issue(await book(holder, pending, patient), 409, "slot_unavailable", "conflict")
    assert taken[0].status_code == 201
    assert await live(holder) == []


async def test_a_release_during_an_outage_of_the_database_says_so(
    server: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await server.client(grant="integration")
    pending, fetchrow = await held(holder, (await proposals(holder))[0]), server.database.fetchrow

    async def no_intent(sql: str, *values: Any) -> Any:
        if "find_intent" in sql:
            raise DatabaseUnavailable
        return await fetchrow(sql, *values)

    monkeypatch.setattr(server.database, "fetchrow", no_intent)
    cancelled, key = {**pending, "status": "cancelled"}, {"Idempotency-Key": "one"}
    answer = await holder.put(f"{BASE}/Appointment/{pending['id']}", json=cancelled, headers=key)
    issue(answer, 502, "upstream_unavailable", "transient")
    assert answer.headers["retry-after"] == "2"


async def test_a_hold_that_cannot_be_read_after_it_was_taken_is_not_refused(
    server: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await server.client(grant="integration")
    proposal, key, fetch = (await proposals(holder))[0], {"Idempotency-Key": "one"}, server.database.fetch

    async def no_hold(sql: str, *values: Any) -> Any:
        if "find_hold" in sql:
            raise DatabaseUnavailable
        return await fetch(sql, *values)

    monkeypatch.setattr(server.database, "fetch", no_hold)
    answer = await hold(holder, proposal, **key)
    monkeypatch.undo()
    assert (answer.status_code, answer.content) == (201, b"")
    found = (await holder.get(answer.headers["location"])).json()
    assert (found["status"], found["start"]) == ("pending", proposal["start"])
    resent = await hold(holder, proposal, **key)
    assert (resent.status_code, resent.json()) == (201, found)
    server.clock.advance(minutes=5)
    resent = await hold(holder, proposal, **key)  # the hold has ended: its address is all there is to tell
    assert (resent.status_code, resent.headers["location"], resent.content) == (201, answer.headers["location"], b"")
    issue(await holder.get(answer.headers["location"]), 404, "not_found", "not-found")


async def test_a_hold_that_has_ended_before_it_is_read_is_not_refused(
    server: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await server.client(grant="integration")
    proposal, write = (await proposals(holder))[0], server.database.write

    async def slow(sql: str, *values: Any) -> Any:
        done = await write(sql, *values)
        if "commit_write" in sql:
            server.clock.advance(minutes=6)
        return done

    monkeypatch.setattr(server.database, "write", slow)
    answer = await hold(holder, proposal)
    assert (answer.status_code, answer.content) == (201, b"")
    assert answer.headers["location"].rpartition("/")[2].startswith("held-")


async def test_a_resend_of_a_hold_by_time_finds_it(server: World) -> None:
    holder = await server.client(grant="integration")
    first, second, *_ = [
        {name: value for name, value in each.items() if name not in ("id", "slot")} for each in await proposals(holder)
    ]
    key = {"Idempotency-Key": "one"}
    answers = [await holder.post(f"{BASE}/Appointment/$hold", json=first, headers=key) for _ in range(2)]
    assert [(each.status_code, each.json()) for each in answers] == [(201, answers[0].json())] * 2
    issue(await holder.post(f"{BASE}/Appointment/$hold", json=second, headers=key), 409, "conflict", "conflict")
    issue(await holder.post(f"{BASE}/Appointment/$hold", json=first), 409, "slot_unavailable", "conflict")


async def test_an_agent_confirms_a_hold_and_its_release(server: World) -> None:
    agent = await server.client()
    proposal = (await proposals(agent))[0]
    challenge = await hold(agent, proposal)
    token = _token(challenge)
    assert proposal["start"] in await open_starts(agent)  # a challenge holds nothing
    answer = await hold(agent, proposal, **{"Frontdesk-Confirmation-Token": token})
    pending = answer.json()
    assert (answer.status_code, pending["status"]) == (201, "pending")
    assert (await hold(agent, proposal, **{"Frontdesk-Confirmation-Token": token})).json() == pending
    address, cancelled = f"{BASE}/Appointment/{pending['id']}", {**pending, "status": "cancelled"}
    token = _token(await agent.put(address, json=cancelled))
    confirmed = {"Frontdesk-Confirmation-Token": token}
    assert (await agent.put(address, json=cancelled, headers=confirmed)).json()["status"] == "cancelled"
    assert (await agent.put(address, json=cancelled, headers=confirmed)).status_code == 200
    recorded = "SELECT operation, outcome FROM audit_record WHERE practice_id = 1 AND operation LIKE '%hold%'"
    assert await rows(server, f"{recorded} ORDER BY record_id") == [
        ("hold_slot", "confirmation_required"), ("hold_slot", "executed"),
        ("release_hold", "confirmation_required"), ("release_hold", "executed"),
    ]  # fmt: skip


async def test_holding_needs_the_scope_of_booking_and_a_proposed_time(server: World) -> None:
    reader = await server.client(grant="integration", scopes=("practices:read", "slots:read", "appointments:read"))
    holder = await server.client(grant="integration")
    proposal = (await proposals(reader))[0]
    issue(await hold(reader, proposal), 403, "forbidden_scope", "forbidden")
    issue(await hold(holder, {"id": "nothing"}), 404, "not_found", "not-found")
    issue(await hold(holder, await held(holder, proposal)), 409, "conflict", "conflict")
    for held_id in ("held-", "held-x", "held-" + "0" * 22, "held-" + "é" * 22):
        issue(await holder.get(f"{BASE}/Appointment/{held_id}"), 404, "not_found", "not-found")
        issue(await book(holder, {"id": held_id}, await ada(holder)), 409, "slot_unavailable", "conflict")
    simulated = {"Frontdesk-Simulate": "slot_unavailable"}
    refused = await hold(holder, (await proposals(reader))[1], **simulated)
    assert "sandbox" in issue(refused, 422, "validation", "not-supported")["diagnostics"]  # the practice is none


def _token(challenge: httpx.Response) -> str:
    issue(challenge, 428, "confirmation_required", "business-rule")
    [confirmation] = challenge.json()["extension"]
    return str(next(each["valueString"] for each in confirmation["extension"] if each["url"] == "token"))


async def test_holds_count_against_the_limit_on_writes(server: World) -> None:
    holder = await server.client(grant="integration", access_limits=AccessLimits(writes_per_hour=1))
    first, second = (await proposals(holder))[:2]
    await held(holder, first)
    told = issue(await hold(holder, second), 429, "rate_limited", "throttled")
    assert "execute hold_slot 1 times an hour" in told["diagnostics"]
