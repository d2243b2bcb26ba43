"""The REST door: trace ids, the order of checks, tokens and scopes."""

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.doors.rest import _query_pairs
from frontdesk.operations import OPERATIONS
from frontdesk.web.bodies import MAX_BODY_BYTES
from tests.doors.rest_calls import ADA, MATCH, TRACE, example
from tests.support.properties import examples
from tests.support.world import World, slots


async def test_every_answer_carries_its_trace_id(world: World) -> None:
    agent, reader = await world.client(), await world.client(scopes=["slots:read"])
    nobody = world.anonymous()
    answers = [
        (200, await agent.get("/api/practice")),
        (200, await agent.post(MATCH, json=ADA)),
        (400, await agent.get("/api/locations/x")),
        (401, await nobody.get("/api/practice")),
        (403, await reader.get("/api/practice")),
        (404, await agent.get("/api/nothing")),
        (404, await agent.get("/api")),
        (404, await agent.get("/api/")),
        (404, await agent.get("/api/practice/")),
        (404, await agent.get("/nothing")),
        (404, await nobody.get("/api/nothing")),
        (405, await agent.delete("/api/practice")),
        (406, await agent.get("/api/practice", headers={"Accept": "text/html"})),
        (413, await agent.post(MATCH, content=b" " * (MAX_BODY_BYTES + 1))),
        (415, await agent.post(MATCH, content=b"{}", headers={"Content-Type": "text/xml"})),
        (422, await agent.get("/api/slots")),
        (428, await agent.post("/api/patients", json={**ADA, "firstName": "Augusta"})),
    ]
    seen = set()
    for status, answer in answers:
        assert answer.status_code == status, answer.text
        trace = answer.headers[TRACE]
        assert len(trace) == 32
        assert set(trace) <= set("0123456789abcdef")
        seen.add(trace)
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["requestId"] == trace
    assert len(seen) == len(answers), "each request has its own"


async def test_a_valid_traceparent_is_taken_over(world: World) -> None:
    agent = await world.client()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for traceparent in (
        f"00-{trace}-00f067aa0ba902b7-01",
        f" 00-{trace}-00f067aa0ba902b7-00 ",
        f"cc-{trace}-00f067aa0ba902b7-01-more",
    ):
        for path in ("/api/practice", "/api/locations/99", "/api/nothing"):
            answer = await agent.get(path, headers={"traceparent": traceparent})
            assert answer.headers[TRACE] == trace, traceparent
            if answer.status_code != 200:
                assert answer.json()["requestId"] == trace


async def test_an_invalid_traceparent_is_ignored(world: World) -> None:
    agent = await world.client()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for traceparent in (
        "",
        "x",
        trace,
        f"00-{trace}-00f067aa0ba902b7",
        f"00-{trace}-00f067aa0ba902b7-01-more",  # the version we know has four parts
        f"00-{trace}-00f067aa0ba902b7-0",
        f"00-{trace}-0000000000000000-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"ff-{trace}-00f067aa0ba902b7-01",
        f"00-{trace.upper()}-00f067aa0ba902b7-01",
        f"00-{trace[:-1]}g-00f067aa0ba902b7-01",
        f"cc-{trace}-00f067aa0ba902b7-01more",
    ):
        answer = await agent.get("/api/practice", headers={"traceparent": traceparent})
        assert answer.status_code == 200
        found = answer.headers[TRACE]
        assert found not in (trace, "0" * 32), traceparent
        assert len(found) == 32


async def test_checks_come_in_the_order_of_the_contract(world: World) -> None:
    slot_reader = await world.client(scopes=["slots:read", "patients:read"])
    agent, nobody = await world.client(), world.anonymous()
    bad_body = {"content": b"{", "headers": {"Content-Type": "application/json"}}
    bad_type = {"content": b"{}", "headers": {"Content-Type": "text/xml", "Accept": "text/html"}}
    too_large = {"content": b" " * 70_000}
    for faulty in (bad_body, bad_type, too_large):
        assert (await nobody.post("/api/patients", **faulty)).status_code == 401  # type: ignore[arg-type]
        assert (await slot_reader.post("/api/patients", **faulty)).status_code == 403  # type: ignore[arg-type]
    assert (await agent.post("/api/patients", **bad_body)).status_code == 400  # type: ignore[arg-type]
    # Reading before rules, rules before existence, existence before state.
    unknown = "apt_" + "0" * 22
    path = f"/api/appointments/{unknown}/cancel"
    assert (await agent.post(path, json={"reason": 5, "x": 1})).status_code == 400
    assert (await agent.post(path, json={"reason": "x" * 501})).status_code == 422
    assert (await agent.post(path, json={})).status_code == 404
    assert (await agent.get("/api/appointments", params={"PatientId": 99, "limit": 0})).status_code == 422
    slot = (await slots(agent))[0]["id"]
    assert (await agent.post("/api/appointments", json={"patientId": "pat_x", "slotId": slot})).status_code == 404


async def test_a_token_is_needed_and_must_be_ours(world: World) -> None:
    agent, nobody = await world.client(), world.anonymous()
    token = agent.headers["Authorization"].removeprefix("Bearer ")
    for authorization in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x.y.z",
        f"Basic {token}",
        token,
        f"Bearer {token}x",
        f"Bearer {token} {token}",
    ):
        headers = {} if authorization is None else {"Authorization": authorization}
        answer = await nobody.get("/api/practice", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), authorization
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert "resource_metadata=" in answer.headers["www-authenticate"]
    assert (await nobody.get("/api/practice", headers={"Authorization": f"bearer {token}"})).status_code == 200


async def test_every_operation_needs_its_scope_and_no_other(world: World) -> None:
    nobody = world.anonymous()
    for scope in SCOPES:
        without, only = await world.client(scopes=[s for s in SCOPES if s != scope]), await world.client(scopes=[scope])
        for operation in OPERATIONS:
            if operation.scope == scope:
                refused = await example(without, operation)
                assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_scope"), operation.name
                assert scope in refused.json()["detail"]
                assert (await example(only, operation)).status_code not in (401, 403), operation.name
        assert (await only.get("/api/capabilities")).json() == {"capabilities": [scope]}
    for operation in OPERATIONS:
        assert (await example(nobody, operation)).status_code == 401, operation.name


def test_scopes_are_those_of_the_contract() -> None:
    decided = {
        "get_capabilities": None,
        **dict.fromkeys(("search_slots", "find_first_available", "get_slot"), "slots:read"),
        **dict.fromkeys(("match_patient", "get_patient"), "patients:read"),
        **dict.fromkeys(("create_patient", "update_patient"), "patients:write"),
        **dict.fromkeys(("list_appointments", "get_appointment"), "appointments:read"),
        **dict.fromkeys(("book_appointment", "reschedule_appointment"), "appointments:book"),
        "cancel_appointment": "appointments:cancel",
        "confirm_attendance": "appointments:confirm",
    }
    assert {operation.name: operation.scope for operation in OPERATIONS} == {
        operation.name: decided.get(operation.name, "practices:read") for operation in OPERATIONS
    }


@examples()
@given(st.text(alphabet="ab=&+%2;é", max_size=12))
def test_a_query_is_split_like_a_form(text: str) -> None:
    expected = parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=100)
    assert _query_pairs(text.encode()) == expected
