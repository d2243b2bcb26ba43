"""The audit trail records actor, operation, subject ids and outcome of every call, and no patient data."""

import asyncpg
import httpx
import pytest

from frontdesk.audit.trail import chain_hash, seal
from tests.support.world import World, book, confirmed, patient_id, slots


async def _records(world: World, practice_id: int = 1) -> list[asyncpg.Record]:
    async with world.database.transaction(practice_id) as connection:
        return await connection.fetch(  # type: ignore[no-any-return]
            "SELECT * FROM audit_record WHERE practice_id = $1 ORDER BY record_id", practice_id
        )


async def _last(world: World) -> tuple[str, str]:
    record = (await _records(world))[-1]
    return record["operation"], record["outcome"]


def _ids(record: asyncpg.Record) -> list[str]:
    """The subjects without the hash of what a match asked for."""
    return [subject for subject in record["subject_ids"] if not subject.startswith("asked_")]


async def test_a_booking_leaves_a_record_of_the_challenge_and_of_the_execution(world: World) -> None:
    agent = await world.client()
    ada = await patient_id(agent)
    body = {"patientId": ada, "slotId": (await slots(agent))[0]["id"]}
    done = await confirmed(agent, "POST", "/api/appointments", body)
    records = [r for r in await _records(world) if r["operation"] == "book_appointment"]
    assert [r["outcome"] for r in records] == ["confirmation_required", "executed"]
    executed = records[1]
    assert executed["actor"] == agent.headers["X-Test-Client"]
    assert executed["subject_ids"] == [done.json()["appointmentId"], ada]
    assert executed["request_id"] == done.headers["x-svc-trace-id"]
    assert executed["at"] == world.clock.now


async def test_refused_attempts_are_recorded_with_their_code(world: World) -> None:
    integration = await world.client(grant="integration")
    ada, alan = await patient_id(integration), await patient_id(integration, "Alan")
    slot = (await slots(integration))[0]["id"]
    await integration.post("/api/appointments", json={"patientId": alan, "slotId": slot})
    await integration.post("/api/appointments", json={"patientId": ada, "slotId": slot})
    assert await _last(world) == ("book_appointment", "slot_unavailable")
    new_only = (await slots(integration, visitTypeId=20, procedureId=100))[0]["id"]
    await integration.post("/api/appointments", json={"patientId": ada, "slotId": new_only})
    assert await _last(world) == ("book_appointment", "validation")
    await integration.post("/api/appointments/apt_0123456789ABCDEFGHIJKL/cancel")
    assert await _last(world) == ("cancel_appointment", "not_found")


async def test_what_never_reached_the_operation_is_not_recorded(world: World) -> None:
    integration = await world.client(grant="integration", scopes=["practices:read"])
    await integration.post("/api/appointments", json={"patientId": "x", "slotId": "y"})
    await (await world.client()).post("/api/appointments", json={"slotId": 7})
    await world.anonymous().post("/api/appointments", json={})
    assert await _records(world) == []


async def test_reads_of_protected_data_are_recorded_also_when_they_find_nothing(world: World) -> None:
    agent = await world.client()
    ada = await patient_id(agent)
    await agent.get(f"/api/patients/{ada}")
    await agent.get("/api/patients/pat_0123456789ABCDEFGHIJKL")
    await agent.get("/api/appointments", params={"PatientId": "1"})
    await agent.get("/api/locations")
    assert [(r["operation"], r["outcome"], _ids(r)) for r in await _records(world)] == [
        ("match_patient", "executed", [ada]),
        ("get_patient", "executed", [ada]),
        ("get_patient", "not_found", []),
        ("list_appointments", "executed", [ada]),
    ]


async def test_a_read_records_every_patient_it_disclosed(world: World) -> None:
    agent = await world.client()
    booked = {first: await book(agent, first) for first in ("Ada", "Alan")}
    booked["Grace"] = await book(agent, "Grace", visitTypeId=20, procedureId=100)
    people = {first: await patient_id(agent, first) for first in booked}
    everything = await agent.get("/api/appointments")
    assert {item["patientId"] for item in everything.json()["items"]} == set(people.values())
    assert set((await _records(world))[-1]["subject_ids"]) == {*booked.values(), *people.values()}
    page = await agent.get("/api/appointments", params={"limit": 1})
    (item,) = page.json()["items"]
    assert (await _records(world))[-1]["subject_ids"] == [item["id"], item["patientId"]]
    grace = {"firstName": "Grace", "lastName": "Hopper", "dob": "1986-12-09", "phone": "+1 555 010 0142"}
    assert (await agent.post("/api/patients", json=grace)).status_code == 409
    assert _ids((await _records(world))[-1]) == [people["Grace"]]
    assert (await agent.patch(f"/api/patients/{people['Ada']}", json=grace)).status_code == 409
    assert _ids((await _records(world))[-1]) == [people["Ada"], people["Grace"]]


async def test_a_practice_sees_only_its_own_records(world: World) -> None:
    await patient_id(await world.client("harbor"))
    await patient_id(await world.client("other"))
    assert len(await _records(world, 1)) == len(await _records(world, 2)) == 1


async def test_the_service_can_append_but_neither_change_nor_remove(world: World) -> None:
    await patient_id(await world.client())
    await seal(world.database, 1)
    for statement in (
        "UPDATE audit_record SET outcome = 'x' WHERE practice_id = 1",
        "DELETE FROM audit_record WHERE practice_id = 1",
        "TRUNCATE audit_record",
        "UPDATE audit_seal SET hash = '' WHERE practice_id = 1",
        "DELETE FROM audit_seal WHERE practice_id = 1",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with world.database.transaction(1) as connection:
                await connection.execute(statement)


async def test_sealed_records_form_a_chain_that_python_can_recompute(world: World) -> None:
    agent = await world.client()
    for microseconds in (1, 123_457, 999_998, 333_333):
        world.clock.advance(microseconds=microseconds)
        await patient_id(agent)
    await book(agent)
    sealed = await seal(world.database, 1)
    records = await _records(world)
    assert sealed == len(records) > 2
    assert await seal(world.database, 1) == 0
    async with world.database.transaction(1) as connection:
        seals = await connection.fetch("SELECT * FROM audit_seal WHERE practice_id = 1 ORDER BY sequence")
    previous = b""
    for entry, record in zip(seals, records, strict=True):
        previous = chain_hash(previous, record)
        assert (entry["record_id"], entry["hash"]) == (record["record_id"], previous)


async def test_the_sealer_seals_what_was_written(world: World) -> None:
    await book(await world.client())
    await world.service.engine.audit.seal_pending()
    async with world.database.transaction(1) as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit_unsealed WHERE practice_id = 1") == 0
        assert await connection.fetchval("SELECT count(*) FROM audit_seal WHERE practice_id = 1") > 0


async def test_a_write_whose_audit_record_cannot_be_persisted_is_not_executed(world: World, owner_dsn: str) -> None:
    agent = await world.client()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    body["confirmationToken"] = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
    owner = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})
    await owner.execute("REVOKE INSERT ON audit_record FROM frontdesk_service")
    failed = await agent.post("/api/appointments", json=body)
    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    assert await owner.fetchval("SELECT count(*) FROM appointment") == 0
    assert await owner.fetchval("SELECT count(*) FROM outbox") == 0
    await owner.execute("GRANT INSERT ON audit_record TO frontdesk_service")
    await owner.close()
    assert (await agent.post("/api/appointments", json=body)).status_code == 201


async def _events(world: World) -> list[tuple[str, dict[str, str]]]:
    import orjson

    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT type, subject FROM outbox WHERE practice_id = 1 ORDER BY event_id")
    return [(row["type"], orjson.loads(row["subject"])) for row in rows]


async def test_every_executed_write_leaves_one_event_with_ids_only(world: World) -> None:
    integration: httpx.AsyncClient = await world.client(grant="integration")
    person = {"firstName": "Mary", "lastName": "Seacole", "phone": "+1 555 010 0111", "dob": "1980-05-14"}
    mary = (await integration.post("/api/patients", json=person)).json()["patientId"]
    await integration.patch(f"/api/patients/{mary}", json={"phone": "+1 555 010 0112"})
    slot, later = (await slots(integration, visitTypeId=22, procedureId=103))[:2]
    made = (await integration.post("/api/appointments", json={"patientId": mary, "slotId": slot["id"]})).json()
    path = f"/api/appointments/{made['appointmentId']}"
    await integration.post(f"{path}/confirm")
    await integration.post(f"{path}/confirm")
    await integration.post(f"{path}/reschedule", json={"slotId": later["id"]})
    await integration.post(f"{path}/cancel")
    await integration.post(f"{path}/cancel")
    both = {"appointmentId": made["appointmentId"], "patientId": mary}
    assert await _events(world) == [
        ("patient.created", {"patientId": mary}),
        ("patient.updated", {"patientId": mary}),
        ("appointment.booked", both),
        ("appointment.confirmed", both),
        ("appointment.rescheduled", both),
        ("appointment.cancelled", both),
    ]
