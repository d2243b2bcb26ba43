"""The MCP door on the wire: revisions, frames, and the documented answer to everything that is wrong with a request."""

import base64
from typing import Any

import httpx
import orjson
import pytest
from mcp_types import jsonrpc
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from frontdesk.doors.mcp import messages
from tests.doors.mcp_speech import (
    ACCEPT,
    EVERY,
    HANDSHAKE,
    META,
    MODERN,
    call,
    error,
    framed,
    headers,
    problem,
    request,
    result,
    send,
)
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


def test_codes_and_revisions_are_those_of_the_sdk() -> None:
    for name in (
        "PARSE_ERROR", "INVALID_REQUEST", "METHOD_NOT_FOUND", "INVALID_PARAMS", "HEADER_MISMATCH",
        "UNSUPPORTED_PROTOCOL_VERSION",
    ):  # fmt: skip
        assert getattr(messages, name) == getattr(jsonrpc, name)
    assert messages.MODERN_VERSIONS == MODERN_PROTOCOL_VERSIONS
    assert set(messages.HANDSHAKE_VERSIONS) == set(HANDSHAKE_PROTOCOL_VERSIONS) - {"2024-11-05"}


# Revisions


@pytest.mark.parametrize(
    ("asked", "given"),
    [*((version, version) for version in HANDSHAKE), ("2024-11-05", HANDSHAKE[-1]), (MODERN, HANDSHAKE[-1])],
)
async def test_the_handshake_agrees_on_a_revision(agent: httpx.AsyncClient, asked: str, given: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    answer = await agent.post("/mcp", json=request("initialize", params), headers=ACCEPT)
    found = framed(answer)["result"]
    assert found["protocolVersion"] == given
    assert found["capabilities"] == {"tools": {}}
    assert found["serverInfo"]["name"] == "frontdesk"
    assert ("icons" in found["serverInfo"]) == (given == HANDSHAKE[-1])
    assert "mcp-session-id" not in answer.headers


async def test_a_handshake_without_a_revision_is_refused(agent: httpx.AsyncClient) -> None:
    assert error(await send(agent, "initialize", {"protocolVersion": 3}), 200)["code"] == messages.INVALID_PARAMS


async def test_discovery_tells_the_revisions_and_may_be_shared(agent: httpx.AsyncClient) -> None:
    found = await result(agent, "server/discover", version=MODERN)
    assert found["supportedVersions"] == [MODERN, *reversed(HANDSHAKE)]
    assert found["capabilities"] == {"tools": {}}
    server = found["_meta"][f"{META}serverInfo"]
    assert (server["name"], server["websiteUrl"]) == ("frontdesk", "http://test/docs")
    assert (await agent.get(server["icons"][0]["src"])).headers["content-type"] == "image/svg+xml"
    assert (found["resultType"], found["cacheScope"]) == ("complete", "public")
    assert found["ttlMs"] > 0


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_ping_is_answered_where_the_revision_has_it(agent: httpx.AsyncClient, version: str) -> None:
    assert await result(agent, "ping", version=version) == {}


@pytest.mark.parametrize("version", EVERY)
async def test_a_tool_call_works_in_every_revision(agent: httpx.AsyncClient, version: str) -> None:
    found = await call(agent, "get_practice", version)
    assert found["structuredContent"]["name"] == "Harbor Family Medicine"
    assert orjson.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert found["isError"] is False
    assert ("resultType" in found) == (version == MODERN)


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/list", "prompts/list", "subscriptions/listen", "nonsense"],
)
async def test_a_method_that_the_modern_revision_lacks_is_404(agent: httpx.AsyncClient, method: str) -> None:
    answer = await send(agent, method, version=MODERN)
    assert error(answer, 404)["code"] == messages.METHOD_NOT_FOUND
    assert answer.json()["id"] == "r-1"


@pytest.mark.parametrize(
    "method", ["server/discover", "resources/list", "prompts/list", "completion/complete", "nonsense"]
)
async def test_a_method_that_the_handshake_revisions_lack_is_a_framed_error(
    agent: httpx.AsyncClient, method: str
) -> None:
    assert error(await send(agent, method), 200)["code"] == messages.METHOD_NOT_FOUND


# What modern requests must say twice


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"MCP-Protocol-Version": HANDSHAKE[-1]}, messages.HEADER_MISMATCH),
        ({"MCP-Protocol-Version": None}, messages.HEADER_MISMATCH),
        ({"Mcp-Method": None}, messages.HEADER_MISMATCH),
        ({"Mcp-Method": "TOOLS/CALL"}, messages.HEADER_MISMATCH),
        ({"Mcp-Name": None}, messages.HEADER_MISMATCH),
        ({"Mcp-Name": "cancel_appointment"}, messages.HEADER_MISMATCH),
        ({"Mcp-Name": "=?base64?not base64?="}, messages.HEADER_MISMATCH),
    ],
)
async def test_headers_that_contradict_the_body_are_refused(
    agent: httpx.AsyncClient, changed: dict[str, str | None], code: int
) -> None:
    message = request("tools/call", {"name": "get_practice", "arguments": {}}, MODERN)
    sent = {name: value for name, value in (headers(message, MODERN) | changed).items() if value is not None}
    answer = await agent.post("/mcp", json=message, headers=sent)
    assert error(answer, 400)["code"] == code
    assert answer.json()["id"] == "r-1"


async def test_a_repeated_routing_header_is_refused(agent: httpx.AsyncClient) -> None:
    message = request("tools/list", version=MODERN)
    sent = [*headers(message, MODERN).items(), ("Mcp-Method", "tools/list")]
    assert error(await agent.post("/mcp", json=message, headers=sent), 400)["code"] == messages.HEADER_MISMATCH


async def test_a_name_may_come_encoded(agent: httpx.AsyncClient) -> None:
    message = request("tools/call", {"name": "get_practice"}, MODERN)
    encoded = f"=?base64?{base64.b64encode(b'get_practice').decode()}?="
    framed(await agent.post("/mcp", json=message, headers=headers(message, MODERN) | {"Mcp-Name": encoded}))


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_a_modern_request_without_its_metadata_is_refused(agent: httpx.AsyncClient, missing: str) -> None:
    message = request("tools/list", version=MODERN)
    del message["params"]["_meta"][META + missing]
    found = error(await agent.post("/mcp", json=message, headers=headers(message, MODERN)), 400)
    assert found["code"] == messages.INVALID_PARAMS
    assert missing in found["message"]


async def test_a_modern_client_need_not_name_itself(agent: httpx.AsyncClient) -> None:
    message = request("tools/list", version=MODERN)
    del message["params"]["_meta"][f"{META}clientInfo"]
    framed(await agent.post("/mcp", json=message, headers=headers(message, MODERN)))


@pytest.mark.parametrize("version", ["2027-01-01", "2024-11-05", "v9"])
async def test_an_unknown_revision_is_told_the_known_ones(agent: httpx.AsyncClient, version: str) -> None:
    modern = request("tools/list", version=MODERN)
    modern["params"]["_meta"][f"{META}protocolVersion"] = version
    named = {**ACCEPT, "MCP-Protocol-Version": version}
    for message in (modern, request("tools/list"), {"jsonrpc": "2.0", "method": "notifications/initialized"}):
        answer = await agent.post("/mcp", json=message, headers={**named, "Mcp-Method": "tools/list"})
        found = error(answer, 400)
        assert found["code"] == messages.UNSUPPORTED_PROTOCOL_VERSION
        assert found["data"] == {"supported": [MODERN, *reversed(HANDSHAKE)], "requested": version}


# Notifications, methods of HTTP


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "tools/call"])
async def test_a_notification_is_accepted_and_nothing_is_executed(
    agent: httpx.AsyncClient, world: World, method: str
) -> None:
    params = {"name": "match_patient", "arguments": {}}
    answer = await agent.post("/mcp", json={"jsonrpc": "2.0", "method": method, "params": params}, headers=ACCEPT)
    assert (answer.status_code, answer.content) == (202, b"")
    assert answer.headers["x-svc-trace-id"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_only_post_is_allowed(agent: httpx.AsyncClient, method: str) -> None:
    answer = await agent.request(method, "/mcp", headers=ACCEPT)
    assert problem(answer, 405) == "method_not_allowed"
    assert answer.headers["allow"] == "POST"


# Requests that cannot be read


UNREADABLE = [
    (b"", messages.PARSE_ERROR),
    (b"{", messages.PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', messages.PARSE_ERROR),
    (b"\xff\xfe", messages.PARSE_ERROR),
    (b"[" * 5000, messages.PARSE_ERROR),
    (b"[]", messages.INVALID_REQUEST),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', messages.INVALID_REQUEST),
    (b'"ping"', messages.INVALID_REQUEST),
    (b"{}", messages.INVALID_REQUEST),
    (b'{"id": 1, "method": "ping"}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', messages.INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', messages.INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}', messages.INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 1}}', messages.INVALID_PARAMS),
]


async def test_a_body_that_is_no_single_request_is_refused(agent: httpx.AsyncClient) -> None:
    for body, code in UNREADABLE:
        answer = await agent.post("/mcp", content=body, headers={**ACCEPT, "Content-Type": "application/json"})
        assert error(answer, 400)["code"] == code, body[:80]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"name": "drop_all_tables"}, "Unknown tool"),
        ({"name": ["get_practice"]}, "Unknown tool"),
        ({}, "Unknown tool"),
        ({"name": "get_practice", "arguments": []}, "arguments"),
        ({"name": "get_practice", "arguments": "all"}, "arguments"),
    ],
)
async def test_a_malformed_tool_call_is_a_protocol_error(
    agent: httpx.AsyncClient, params: dict[str, Any], message: str
) -> None:
    for version in (HANDSHAKE[-1], MODERN):
        if version == MODERN and not isinstance(params.get("name"), str):
            continue  # the headers already disagree
        found = error(await send(agent, "tools/call", params, version), 400 if version == MODERN else 200)
        assert found["code"] == messages.INVALID_PARAMS
        assert message in found["message"]


async def test_the_tools_are_on_one_page(agent: httpx.AsyncClient) -> None:
    found = error(await send(agent, "tools/list", {"cursor": "page-2"}), 200)
    assert found["code"] == messages.INVALID_PARAMS


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html, image/*", "application/xml;q=0.9", f"image/*{',' * 1000}*/*"]
)
async def test_a_client_that_takes_no_event_stream_is_refused(agent: httpx.AsyncClient, accept: str) -> None:
    answer = await agent.post("/mcp", json=request("ping"), headers={"Accept": accept})
    assert problem(answer, 406) == "not_acceptable"


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream", "application/json, text/*;q=0.5"])
async def test_a_client_that_takes_event_streams_is_served(agent: httpx.AsyncClient, accept: str) -> None:
    framed(await agent.post("/mcp", json=request("ping"), headers={"Accept": accept}))


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
async def test_a_body_that_is_not_json_is_refused(agent: httpx.AsyncClient, content_type: str) -> None:
    answer = await agent.post("/mcp", content=b"{}", headers={**ACCEPT, "Content-Type": content_type})
    assert problem(answer, 415) == "unsupported_media_type"


async def test_a_body_that_is_too_large_is_refused_and_the_connection_closed(agent: httpx.AsyncClient) -> None:
    message = request("tools/call", {"name": "get_practice", "arguments": {"filler": "x" * 70_000}})
    answer = await agent.post("/mcp", json=message, headers=ACCEPT)
    assert problem(answer, 413) == "payload_too_large"
    assert answer.headers["connection"] == "close"


# Repeated properties


async def test_a_repeated_argument_is_refused_even_where_the_answer_is_cached(agent: httpx.AsyncClient) -> None:
    plain = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":{%s}}}'
    headers = {**ACCEPT, "Content-Type": "application/json"}
    for _ in range(2):
        answer = await agent.post("/mcp", content=plain % b'"locationId":1', headers=headers)
        assert framed(answer)["result"]["isError"] is False
    for arguments in (b'"locationId":2,"locationId":1', b'"LocationId":1,"locationId":1'):
        refused = framed(await agent.post("/mcp", content=plain % arguments, headers=headers))["result"]
        problem = refused["structuredContent"]
        assert (refused["isError"], problem["code"], problem["status"]) == (True, "validation", 400)
        assert [(each["field"], each["rule"]) for each in problem["errors"]] == [("locationId", "Binding")]


async def test_a_repeated_property_of_the_message_is_refused(agent: httpx.AsyncClient) -> None:
    headers = {**ACCEPT, "Content-Type": "application/json"}
    for body in (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":{"a":1,"a":2}}}}',
    ):
        answer = await agent.post("/mcp", content=body, headers=headers)
        assert error(answer, 200)["code"] == -32600
    twice = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_slot","name":"get_practice"}}'
    refused = framed(await agent.post("/mcp", content=twice, headers=headers))["result"]
    assert [(each["field"], each["rule"]) for each in refused["structuredContent"]["errors"]] == [("name", "Binding")]


async def test_arguments_that_are_nested_too_deeply_cannot_be_read(agent: httpx.AsyncClient) -> None:
    for depth in (100, 300, 900):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":%s}}' % deep
        )
        answer = await agent.post("/mcp", content=body, headers={**ACCEPT, "Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
