"""Which identifiers of FHIR calls are stored: those of records that were written, and no others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.calls import Calls
from frontdesk.housekeeping import housekeeping_steps, prune_identifiers
from tests.fhir_server.fhir_calls import BASE, resources
from tests.fhir_server.test_writes import EHR, ada, booking, proposals
from tests.support.world import World

SECRET = "078-05-1120"  # a person's number, as careless clients send it
NUMBERED = [{"system": EHR, "value": SECRET}, {"system": EHR, "value": f"{SECRET}-2"}]
ADA = {
    "resourceType": "Patient",
    "name": [{"family": "Lovelace", "given": ["Ada"]}],
    "telecom": [{"system": "phone", "value": "+1 555 010 0199"}],
    "birthDate": "1985-12-10",
}
NOBODY = "0" * 22


async def stored(world: World) -> list[tuple[str, bool]]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch(
            "SELECT value, settled FROM external_identifier WHERE practice_id = 1 ORDER BY value"
        )
    return [(row["value"], row["settled"]) for row in rows]


def numbered_cancellation() -> dict[str, Any]:
    named = [{"name": "identifier", "valueIdentifier": each} for each in NUMBERED]
    return {"resourceType": "Parameters", "parameter": named}


async def test_identifiers_of_refused_calls_are_not_stored(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [taken, other, *_] = await ada(client), await proposals(client)
    booked = await client.post(f"{BASE}/Appointment", json=booking(taken, patient), headers={"Idempotency-Key": "k"})
    kept = booked.json()
    address = f"{BASE}/Appointment/{kept['id']}"
    appointments, patients, key = f"{BASE}/Appointment", f"{BASE}/Patient", {"Idempotency-Key": "k"}
    attempts: list[tuple[str, str, dict[str, Any], dict[str, str], int]] = [
        ("POST", appointments, booking(taken, patient, identifier=NUMBERED), {}, 409),
        ("POST", appointments, booking(other, NOBODY, identifier=NUMBERED), {}, 404),
        ("POST", appointments, booking(other, patient, identifier=NUMBERED), {"Idempotency-Key": "x" * 256}, 422),
        ("PUT", address, {**kept, "slot": None, **_moved_to(taken), "identifier": NUMBERED}, key, 409),
        ("PUT", address, {**kept, "status": "cancelled", "identifier": NUMBERED}, key, 409),
        ("POST", f"{address}/$cancel", numbered_cancellation(), key, 409),
        ("POST", f"{appointments}/{NOBODY}/$cancel", numbered_cancellation(), {"Idempotency-Key": "n"}, 404),
        ("POST", patients, {**ADA, "identifier": NUMBERED}, {}, 409),
        ("PUT", f"{patients}/{patient}", {**ADA, "birthDate": "2999-01-01", "identifier": NUMBERED}, key, 422),
    ]
    for method, path, body, headers, status in attempts:
        answer = await client.request(method, path, json=body, headers=headers)
        assert (answer.status_code, await stored(server)) == (status, []), (method, path, answer.text)
    assert resources((await client.get(f"{appointments}?identifier={EHR}%7C{SECRET}")).json()) == []


def _moved_to(proposal: dict[str, Any]) -> dict[str, Any]:
    later = {name: proposal[name].replace("T09:", "T20:") for name in ("start", "end")}
    return {"status": "booked", **later}


async def test_an_identifier_is_free_again_after_a_refusal(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [taken, other, *_] = await ada(client), await proposals(client)
    assert (await client.post(f"{BASE}/Appointment", json=booking(taken, patient))).status_code == 201
    refused = await client.post(f"{BASE}/Appointment", json=booking(taken, patient, identifier=NUMBERED))
    assert refused.status_code == 409
    second = await client.post(f"{BASE}/Appointment", json=booking(other, patient, identifier=NUMBERED))
    assert second.status_code == 201, second.text
    assert await stored(server) == [(SECRET, True), (f"{SECRET}-2", True)]


async def test_a_refused_request_with_a_used_key_does_not_rename_what_the_key_wrote(server: World) -> None:
    client = await server.client(grant="integration")
    patient, [first, *_] = await ada(client), await proposals(client)
    own, key = [{"system": EHR, "value": "own"}], {"Idempotency-Key": "once"}
    body = booking(first, patient, identifier=own)
    kept = (await client.post(f"{BASE}/Appointment", json=body, headers=key)).json()
    cancelled = {**kept, "status": "cancelled", "identifier": [*own, *NUMBERED]}
    refused = await client.put(f"{BASE}/Appointment/{kept['id']}", json=cancelled, headers=key)
    assert (refused.status_code, await stored(server)) == (409, [("own", True)])
    assert (await client.get(f"{BASE}/Appointment/{kept['id']}")).json()["identifier"] == own


@pytest.mark.parametrize("code", ["internal", "confirmation_incomplete"])
async def test_those_of_a_write_with_an_unknown_outcome_stay_until_housekeeping_removes_them(
    server: World, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """The write may have been executed: its resend must find the record by them."""
    client = await server.client(grant="integration")
    patient, [first, second, *_] = await ada(client), await proposals(client)
    executed = Calls.write

    async def answer_is_lost(*arguments: Any, **named: Any) -> dict[str, Any]:
        await executed(*arguments, **named)
        raise Problem(code)

    async def never_executed(*_arguments: Any, **_named: Any) -> dict[str, Any]:
        raise Problem(code)

    async def send(proposal: dict[str, Any], value: str) -> httpx.Response:
        body = booking(proposal, patient, identifier=[{"system": EHR, "value": value}])
        return await client.post(f"{BASE}/Appointment", json=body)

    monkeypatch.setattr(Calls, "write", answer_is_lost)
    assert (await send(first, "lost")).status_code >= 400
    monkeypatch.setattr(Calls, "write", never_executed)
    assert (await send(second, SECRET)).status_code >= 400
    monkeypatch.undo()
    assert await stored(server) == [(SECRET, False), ("lost", False)]
    assert (await send(first, "lost")).status_code == 200
    assert await stored(server) == [(SECRET, False), ("lost", True)]

    now = datetime.now(UTC)  # they have the database's time
    assert await prune_identifiers(server.database, now + timedelta(days=1)) == 0
    assert await prune_identifiers(server.database, now + timedelta(days=2, minutes=1)) == 1
    assert await stored(server) == [("lost", True)]


async def test_housekeeping_goes_on_until_no_stale_identifier_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.housekeeping.MAX_BATCH_SIZE", 2)
    monkeypatch.setattr("frontdesk.housekeeping.PAUSE_SECONDS", 0.0)
    await world.client(grant="integration")
    async with world.database.transaction(1) as connection:
        await connection.execute(
            "INSERT INTO external_identifier SELECT 1, 'fd_x', 'Patient', 's', n::text, sha256('i'), NULL, n = 1, "
            "timestamptz '2020-01-01' FROM generate_series(1, 6) AS n"
        )
    world.clock.now = datetime.now(UTC)
    [pruning] = [each for each in housekeeping_steps(world.database, world.clock) if each.name == "identifier pruning"]
    await pruning.run()
    assert await stored(world) == [("1", True)]
