"""What a client did is undone at a FHIR server as far as the server lets us, and told where it does not."""

from tests.console.desk import Document, words
from tests.console.filled_forms import form_of
from tests.console.signing_in import signed_in
from tests.fhir.practice import Upstream
from tests.support.world import UNLIMITED, World, book, confirmed, slots

SINCE = {"from": "2026-11-15", "from_time": "04:30"}


async def test_bookings_are_cancelled_and_moves_taken_back(fhir: World, upstream: Upstream) -> None:
    receptionist = await fhir.client(access_limits=UNLIMITED)
    moved, cancelled = await book(receptionist), await book(receptionist, "Alan")
    fhir.clock.advance(hours=2)
    agent = await fhir.client(access_limits=UNLIMITED)
    free = await slots(agent)
    body = {"slotId": free[4]["id"]}
    assert (await confirmed(agent, "POST", f"/api/appointments/{moved}/reschedule", body)).is_success
    assert (await confirmed(agent, "POST", f"/api/appointments/{cancelled}/cancel", {})).is_success
    booked = await book(agent, "José", providerId=12)
    changed = await book(agent, "José", providerId=12)
    [theirs] = [each for each in await upstream.live_appointments() if each["start"].startswith("2026-11-16T14:15")]
    await upstream.put({**theirs, "status": "arrived"})

    admin = await signed_in(fhir, role="admin")
    path = f"/console/clients/{agent.headers['X-Test-Client']}/undo"
    shown = await admin.get(path, params=SINCE)
    rows = {each.attributes["data-undo"]: words(each.text) for each in Document(shown.text).having("data-undo")}
    assert "The booking will be cancelled." in rows[booked]
    assert "09:00, Dr. Robert Chen, Follow-up Moved The appointment will be moved back." in rows[moved]
    assert "The practice's own system has to change it back." in rows[cancelled]
    assert "Somebody else has changed the appointment since." in rows[changed]
    answer = await admin.post(path, data={**form_of(shown, path, having="shown"), "do": "start"})
    page = (await admin.get(answer.headers["Location"])).text
    assert "2 of 4 appointments undone" in page
    states = {each: (await agent.get(f"/api/appointments/{each}")).json() for each in (moved, booked, changed)}
    assert {each: found["status"] for each, found in states.items()} == {
        moved: "booked",
        booked: "cancelled",
        changed: "arrived",
    }
    assert states[moved]["start"].startswith("2026-11-16T09:00")
