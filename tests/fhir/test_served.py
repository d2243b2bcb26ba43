"""A practice on a FHIR server is served as FHIR, too."""

from dataclasses import replace

import httpx

from frontdesk.app import build_app
from tests.fhir.practice import Upstream
from tests.support.world import World, book


async def test_a_practice_on_a_fhir_server_is_served(fhir: World, upstream: Upstream) -> None:
    client, agent = await fhir.client(grant="integration"), await fhir.client()
    appointment_id = await book(agent)
    settings = fhir.service.settings.model_copy(update={"fhir_server": True})
    transport = httpx.ASGITransport(app=build_app(replace(fhir.service, settings=settings)))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=client.headers) as served:
        read = (await served.get(f"/fhir/R4/Appointment/{appointment_id[4:]}")).json()
        assert (read["status"], read["start"]) == ("booked", "2026-11-16T09:00:00-05:00")
        found = (await served.get("/fhir/R4/Appointment?actor=Practitioner/10&_include=Appointment:patient")).json()
        assert [entry["resource"]["resourceType"] for entry in found["entry"]] == ["Appointment", "Patient"]
        assert found["entry"][0]["resource"] == read
        slots = await served.get("/fhir/R4/Slot?schedule=10-1&start=ge2026-11-16&start=lt2026-11-17&service-type=101")
        times = [entry["resource"]["start"] for entry in slots.json()["entry"]]
        assert times[0] > read["start"]

        assert read["participant"][0]["status"] == "needs-action"
        [stored] = [each for each in await upstream.live_appointments() if each.get("identifier")]
        [patient, *others] = stored["participant"]
        await upstream.put({**stored, "participant": [{**patient, "status": "accepted"}, *others]})
        confirmed = (await served.get(f"/fhir/R4/Appointment/{appointment_id[4:]}")).json()
        assert confirmed["participant"][0]["status"] == "accepted", "also if only the other server knows"
