"""What people do in the practice's own system: it shows here, and what they made can be changed from here."""

from tests.fhir.calls import CHEN, booking
from tests.fhir.practice import VISITS, Upstream
from tests.support.world import World, book, confirmed, patient_id, slots


async def test_what_staff_do_shows(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    [stored] = await upstream.live_appointments()
    for theirs, ours in (
        ("arrived", "arrived"),
        ("fulfilled", "completed"),
        ("noshow", "noShow"),
        ("cancelled", "cancelled"),
    ):
        await upstream.put({**stored, "status": theirs})
        assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == ours
    refused = await agent.post(f"/api/appointments/{appointment}/cancel", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await upstream.put({**stored, "status": "entered-in-error"})
    assert (await agent.get(f"/api/appointments/{appointment}")).status_code == 404


async def test_what_the_practice_file_has_no_words_for_is_not_shown_but_takes_time(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    actors = ("Patient/ada", "Practitioner/somebody")
    await upstream.create(
        {
            "resourceType": "Appointment",
            "status": "booked",
            "start": "2026-11-16T14:00:00Z",
            "end": "2026-11-16T14:30:00Z",
            "participant": [{"actor": {"reference": actor}, "status": "accepted"} for actor in actors],
        }
    )
    assert (await agent.get("/api/appointments")).json()["items"] == []
    refused = await agent.post("/api/appointments", json=await booking(agent))
    assert refused.status_code == 422
    assert "overlaps" in refused.json()["detail"]


async def test_an_appointment_that_staff_made_can_be_moved_and_cancelled(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    await upstream.put({**await upstream.read(f"{CHEN}540"), "status": "busy"})
    actors = ("Patient/ada", "Practitioner/chen", "Location/downtown")
    await upstream.create(
        {
            "resourceType": "Appointment",
            "status": "booked",
            "serviceType": [{"coding": [{"system": VISITS, "code": "FU15"}]}],
            "start": "2026-11-16T14:00:00Z",
            "end": "2026-11-16T14:15:00Z",
            "slot": [{"reference": f"{CHEN}540"}],
            "participant": [{"actor": {"reference": actor}, "status": "needs-action"} for actor in actors],
        }
    )
    [item] = (await agent.get("/api/appointments", params={"patientId": await patient_id(agent)})).json()["items"]
    assert (item["status"], item["procedureId"], item["visitTypeId"]) == ("booked", 101, 21)
    body = {"slotId": (await slots(agent))[3]["id"]}
    moved = await confirmed(agent, "POST", f"/api/appointments/{item['id']}/reschedule", body)
    assert moved.status_code == 200, moved.text
    assert await upstream.busy_slots() == {f"{CHEN}600"}
    cancelled = await confirmed(agent, "POST", f"/api/appointments/{item['id']}/cancel", {"reason": "Better"})
    assert cancelled.status_code == 200
    assert await upstream.busy_slots() == set()
