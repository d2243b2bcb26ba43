"""The REST door on the wire: the formats of answers and bodies, and where fields stand."""

import json
from collections.abc import AsyncIterator

import httpx

from frontdesk.web.bodies import MAX_BODY_BYTES
from tests.doors.rest_calls import ADA, MATCH
from tests.support.shared_database import world_of_a_module
from tests.support.world import World, patient_id, rules

world = world_of_a_module


async def test_answers_come_in_the_preferred_format(world: World) -> None:
    agent = await world.client()
    plain_json, text_json, plain = "application/json", "text/json; charset=utf-8", "text/plain; charset=utf-8"
    for accept, expected in (
        (None, plain_json),
        ("", plain_json),
        ("*/*", plain_json),
        ("application/json", plain_json),
        ("application/json; charset=utf-8", plain_json),
        ("application/*", plain_json),
        ("APPLICATION/JSON", plain_json),
        ("text/json", text_json),
        ("text/plain", plain),
        ("text/*", text_json),
        ("text/html, */*;q=0.1", plain_json),
        ("text/html, text/plain;q=0.2, application/json;q=0.1", plain),
        ("application/json;q=0.5, text/plain", plain),
        ("text/plain;q=0.5, application/json;q=0.5", plain_json),
        ("application/json;q=0, */*", text_json),
        ("application/json;q=0, text/json;q=0, */*;q=0.001", plain),
        ("text/*;q=0.3, text/plain;q=0.9, application/json;q=0.5", plain),
        (" , application/json ,", plain_json),
    ):
        headers = dict(agent.headers)
        headers.pop("accept", None)
        request = httpx.Request("GET", "http://test/api/practice", headers=headers)
        if accept is not None:
            request.headers["Accept"] = accept
        answer = await agent.send(request)
        assert (answer.status_code, answer.headers["content-type"]) == (200, expected), accept
        assert json.loads(answer.content)["id"] == "harbor"


async def test_several_accept_headers_are_one_list(world: World) -> None:
    agent = await world.client()
    headers = [(name, value) for name, value in agent.headers.items() if name != "accept"]
    answer = await agent.get(
        "/api/practice", headers=[*headers, ("Accept", "text/html"), ("Accept", "text/plain"), ("Accept", "image/png")]
    )
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_long_accept_header_is_not_read_to_its_end(world: World) -> None:
    agent = await world.client()
    for accept, status in ((f"image/png{',' * 1000}application/json", 406), (f"application/json{',' * 30_000}", 200)):
        answer = await agent.get("/api/practice", headers={"Accept": accept})
        assert answer.status_code == status


async def test_what_cannot_be_offered_is_not_acceptable(world: World) -> None:
    agent = await world.client()
    for accept in (
        "text/html",
        "application/xml, image/*",
        "*/*;q=0",
        "application/json;q=0",
        "json",
        "application/json;q=x",
    ):
        answer = await agent.get("/api/practice", headers={"Accept": accept})
        assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable"), accept


async def test_problems_are_problem_documents_whatever_is_accepted(world: World) -> None:
    agent = await world.client()
    for accept in ("text/plain", "text/json", "application/json"):
        answer = await agent.get("/api/locations/99", headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_bodies_come_in_every_kind_of_json(world: World) -> None:
    agent = await world.client()
    body = json.dumps(ADA).encode()
    for content_type in (
        "application/json",
        "Application/JSON",
        "text/json",
        "application/vnd.x+json",
        "application/merge-patch+json",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; Charset=utf8; profile=x",
    ):
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": content_type})
        assert answer.status_code == 200, content_type
    for content_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/json; charset=latin-1",
        "application/jsonp",
        "text/x+json",
        "+json",
        "",
    ):
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), content_type
    untyped = await agent.send(agent.build_request("POST", MATCH, content=body))
    assert untyped.status_code == 415


async def test_a_body_that_is_no_json_object_cannot_be_read(world: World) -> None:
    agent = await world.client()
    for body in (
        b"{", b"nonsense", b"{'a': 1}", b'{"a": NaN}', b'{"a": 1,}', b"[]", b"[1]", b'"text"', b"1", b"null", b"true",
        b'{"dob": "\xff"}', b'\xef\xbb\xbf{"dob": "1985-12-10"}', b"\x00", b'{"dob": "\\ud800"}', b"{}{}",
        b"[" * 30_000, b'{"a":' * 12_000, json.dumps(ADA).encode("utf-16"),
    ):  # fmt: skip
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, rules(answer)) == (400, {"$": "Binding"}), body[:30]
    for body in (b"{", b"[]"):
        answer = await agent.post(f"{MATCH}?dry=1", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, rules(answer)) == (400, {"dry": "unknown", "$": "Binding"})


async def test_a_field_is_listed_once_whether_or_not_the_body_can_be_read(world: World) -> None:
    agent = await world.client()
    for body, others in ((b"{}", [*ADA]), (b"{", ["$"]), (b"[]", ["$"])):
        answer = await agent.post(f"{MATCH}?x=1&x=2", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert sorted(error["field"] for error in answer.json()["errors"]) == sorted(["x", *others])
        assert rules(answer)["x"] == "Binding", body


async def test_no_body_is_a_body_without_fields(world: World) -> None:
    agent = await world.client()
    for body in (b"", b"  \r\n\t"):
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, rules(answer)) == (422, dict.fromkeys(ADA, "required"))
    assert (await agent.post(MATCH)).status_code == 422, "nothing needs no type"


async def test_a_body_may_have_64_kib_and_not_a_byte_more(world: World) -> None:
    agent = await world.client()
    typed = {"Content-Type": "application/json"}
    full = json.dumps(ADA).encode().ljust(MAX_BODY_BYTES)
    assert (await agent.post(MATCH, content=full, headers=typed)).status_code == 200

    async def in_pieces(length: int) -> AsyncIterator[bytes]:
        for at in range(0, length, 4096):
            yield full.ljust(length)[at : at + 4096]

    assert (await agent.post(MATCH, content=in_pieces(MAX_BODY_BYTES), headers=typed)).status_code == 200
    for content in (full + b" ", in_pieces(MAX_BODY_BYTES + 1), in_pieces(MAX_BODY_BYTES * 2)):
        answer = await agent.post(MATCH, content=content, headers=typed)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
        assert answer.headers["connection"] == "close", "what was not read would be taken for the next request"


async def test_property_names_are_read_without_regard_to_case_and_once(world: World) -> None:
    agent = await world.client()
    assert (await agent.post(MATCH, json={name.upper(): value for name, value in ADA.items()})).status_code == 200
    twice = await agent.post(MATCH, json={**ADA, "FIRSTNAME": "Ada", "firstname": "Ada"})
    assert (twice.status_code, rules(twice)) == (400, {"firstName": "Binding"})


async def test_unknown_fields_do_not_hide_known_ones(world: World) -> None:
    agent = await world.client()
    answer = await agent.post(MATCH, json=dict.fromkeys((f"unknown{n}" for n in range(200)), 1) | ADA)
    assert answer.status_code == 422
    assert rules(answer) == {f"unknown{n}": "unknown" for n in range(100)}


async def test_an_update_of_a_repeated_field_is_not_said_to_be_empty(world: World) -> None:
    agent = await world.client()
    path = f"/api/patients/{await patient_id(agent)}"
    for body in ({"email": "a@example.com", "EMAIL": "b@example.com"}, {"email": None, "Email": None}):
        answer = await agent.patch(path, json=body)
        assert (answer.status_code, rules(answer)) == (400, {"email": "Binding"})
    for body in ({"mail": "a@example.com"}, {"patientId": "x"}):
        answer = await agent.patch(path, json=body)
        assert (answer.status_code, rules(answer)) == (422, {next(iter(body)): "unknown", "$": "required"})


async def test_null_is_nothing_given(world: World) -> None:
    agent = await world.client()
    optional = await agent.post(
        "/api/patients", json={**ADA, "firstName": "Augusta", "email": None, "confirmationToken": None}
    )
    assert optional.status_code == 428
    assert "email" not in optional.json()["readBack"]
    required = await agent.post(MATCH, json={**ADA, "dob": None})
    assert (required.status_code, rules(required)) == (422, {"dob": "required"})


async def test_a_field_belongs_where_its_operation_has_it(world: World) -> None:
    agent = await world.client()
    in_query = await agent.post(MATCH, params={"firstName": "Ada"}, json=ADA)
    assert (in_query.status_code, rules(in_query)) == (422, {"firstName": "unknown"})
    patient = await patient_id(agent)
    in_body = await agent.patch(f"/api/patients/{patient}", json={"patientId": patient, "email": "a@example.com"})
    assert (in_body.status_code, rules(in_body)) == (422, {"patientId": "unknown"})


async def test_a_repeated_property_is_a_bad_request_that_names_the_field(world: World) -> None:
    agent = await world.client()
    for body, expected in (
        (b'{"firstName":"Eve","firstName":"Ada","lastName":"L","phone":"0199"}',
         {"firstName": "Binding", "dob": "required"}),
        (b'{"firstName":"A:","firstName":"A:","DOB":"1985-12-10","dob":"1985-12-10","lastName":"L","phone":"0199"}',
         {"firstName": "Binding", "dob": "Binding"}),
        (b'{"foo":1,"foo":1,"firstName":"A","lastName":"L","phone":"0199","dob":"1985-12-10"}', {"foo": "Binding"}),
        (b'{"Foo":1,"foo":1,"firstName":"A","lastName":"L","phone":"0199","dob":"1985-12-10"}',
         {"Foo": "unknown", "foo": "Binding"}),
        (b'{"firstName":{"x":"Eve","x":"Ada"},"lastName":"L","phone":"0199","dob":"1985-12-10"}',
         {"firstName": "Binding", "x": "Binding"}),
    ):  # fmt: skip
        answer = await agent.post(MATCH, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, rules(answer)) == (400, expected), body
        assert "Eve" not in answer.text
        assert "Ada" not in answer.text
