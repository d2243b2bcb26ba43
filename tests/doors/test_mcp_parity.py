"""Two doors, one service: the same input over REST and over MCP gives the same data, code and audit record."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from frontdesk.operations import OPERATIONS, Operation
from tests.doors.mcp_speech import call
from tests.support.world import MONDAY, World, book, patient_id, slots

SEARCH = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101}
SEARCHED = {**SEARCH, "from": MONDAY.isoformat(), "to": MONDAY.isoformat()}
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
NOBODY = "pat_0000000000000000000000"
NOTHING = "apt_0000000000000000000000"
PRACTICE_ID = 1

# What each operation is asked beside its good input: every one of these is refused, and in the same way.
REFUSED: dict[str, list[dict[str, Any]]] = {
    "get_capabilities": [{"nonsense": "x"}],
    "get_practice": [{"nonsense": "x"}],
    "list_locations": [{"limit": 0}, {"cursor": "forged"}],
    "get_location": [{"locationId": 99}],
    "list_providers": [{"locationId": -1}, {"limit": "many"}],
    "get_provider": [{"providerId": 99}],
    "list_visit_types": [{"limit": 2**40}],
    "get_visit_type": [{"visitTypeId": 99}],
    "list_procedures": [{"visitTypeId": 99}, {"visitTypeId": 21, "nonsense": "x"}],
    "search_slots": [{}, SEARCHED | {"to": "2026-12-31"}, SEARCHED | {"from": "tomorrow", "providerId": 0}],
    "find_first_available": [{}, {"visitTypeId": 21, "procedureId": 101, "limit": 51}],
    "get_slot": [{"slotId": "slt_forged"}],
    "match_patient": [{}, ADA | {"dob": "1985-12-10T00:00:00Z"}, ADA | {"lastName": "Byron"}],
    "get_patient": [{"patientId": NOBODY}],
    "create_patient": [{}, ADA, ADA | {"dob": "2999-01-01"}],
    "update_patient": [{"patientId": NOBODY, "phone": "+1 555 010 0400"}, {"patientId": NOBODY}],
    "list_appointments": [{"patientId": "Ada"}, {"patientId": NOBODY}, {"from": "2026-11-20", "to": "2026-11-16"}],
    "get_appointment": [{"appointmentId": NOTHING}],
    "book_appointment": [{}, {"patientId": NOBODY, "slotId": "slt_forged"}],
    "cancel_appointment": [{"appointmentId": NOTHING}, {"appointmentId": NOTHING, "reason": "x" * 501}],
    "confirm_attendance": [{"appointmentId": NOTHING}, {"appointmentId": NOTHING, "nonsense": "x"}],
    "reschedule_appointment": [{"appointmentId": NOTHING}, {"appointmentId": NOTHING, "slotId": "slt_forged"}],
}


async def over_rest(client: httpx.AsyncClient, operation: Operation, given: Mapping[str, Any]) -> tuple[int, Any]:
    path = operation.path
    rest = dict(given)
    for name in given:
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", str(rest.pop(name)))
    sent = {"params": rest} if operation.method == "GET" else {"json": rest}
    answer = await client.request(operation.method, f"/api{path}", **sent)  # type: ignore[arg-type]
    return answer.status_code, answer.json()


async def good_input(client: httpx.AsyncClient, operation: Operation, first: str) -> dict[str, Any]:
    """Something the operation accepts, about the patient with that first name."""
    fixed: dict[str, dict[str, Any]] = {
        "list_locations": {"name": "main", "limit": 1},
        "get_location": {"locationId": 1},
        "list_providers": {"locationId": 1, "limit": 2},
        "get_provider": {"providerId": 11},
        "list_visit_types": {"name": "first visit"},
        "get_visit_type": {"visitTypeId": 20},
        "list_procedures": {"visitTypeId": 21},
        "search_slots": SEARCHED,
        "find_first_available": {"visitTypeId": 22, "procedureId": 103, "limit": 3},
        "match_patient": ADA,
        "create_patient": ADA | {"firstName": f"{first}ine", "email": "new@example.com"},
    }
    name = operation.name
    if name in ("get_capabilities", "get_practice"):
        return {}
    if name in fixed:
        return fixed[name]
    if name == "get_slot":
        return {"slotId": (await slots(client))[0]["id"]}
    if name in ("get_patient", "update_patient", "list_appointments", "book_appointment"):
        found = {"patientId": await patient_id(client, first)}
        if name == "update_patient":
            found["email"] = "changed@example.com"
        if name == "book_appointment":
            found["slotId"] = (await slots(client))[0]["id"]
        return found
    found = {"appointmentId": await book(client, first)}
    if name == "reschedule_appointment":
        found["slotId"] = (await slots(client))[-1]["id"]
    return found


def comparable(document: Mapping[str, Any]) -> dict[str, Any]:
    """A problem without what is new in every answer."""
    return {name: value for name, value in document.items() if name not in ("requestId", "confirmationToken")}


async def records(world: World, since: int = 0) -> list[tuple[Any, ...]]:
    """The audit trail from there on, without what is new in every record."""
    async with world.database.transaction(PRACTICE_ID) as connection:
        rows = await connection.fetch(
            """SELECT actor, at, operation, outcome, subject_ids FROM audit_record
               WHERE practice_id = $1 ORDER BY record_id OFFSET $2""",
            PRACTICE_ID,
            since,
        )
    return [tuple(row.values()) for row in rows]


def test_every_operation_is_compared() -> None:
    assert set(REFUSED) == {operation.name for operation in OPERATIONS}


async def test_both_doors_refuse_alike(world: World) -> None:
    agent = await world.client()
    for operation in OPERATIONS:
        for given in REFUSED[operation.name]:
            before = len(await records(world))
            status, document = await over_rest(agent, operation, given)
            by_rest = await records(world, before)
            found = await call(agent, operation.name, **given)
            assert status >= 400, (operation.name, given)
            assert found["isError"] is True
            assert found["structuredContent"]["status"] == status
            assert comparable(found["structuredContent"]) == comparable(document)
            assert await records(world, before) == [*by_rest, *by_rest]


async def test_both_doors_read_alike(world: World) -> None:
    agent = await world.client()
    for operation in OPERATIONS:
        if operation.kind == "read":
            given = await good_input(agent, operation, "Ada")
            before = len(await records(world))
            status, document = await over_rest(agent, operation, given)
            by_rest = await records(world, before)
            found = await call(agent, operation.name, **given)
            assert (status, found["isError"]) == (200, False), operation.name
            assert found["structuredContent"] == document
            assert len(by_rest) == (1 if operation.reads_phi else 0)
            assert await records(world, before) == [*by_rest, *by_rest]


@pytest.mark.parametrize("begun", ["rest", "mcp"])
@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.kind == "write"], ids=lambda o: o.name)
async def test_a_write_may_begin_at_one_door_and_end_at_the_other(
    world: World, operation: Operation, begun: str
) -> None:
    agent = await world.client()
    given = await good_input(agent, operation, "Alan")

    before = len(await records(world))
    status, by_rest = await over_rest(agent, operation, given)
    recorded = await records(world, before)
    by_tool = (await call(agent, operation.name, **given))["structuredContent"]
    assert status == 428
    assert by_tool["code"] == by_rest["code"] == "confirmation_required"
    assert (by_tool["readBack"], by_tool["expiresAt"]) == (by_rest["readBack"], by_rest["expiresAt"])
    assert [record[2:4] for record in recorded] == [(operation.name, "confirmation_required")]
    assert await records(world, before) == [*recorded, *recorded]

    challenge = by_rest if begun == "rest" else by_tool
    confirmed = {**given, "confirmationToken": challenge["confirmationToken"]}
    if begun == "rest":
        executed = (await call(agent, operation.name, **confirmed))["structuredContent"]
        replayed = await over_rest(agent, operation, confirmed)
    else:
        replayed = await over_rest(agent, operation, confirmed)
        executed = (await call(agent, operation.name, **confirmed))["structuredContent"]
    assert replayed == (operation.success, executed)
    written = await records(world, before + 2)
    assert [record[2:4] for record in written] == [(operation.name, "executed")]
    subjects = {"pat_"} if operation.name.endswith("_patient") else {"apt_", "pat_"}
    assert {subject[:4] for subject in written[0][4]} == subjects
