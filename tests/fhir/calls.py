"""Calls that tests of a FHIR practice share."""

from typing import Any

import httpx

from tests.support.world import MONDAY, patient_id, slots

CHEN = "Slot/chen-downtown-0-"  # followed by the minute of Monday, at the location, at which it starts
ZAPHOD = {"firstName": "Zaphod", "lastName": "Beeblebrox", "phone": "+1 555 010 0155", "dob": "1978-08-26"}


SEARCH: dict[str, Any] = {
    "providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101,
    "from": MONDAY.isoformat(), "to": MONDAY.isoformat(),
}  # fmt: skip


async def search(client: httpx.AsyncClient) -> int:
    """How a search for slots is answered."""
    return (await client.get("/api/slots", params=SEARCH)).status_code


async def booking(client: httpx.AsyncClient, first: str = "Ada", index: int = 0, **query: Any) -> dict[str, Any]:
    """What books one of the open slots."""
    found = await slots(client, **query)
    return {"patientId": await patient_id(client, first), "slotId": found[index]["id"]}


async def challenged(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], method: str = "POST"
) -> dict[str, Any]:
    """A write that only has to be sent."""
    answer = await client.request(method, path, json=body)
    assert answer.status_code == 428, answer.text
    return {**body, "confirmationToken": answer.json()["confirmationToken"]}
