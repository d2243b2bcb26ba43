"""Every operation works at a practice whose calendar lives in a FHIR server."""

from typing import Any

import httpx
import pytest

from frontdesk.operations import OPERATIONS
from tests.fhir.calls import SEARCH, ZAPHOD, booking
from tests.support.world import World, book, confirmed, patient_id, slots

ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "0199", "dob": "1985-12-10"}


async def _given(agent: httpx.AsyncClient, name: str) -> dict[str, Any]:
    """What the operation is called with: the ids in its path, its query or its body."""
    match name:
        case "get_location":
            return {"locationId": 1}
        case "get_provider":
            return {"providerId": 10}
        case "get_visit_type" | "list_procedures":
            return {"visitTypeId": 21}
        case "search_slots":
            return SEARCH
        case "find_first_available":
            return {"visitTypeId": 21, "procedureId": 101}
        case "get_slot":
            return {"slotId": (await slots(agent))[0]["id"]}
        case "match_patient":
            return ADA
        case "get_patient":
            return {"patientId": await patient_id(agent)}
        case "create_patient":
            return ZAPHOD
        case "update_patient":
            return {"patientId": await patient_id(agent), "email": "ada@example.com"}
        case "book_appointment":
            return await booking(agent)
        case "get_appointment" | "cancel_appointment" | "confirm_attendance":
            return {"appointmentId": await book(agent)}
        case "reschedule_appointment":
            return {"appointmentId": await book(agent), "slotId": (await slots(agent))[3]["id"]}
    return {}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_an_operation_works(fhir: World, operation: Any) -> None:
    agent = await fhir.client()
    given = await _given(agent, operation.name)
    path = f"/api{operation.path}"
    rest = {name: value for name, value in given.items() if f"{{{name}}}" not in path}
    for name, value in given.items():
        path = path.replace(f"{{{name}}}", str(value))
    if operation.kind == "write":
        answer = await confirmed(agent, operation.method, path, rest)
    elif operation.method == "GET":
        answer = await agent.get(path, params=rest)
    else:
        answer = await agent.request(operation.method, path, json=rest)
    assert answer.status_code == operation.success, answer.text
