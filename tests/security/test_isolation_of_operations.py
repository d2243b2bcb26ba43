"""Every operation, called with one practice's token and another's ids: nothing of the other practice shows.

Another practice's id is answered exactly as an unknown one: status, body and headers, after as many statements.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.operations import OPERATIONS, Operation
from tests.security.two_practices import (
    BY_NAME,
    NOBODY,
    PERSON,
    WINDOW,
    Side,
    arguments,
    attacker,
    call,
    call_tool,
    victim,
)
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

UNKNOWN = {
    "patientId": "pat_" + "0" * 22,
    "appointmentId": "apt_" + "0" * 22,
    "slotId": "slt_" + "A" * 40,
    "locationId": 999_001,
    "providerId": 999_002,
    "visitTypeId": 999_003,
    "procedureId": 999_004,
}
# What differs from call to call for every caller.
PASSING = re.compile(
    r'"(requestId|confirmationToken|expiresAt)":"[^"]*"|(requestId|confirmationToken|expiresAt)[\\": ]+[\w:.-]+'
)
PASSING_HEADERS = {"x-svc-trace-id", "ratelimit", "content-length"}
Caller = Callable[[httpx.AsyncClient, Operation, dict[str, Any]], Awaitable[httpx.Response]]


world = world_of_a_module


@pytest.fixture(scope="module")
async def mine(world: World) -> Side:
    return await attacker(world)


@pytest.fixture(scope="module")
async def theirs(world: World) -> Side:
    return await victim(world)


def visible(answer: httpx.Response) -> tuple[int, str, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in PASSING_HEADERS}
    return answer.status_code, PASSING.sub("", answer.text), headers


def check_no_leak(answer: httpx.Response, theirs: Side, sent: object = "") -> None:
    """Nothing of theirs is in the answer that was not in the request."""
    text = answer.text + repr(sorted(answer.headers.multi_items()))
    leaked = [mark for mark in theirs.marks if mark in text and mark not in repr(sent)]
    assert leaked == [], answer.text
    assert answer.status_code < 500, answer.text


async def measured(
    world: World, door: Caller, client: httpx.AsyncClient, operation: Operation, given: dict[str, Any]
) -> tuple[httpx.Response, int]:
    """The answer and the statements it took: the fewest of several calls, since others happen beside."""
    costs = []
    for _ in range(3):
        before = world.database.statements
        answer = await door(client, operation, given)
        costs.append(world.database.statements - before)
    return answer, min(costs)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_id_that_an_operation_takes_is_tried(operation: Operation) -> None:
    taken = {field.alias for field in operation.input.model_fields.values()} & set(UNKNOWN)
    assert arguments(operation.name, UNKNOWN).keys() & set(UNKNOWN) == taken


@pytest.mark.parametrize("door", [call, call_tool], ids=["rest", "mcp"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_a_foreign_id_is_answered_as_an_unknown_one(
    world: World, mine: Side, theirs: Side, operation: Operation, door: Caller
) -> None:
    good = arguments(operation.name, mine.ids)
    tries = [
        ([name], {**good, name: theirs.ids[name]}, {**good, name: UNKNOWN[name]}) for name in good if name in UNKNOWN
    ]
    everything = [name for name in good if name in UNKNOWN]
    if len(everything) > 1:
        foreign, unknown = ({**good, **{name: ids[name] for name in everything}} for ids in (theirs.ids, UNKNOWN))
        tries.append((everything, foreign, unknown))
    for client in (mine.agent, mine.integration):
        check_no_leak(await door(mine.agent, operation, good), theirs)
        for names, foreign, unknown in tries:
            answered, cost = await measured(world, door, client, operation, foreign)
            expected, expected_cost = await measured(world, door, client, operation, unknown)
            assert visible(answered) == visible(expected), names
            assert cost == expected_cost, names
            check_no_leak(answered, theirs, foreign)
            if door is call:
                empty = operation.name in (
                    "search_slots",
                    "find_first_available",
                    "list_providers",
                    "list_appointments",
                )
                assert answered.status_code == (200 if empty and "patientId" not in names else 404), names
                if answered.status_code == 200:
                    assert answered.json()["items"] == []


@pytest.mark.parametrize("scope", SCOPES)
async def test_no_operation_runs_without_its_scope(world: World, mine: Side, scope: str) -> None:
    poor = await world.client("harbor", scopes=[held for held in SCOPES if held != scope])
    for operation in OPERATIONS:
        answer = await call(poor, operation, arguments(operation.name, mine.ids))
        assert (answer.status_code == 403) == (operation.scope == scope), operation.name
        assert ("forbidden_scope" in answer.text) == (operation.scope == scope)
        tool = await call_tool(poor, operation, arguments(operation.name, mine.ids))
        assert ("forbidden_scope" in tool.text) == (operation.scope == scope)


async def test_a_foreign_patient_number_is_an_unknown_one(mine: Side, theirs: Side) -> None:
    foreign = await mine.agent.get("/api/appointments", params={"PatientId": theirs.ids["number"]})
    unknown = await mine.agent.get("/api/appointments", params={"PatientId": 778})
    assert visible(foreign) == visible(unknown)
    assert foreign.status_code == 404


async def test_a_person_known_elsewhere_is_nobody_here(mine: Side, theirs: Side) -> None:
    for name, status in (("match_patient", 404), ("create_patient", 428)):
        foreign = await call(mine.agent, BY_NAME[name], PERSON)
        unknown = await call(mine.agent, BY_NAME[name], NOBODY)
        assert foreign.status_code == unknown.status_code == status
        check_no_leak(foreign, theirs, PERSON)
    renamed = await call(mine.agent, BY_NAME["update_patient"], {"patientId": mine.ids["patientId"], **PERSON})
    assert renamed.status_code == 428
    check_no_leak(renamed, theirs, PERSON)


async def test_a_foreign_cursor_is_as_good_as_a_forged_one(mine: Side, theirs: Side) -> None:
    queries = {
        "search_slots": {**arguments("search_slots", theirs.ids), **WINDOW, "limit": 3},
        "list_appointments": {"limit": 1},
    }
    for name, query in queries.items():
        own = {**query, **(arguments(name, mine.ids) if name == "search_slots" else {})}
        for given in (query, own):
            foreign = await call(mine.agent, BY_NAME[name], {**given, "cursor": theirs.cursors[name]})
            forged = await call(mine.agent, BY_NAME[name], {**given, "cursor": "A" * len(theirs.cursors[name])})
            assert visible(foreign) == visible(forged)
            assert (foreign.status_code, foreign.json()["errors"][0]["rule"]) == (422, "cursor")
            check_no_leak(foreign, theirs)
        assert (await call(theirs.agent, BY_NAME[name], {**query, "cursor": theirs.cursors[name]})).status_code == 200


@pytest.mark.parametrize(
    "name", ["cancel_appointment", "confirm_attendance", "reschedule_appointment", "update_patient"]
)
async def test_a_foreign_confirmation_token_is_an_unrecognized_one(mine: Side, theirs: Side, name: str) -> None:
    """Another practice's, and another client's of the same practice."""
    colleague = mine.integration
    for ids in (mine.ids, theirs.ids):
        given = arguments(name, ids)
        foreign = await call(mine.agent, BY_NAME[name], {**given, "confirmationToken": theirs.tokens[name]})
        unknown = await call(mine.agent, BY_NAME[name], {**given, "confirmationToken": "0" * 32})
        assert visible(foreign) == visible(unknown)
        assert foreign.status_code == (428 if ids is mine.ids else 404)
        check_no_leak(foreign, theirs, given)
    assert colleague.headers["X-Test-Client"] != mine.agent.headers["X-Test-Client"]
    challenged = await call(theirs.agent, BY_NAME[name], arguments(name, theirs.ids))
    assert challenged.status_code == 428  # and the victim's appointment is as it was


async def test_the_token_of_another_client_of_the_same_practice_confirms_nothing(world: World, mine: Side) -> None:
    colleague = await world.client("harbor")
    given = arguments("cancel_appointment", mine.ids)
    answer = await call(
        colleague, BY_NAME["cancel_appointment"], {**given, "confirmationToken": mine.tokens["cancel_appointment"]}
    )
    assert answer.status_code == 428
    assert answer.json()["confirmationToken"] != mine.tokens["cancel_appointment"]
    appointment = await call(mine.agent, BY_NAME["get_appointment"], arguments("get_appointment", mine.ids))
    assert appointment.json()["status"] == "booked"


async def test_an_idempotency_key_means_nothing_in_another_practice_or_to_another_client(
    world: World, mine: Side, theirs: Side
) -> None:
    key = theirs.keys["book_appointment"]
    assert key == mine.keys["book_appointment"]
    assert theirs.results["book_appointment"] != mine.results["book_appointment"]
    booking = {"patientId": theirs.ids["patientId"], "slotId": theirs.ids["slotId"]}
    answer = await call(mine.integration, BY_NAME["book_appointment"], booking, **{"Idempotency-Key": "unused"})
    assert answer.status_code == 404
    stranger = await world.client("harbor", grant="integration")
    answer = await call(stranger, BY_NAME["book_appointment"], booking, **{"Idempotency-Key": key})
    assert answer.status_code == 404
    check_no_leak(answer, theirs, booking)


async def test_lists_hold_nothing_of_the_other_practice(mine: Side, theirs: Side) -> None:
    for name in ("list_locations", "list_providers", "list_visit_types", "list_appointments", "get_practice"):
        answer = await call(mine.agent, BY_NAME[name], {})
        assert answer.status_code == 200
        check_no_leak(answer, theirs)
        seen = await call(theirs.agent, BY_NAME[name], {})
        assert any(mark in seen.text for mark in theirs.marks)  # the marks do mark


async def test_the_log_of_another_practice_is_not_written_to(world: World, mine: Side, theirs: Side) -> None:
    """An attempt on another practice is recorded where the attacker is at home."""
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'quixotic'")

    async def audited() -> int:
        async with world.database.transaction(practice_id) as connection:
            count: int = await connection.fetchval("SELECT count(*) FROM audit_record")
        return count

    before = await audited()
    for operation in OPERATIONS:
        await call(mine.agent, operation, arguments(operation.name, theirs.ids))
    assert await audited() == before


async def test_problems_and_headers_name_no_practice(mine: Side, theirs: Side) -> None:
    poor = await mine.agent.get("/api/slots", headers={"Authorization": "Bearer x"})
    assert poor.status_code == 401
    for operation in OPERATIONS:
        answer = await call(mine.agent, operation, arguments(operation.name, theirs.ids))
        check_no_leak(answer, theirs, arguments(operation.name, theirs.ids))
