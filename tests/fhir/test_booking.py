"""Bookings at a practice whose calendar lives in a FHIR server: what the server gets."""

from pathlib import Path

from frontdesk.store.database import Database
from tests.fhir.calls import CHEN
from tests.fhir.practice import VISITS, Upstream, fhir_world, file_text
from tests.support.world import World, book, confirmed, page_through, patient_id, slots


async def test_an_agent_books_in_a_fhir_server(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    practice = (await agent.get("/api/practice")).json()
    assert practice["schedulingSystem"] == "fhir"
    assert "book_appointment" in practice["supports"]
    found = await slots(agent)
    assert found[0]["start"] == "2026-11-16T09:00:00-05:00"
    assert (await agent.get(f"/api/slots/{found[0]['id']}")).json()["available"] is True
    body = {"patientId": await patient_id(agent), "slotId": found[0]["id"]}
    answer = await confirmed(agent, "POST", "/api/appointments", body)
    assert answer.status_code == 201, answer.text
    booked = (await agent.get(f"/api/appointments/{answer.json()['appointmentId']}")).json()
    assert (booked["status"], booked["start"], booked["providerName"]) == (
        "booked",
        found[0]["start"],
        "Dr. Robert Chen",
    )
    assert (await agent.get(f"/api/slots/{found[0]['id']}")).json()["available"] is False


async def test_the_server_gets_an_appointment_that_says_everything(fhir: World, upstream: Upstream) -> None:
    await book(await fhir.client())
    [stored] = await upstream.live_appointments()
    assert (stored["start"], stored["end"]) == ("2026-11-16T14:00:00Z", "2026-11-16T14:15:00Z")
    assert stored["minutesDuration"] == 15
    assert stored["slot"] == [{"reference": f"{CHEN}540"}]
    assert [(each["actor"]["reference"], each["status"]) for each in stored["participant"]] == [
        ("Patient/ada", "needs-action"),
        ("Practitioner/chen", "accepted"),
        ("Location/downtown", "accepted"),
    ]
    codes = [concept["coding"][0] for concept in stored["serviceType"]]
    assert codes == [{"system": "urn:frontdesk:visit-type", "code": "21"}, {"system": VISITS, "code": "FU15"}]
    assert {identifier["system"] for identifier in stored["identifier"]} == {
        "urn:frontdesk:intent",
        "urn:frontdesk:claim",
    }
    assert await upstream.busy_slots() == {f"{CHEN}540"}


async def test_a_move_to_its_own_slot_sends_nothing(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    own = (await slots(integration))[0]["id"]
    path = f"/api/appointments/{await book(await fhir.client())}"
    assert (await integration.post(f"{path}/confirm")).status_code == 200
    before, stored = (await integration.get(path)).json(), await upstream.live_appointments()
    answer = await integration.post(f"{path}/reschedule", json={"slotId": own})
    assert (answer.status_code, answer.json()["status"]) == (200, "confirmed")
    assert (await integration.get(path)).json() == before
    assert await upstream.live_appointments() == stored, "the same version"


async def test_a_healthcare_service_takes_part(fhir: World, upstream: Upstream) -> None:
    await book(await fhir.client(), visitTypeId=22, procedureId=103)
    [stored] = await upstream.live_appointments()
    assert stored["participant"][-1]["actor"] == {"reference": "HealthcareService/shots"}
    assert [concept["coding"][0]["code"] for concept in stored["serviceType"]] == ["22"]
    [listed] = (await (await fhir.client()).get("/api/appointments")).json()["items"]
    assert (listed["visitTypeId"], listed["procedureId"]) == (22, 103)


async def test_a_long_procedure_takes_consecutive_slots(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    await upstream.put({**await upstream.read(f"{CHEN}555"), "status": "busy-unavailable"})
    found = await slots(agent, procedureId=102)
    assert found[0]["start"] == "2026-11-16T09:30:00-05:00"
    await book(agent, procedureId=102)
    [stored] = await upstream.live_appointments()
    assert [each["reference"] for each in stored["slot"]] == [f"{CHEN}570", f"{CHEN}585", f"{CHEN}600"]
    assert stored["end"] == "2026-11-16T15:15:00Z"


async def test_cancelling_leaves_a_slot_that_another_appointment_uses(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    [stored] = await upstream.live_appointments()
    doubled = {key: stored[key] for key in ("resourceType", "status", "start", "end", "slot")}
    actor = {"actor": {"reference": "Patient/alan"}, "status": "accepted"}
    await upstream.create({**doubled, "participant": [actor]})
    answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert answer.status_code == 200
    assert await upstream.busy_slots() == {f"{CHEN}540"}


async def test_attendance_is_the_patients_own_answer_or_a_tag(
    database: Database, tmp_path: Path, upstream: Upstream
) -> None:
    tag = {"system": "urn:harbor:tags", "code": "will-attend"}
    async with fhir_world(database, tmp_path, upstream.door, attendance=tag) as world:
        agent = await world.client()
        appointment = await book(agent)
        answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/confirm", {})
        assert answer.json()["status"] == "confirmed"
        [stored] = await upstream.live_appointments()
        assert stored["meta"]["tag"] == [tag]
        assert stored["participant"][0]["status"] == "needs-action"
        assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == "confirmed"
        body = {"slotId": (await slots(agent))[3]["id"]}
        await confirmed(agent, "POST", f"/api/appointments/{appointment}/reschedule", body)
        [stored] = await upstream.live_appointments()
        assert "tag" not in stored["meta"]


async def test_ids_are_stable_for_ever(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    patient, appointment = await patient_id(agent), await book(agent)
    number = (await agent.get(f"/api/patients/{patient}")).json()["number"]
    renamed = {"1": "Location/renamed", "2": "Location/westside"}
    await upstream.create({"resourceType": "Location", "name": "Renamed"})
    await fhir.import_file(file_text("harbor", upstream.door.address, locations=renamed))
    assert await patient_id(agent) == patient
    found = (await agent.get(f"/api/appointments/{appointment}")).json()
    assert (found["locationId"], found["patientId"]) == (1, patient), "the former reference still leads to its id"
    listed = await page_through(agent, "/api/appointments", patientId=number)
    assert [item["id"] for item in listed] == [appointment]


async def test_a_list_is_paged_through_completely(fhir: World, upstream: Upstream) -> None:
    integration = await fhir.client(grant="integration")
    people = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    found = await slots(integration)
    for index in range(7):
        body = {"patientId": people[index % 3], "slotId": found[index]["id"]}
        assert (await integration.post("/api/appointments", json=body)).status_code == 201
    listed = await page_through(integration, "/api/appointments", limit=2)
    assert [item["start"] for item in listed] == [slot["start"] for slot in found[:7]]
