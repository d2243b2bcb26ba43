"""A client that may see known patients only: matched, created or booked ones exist for it, all others do not."""

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits
from tests.support.world import PRACTICE, World, book, confirmed, page_through, patient_id, slots

KNOWN_ONLY = AccessLimits(known_patients_only=True)
NOBODY = "pat_0123456789ABCDEFGHIJKL"


def _same(answer: httpx.Response, unknown: httpx.Response) -> bool:
    """Whether two answers differ in nothing but their request."""
    documents = [{**each.json(), "requestId": ""} for each in (answer, unknown)]
    return answer.status_code == unknown.status_code and documents[0] == documents[1]


@pytest.mark.parametrize("grant", ["agent", "integration"])
async def test_an_unknown_patient_is_like_one_that_does_not_exist(world: World, grant: str) -> None:
    staff_like = await world.client()
    ada, booked = await patient_id(staff_like), await book(staff_like)
    client = await world.client(grant=grant, access_limits=KNOWN_ONLY)
    slot = (await slots(client))[0]["id"]
    missing = "apt_0123456789ABCDEFGHIJKL"
    attempts = [
        ("GET", "/api/patients/{}", {}, ada, NOBODY),
        ("PATCH", "/api/patients/{}", {"phone": "+1 555 010 7777"}, ada, NOBODY),
        ("GET", "/api/appointments/{}", {}, booked, missing),
        ("POST", "/api/appointments/{}/cancel", {}, booked, missing),
        ("POST", "/api/appointments/{}/confirm", {}, booked, missing),
        ("POST", "/api/appointments/{}/reschedule", {"slotId": slot}, booked, missing),
    ]
    for method, path, body, existing, unknown in attempts:
        body = body if method != "GET" else None
        answer = await client.request(method, path.format(existing), json=body)
        assert answer.status_code == 404, path
        assert _same(answer, await client.request(method, path.format(unknown), json=body))
    for patient in (ada, NOBODY):
        answer = await client.post("/api/appointments", json={"patientId": patient, "slotId": slot})
        assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such patient.")
    for reference, nobody in ((ada, NOBODY), (1, 999)):
        listed = await client.get("/api/appointments", params={"patientId": reference})
        assert listed.status_code == 404
        assert _same(listed, await client.get("/api/appointments", params={"patientId": nobody}))
    assert await page_through(client, "/api/appointments") == []

    # Matching the person makes all of it available, and nothing else.
    assert await patient_id(client) == ada
    assert (await client.get(f"/api/patients/{ada}")).status_code == 200
    assert (await client.get(f"/api/appointments/{booked}")).status_code == 200
    await book(staff_like, "Alan")
    assert [item["id"] for item in await page_through(client, "/api/appointments", limit=1)] == [booked]


async def test_patients_that_the_client_created_or_booked_are_known(world: World) -> None:
    agent = await world.client(access_limits=KNOWN_ONLY)
    person = {"firstName": "Hedy", "lastName": "Lamarr", "dob": "1990-11-09", "phone": "+1 555 010 0555"}
    created = (await confirmed(agent, "POST", "/api/patients", person)).json()["patientId"]
    assert (await agent.get(f"/api/patients/{created}")).status_code == 200
    booked = await book(agent, "Ada")
    assert (await agent.get(f"/api/appointments/{booked}")).status_code == 200
    other = await world.client(access_limits=KNOWN_ONLY)
    assert (await other.get(f"/api/patients/{created}")).status_code == 404, "known to one client, not to another"


async def test_a_practice_sets_it_for_all_its_clients_and_a_client_can_differ(world: World) -> None:
    await world.import_file(
        PRACTICE.replace("SLUG", "harbor").replace("slug: harbor,", "slug: harbor, knownPatientsOnly: true,")
    )
    follows = await world.client()
    differs = await world.client(access_limits=AccessLimits(known_patients_only=False))
    ada = await patient_id(differs)
    assert (await differs.get(f"/api/patients/{ada}")).status_code == 200
    assert (await follows.get(f"/api/patients/{ada}")).status_code == 404
