"""Problems of the REST door: what they say, and what they never say."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors import rest
from frontdesk.operations import OPERATIONS, published
from frontdesk.operations._schemas import plain_schema
from tests.doors.rest_calls import ADA, MATCH, TRACE, log_lines, path_of
from tests.support.world import World, patient_id, rules, slots


async def test_a_wrong_method_names_the_right_ones(world: World) -> None:
    agent = await world.client()
    for method, path, allowed in (
        ("DELETE", "/api/practice", "GET"),
        ("PUT", "/api/appointments", "GET, POST"),
        ("GET", MATCH, "POST"),
        ("POST", "/api/slots/first-available", "GET"),
        ("PUT", "/api/patients/pat_x", "GET, PATCH"),
        ("GET", "/api/appointments/apt_x/cancel", "POST"),
        ("OPTIONS", "/api/slots", "GET"),
        ("BREW", "/api/slots/x", "GET"),
    ):
        answer = await agent.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed"), path
        assert answer.headers["allow"] == allowed


async def test_every_problem_is_as_the_catalogue_says(world: World) -> None:
    agent, reader = await world.client(), await world.client(scopes=["slots:read"])
    slot = (await slots(agent))[0]["id"]
    grace = await patient_id(agent, "Grace")
    answers = [
        await world.anonymous().get("/api/practice"),
        await reader.get("/api/practice"),
        await agent.get("/api/nothing"),
        await agent.get("/api/slots"),
        await agent.get("/api/slots", params={"providerId": "x"}),
        await agent.put("/api/practice"),
        await agent.get("/api/practice", headers={"Accept": "image/png"}),
        await agent.post(MATCH, content=b" " * 70_000),
        await agent.post(MATCH, content=b"x"),
        await agent.post("/api/patients", json={**ADA, "firstName": "Augusta"}),
        await agent.post("/api/patients", json=ADA),
        await agent.post("/api/appointments", json={"patientId": grace, "slotId": slot}),
    ]
    for answer in answers:
        document = answer.json()
        kind = CATALOGUE[document["code"]]
        assert document["type"] == f"http://test/errors.html#{kind.code}"
        assert document["title"] == kind.title
        assert document["status"] == answer.status_code
        assert answer.status_code in kind.statuses
        assert document["detail"]
        assert ("errors" in document) == (kind.code == "validation")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert None not in document.values()
    assert {answer.json()["code"] for answer in answers} == {
        "unauthorized", "forbidden_scope", "not_found", "validation", "method_not_allowed", "not_acceptable",
        "payload_too_large", "unsupported_media_type", "confirmation_required", "conflict",
    }  # fmt: skip
    declined = answers[-1].json()
    assert declined["errors"] == [{"field": "$", "rule": "declined", "message": declined["detail"]}]


async def test_errors_never_repeat_what_was_sent(world: World) -> None:
    agent = await world.client()
    mark = "Zq9Marker"
    values: list[Any] = [
        mark,
        f"{mark}\x00",
        {mark: mark},
        [mark],
        f"2026-11-16T{mark}",
        f"pat_{mark}",
        f"{mark}@{mark}",
    ]
    for operation in OPERATIONS:
        names = [n for n in plain_schema(operation.input).get("properties", {}) if f"{{{n}}}" not in operation.path]
        for value in values:
            if operation.method == "GET":
                answer = await agent.get(path_of(operation, mark), params={name: str(value) for name in names})
            else:
                body = dict.fromkeys(names, value)
                answer = await agent.request(operation.method, path_of(operation, mark), json=body)
            assert 400 <= answer.status_code < 500 or not names, (operation.name, answer.text)
            assert mark not in answer.text, operation.name
            assert mark not in str(answer.headers), operation.name


async def test_odd_characters_are_refused_by_rule_and_never_an_error(world: World) -> None:
    agent = await world.client()
    for name, status, rule in (
        ("A\x00", 422, "characters"),
        ("A\x1b[31m", 422, "characters"),
        ("A\x7f", 422, "characters"),
        ("A\x85", 422, "characters"),
        ("\ud83d", 400, "Binding"),
    ):
        body = json.dumps({**ADA, "firstName": name}).encode()
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": "application/json"})
        field = "$" if rule == "Binding" else "firstName"
        assert (answer.status_code, rules(answer)) == (status, {field: rule}), ascii(name)
    kept = {**ADA, "firstName": "Zoë 👩‍⚕️ Ŵ", "lastName": "Ó Súilleabháin"}
    challenge = await agent.post("/api/patients", json=kept)
    assert challenge.json()["readBack"]["firstName"] == kept["firstName"], "Unicode is accepted and kept"
    for encoded in ("%ED%A0%80", "%C0%80", "%FF", "a%80"):
        answer = await agent.get(f"/api/locations?name={encoded}")
        assert (answer.status_code, rules(answer)) == (400, {"name": "Binding"}), encoded


async def test_a_query_in_utf_8_that_was_not_escaped_is_understood(world: World) -> None:
    """As curl sends it; the HTTP client of the other tests would escape it."""
    agent = await world.client()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("a GET has no body to wait for")

    door = rest.RestDoor(world.service.engine, world.service.settings, world.service.requests)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/providers",
        "query_string": "name=Núñez".encode(),
        "headers": [(b"authorization", agent.headers["Authorization"].encode())],
    }
    await door(scope, receive, send)
    assert [item["id"] for item in json.loads(sent[1]["body"])["items"]] == [11]


async def test_an_unexpected_error_is_internal_and_its_trace_is_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(_context: Any, given: Any) -> dict[str, Any]:
        raise RuntimeError(f"secret words about {given.first_name} {given.last_name}")

    operations = published()
    broken = {**operations, "match_patient": replace(operations["match_patient"], run=run)}
    monkeypatch.setattr(rest, "published", lambda: broken)
    door = rest.RestDoor(world.service.engine, world.service.settings, world.service.requests)
    agent = await world.client()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=door), base_url="http://test", headers=agent.headers
    ) as client:
        with log_lines() as lines:
            answer = await client.post(MATCH, json=ADA)
    assert answer.status_code == 500
    document = answer.json()
    assert (document["code"], document["title"]) == ("internal", CATALOGUE["internal"].title)
    for word in ("secret", "RuntimeError", "Traceback", "Ada", ".py"):
        assert word not in answer.text
    [error] = [line for line in lines if line.get("error")]
    assert error["requestId"] == document["requestId"] == answer.headers[TRACE]
    assert error["error"] == "RuntimeError"
    assert any("test_rest_problems.py" in frame and frame.endswith(" in run") for frame in error["trace"])
    [request] = [line for line in lines if line["message"] == "request"]
    assert (request["status"], request["requestId"]) == (500, document["requestId"])
    text = json.dumps(lines).replace(agent.headers["X-Test-Client"], "")  # random: it may spell a first name
    assert "secret" not in text
    assert not any(value in text for value in ADA.values())
    async with world.database.transaction() as connection:
        await connection.execute("SELECT set_config('frontdesk.practice_id', '1', true)")
        outcomes = await connection.fetch("SELECT outcome FROM audit_record WHERE operation = 'match_patient'")
    assert [row["outcome"] for row in outcomes] == ["internal"], "what failed is not recorded as done"
