"""Tool calls that came before are known by their text: but for their id they say the same, and nothing else does."""

import json
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.doors.arrival import Head
from frontdesk.doors.mcp import McpDoor, repeats
from frontdesk.doors.mcp.door import _tool_call
from frontdesk.doors.mcp.messages import read_message
from frontdesk.doors.mcp.repeats import KnownCalls, ToolCall
from frontdesk.doors.mcp.tools import TOOLS
from frontdesk.settings import Settings
from tests.doors.mcp_speech import EVERY, MODERN, error, framed, headers, request
from tests.world import World

HEAD = Head(1, {}, 0, None, None, None)
ids = st.integers(-(10**18) + 1, 10**18 - 1) | st.text(max_size=8)
arguments = st.dictionaries(st.text(max_size=4) | st.just("id"), st.text(max_size=4) | st.just("id"), max_size=3)


def bodies(message_id: int | str, given: dict[str, str], last: bool, indent: int | None) -> bytes:
    start = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "list_providers", "arguments": given}}
    message: dict[str, Any] = {**start, "id": message_id} if last else {"id": message_id, **start}
    return json.dumps(message, indent=indent, ensure_ascii=False).encode()


def kept(calls: KnownCalls, body: bytes, head: Head = HEAD) -> None:
    calls.keep(head, body, read(body)[0])


def read(body: bytes) -> tuple[ToolCall, str | int | None]:
    message = read_message(body, {}, [])
    call = _tool_call(message, {})
    assert call is not None
    return call, message.id


def found(calls: KnownCalls, body: bytes, head: Head = HEAD) -> tuple[ToolCall, str | int | None] | None:
    call, message_id = calls.find(head, body)
    return None if call is None else (call, orjson.loads(message_id))


@given(ids, ids, arguments, arguments, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_known_again_is_what_would_have_been_read(
    first: int | str, second: int | str, given: dict[str, str], other: dict[str, str], last: bool, indent: int | None
) -> None:
    calls = KnownCalls()
    kept(calls, bodies(first, given, last, indent))
    for body in (bodies(second, given, last, indent), bodies(second, other, last, indent)):
        assert found(calls, body) in (None, read(body))


@pytest.mark.parametrize("message_id", [0, 7, -7, 123456789, "", "a b", "7f3c-1"])
@pytest.mark.parametrize("last", [True, False])
def test_the_same_call_is_known_under_any_ordinary_id(message_id: int | str, last: bool) -> None:
    calls = KnownCalls()
    kept(calls, bodies(1, {"name": "Ann"}, last, None))
    call = found(calls, bodies(message_id, {"name": "Ann"}, last, None))
    assert call is not None
    assert call[1] == message_id
    assert type(call[1]) is type(message_id)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":{"id":"1"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_providers","arguments":{"a":"id"}}}',
        b'{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"tools/call","params":{"name":"list_providers"}}',
        b'{"jsonrpc":"2.0","\\u0069d":1,"method":"tools/call","params":{"name":"list_providers"}}',
        b'{"jsonrpc":"2.0","id":"a\\"b","method":"tools/call","params":{"name":"list_providers"}}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 19 + b',"method":"tools/call","params":{"name":"list_providers"}}',
    ],
    ids=["another id", "id as a value", "id spelled twice", "id spelled otherwise", "escaped id", "huge id"],
)
def test_what_could_be_mistaken_is_always_read(body: bytes) -> None:
    calls = KnownCalls()
    kept(calls, body)
    assert found(calls, body) is None


def test_what_is_no_json_is_never_known() -> None:
    calls = KnownCalls()
    kept(calls, b'{"id": 1, "jsonrpc": "2.0", "method": "tools/call", "params": {"name": "list_providers"}}')
    written = b'{"id":%b, "jsonrpc": "2.0", "method": "tools/call", "params": {"name": "list_providers"}}'
    assert all(found(calls, written % value) for value in (b" 1", b"\t1", b"\n1"))
    assert not any(found(calls, written % value) for value in (b"\x0b1", b"\x0c1", b"01", b"1\x0b", b"+1", b"-0"))


def test_a_call_is_known_only_with_the_headers_it_came_with() -> None:
    calls = KnownCalls()
    body = bodies(1, {}, False, None)
    kept(calls, body)
    assert found(calls, body) is not None
    assert found(calls, body, HEAD._replace(number=2)) is None
    kept(calls, body, HEAD._replace(number=None))
    assert found(calls, body, HEAD._replace(number=None)) is None


def test_only_a_bounded_number_of_small_calls_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST", 3)
    calls = KnownCalls()
    for name in "abcde":
        kept(calls, bodies(1, {"name": name}, False, None))
    assert [found(calls, bodies(1, {"name": name}, False, None)) is not None for name in "abcde"] == [
        False, False, True, True, True,
    ]  # fmt: skip
    kept(calls, bodies(1, {"name": "x" * 2000}, False, None))
    assert found(calls, bodies(1, {"name": "x" * 2000}, False, None)) is None


async def post(client: httpx.AsyncClient, message: dict[str, Any], named: dict[str, str]) -> httpx.Response:
    return await client.post("/mcp", json=message, headers=named)


@pytest.mark.parametrize("version", EVERY)
async def test_every_call_gets_its_own_id_and_the_same_answer(world: World, version: str) -> None:
    agent = await world.client()
    message = request("tools/call", {"name": "list_providers", "arguments": {}}, version)
    named = headers(message, version)
    answers = [framed(await post(agent, {**message, "id": one}, named)) for one in (1, 2, "three", 2)]
    assert [answer["id"] for answer in answers] == [1, 2, "three", 2]
    assert len({orjson.dumps(answer["result"]) for answer in answers}) == 1
    assert answers[0]["result"]["structuredContent"]["items"]


async def test_a_known_call_under_headers_that_contradict_it_is_refused(world: World) -> None:
    agent, version = await world.client(), MODERN
    message = request("tools/call", {"name": "list_providers", "arguments": {}}, version)
    named = headers(message, version)
    assert "Mcp-Name" in named
    for _ in range(2):
        framed(await post(agent, message, named))
        error(await post(agent, message, {**named, "Mcp-Name": "list_locations"}), 400)


async def test_a_known_call_of_somebody_without_a_token_is_refused(world: World) -> None:
    agent, version = await world.client(), MODERN
    message = request("tools/call", {"name": "list_providers", "arguments": {}}, version)
    named = headers(message, version)
    framed(await post(agent, message, named))
    assert (await post(world.anonymous(), message, named)).status_code == 401


@pytest.mark.parametrize("stray", [{"patientName": "Ada Lovelace"}, {"name": 7}])
async def test_a_call_that_was_refused_is_not_kept(world: World, stray: dict[str, Any]) -> None:
    agent, calls = await world.client(), KnownCalls()
    door = McpDoor(world.service.engine, Settings(base_url="http://test"))
    door._known = calls
    http = httpx.AsyncClient(
        transport=httpx.ASGITransport(app=door),  # type: ignore[arg-type]
        base_url="http://test",
        headers={"Authorization": agent.headers["Authorization"]},
    )
    async with http:
        for arguments, known in ((stray, 0), ({}, 1)):
            message = request("tools/call", {"name": "list_providers", "arguments": arguments}, EVERY[-1])
            framed(await post(http, message, headers(message, EVERY[-1])))
            assert len(calls._kept) == known
        http.headers["Authorization"] = "Bearer nobody"
        message = request("tools/call", {"name": "list_locations", "arguments": {}}, EVERY[-1])
        assert (await post(http, message, headers(message, EVERY[-1]))).status_code == 401
        assert len(calls._kept) == 1


async def test_what_is_said_about_people_is_never_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ToolCall] = []
    keep = KnownCalls.keep

    def watched(calls: KnownCalls, head: Head, body: bytes, call: ToolCall) -> None:
        before = len(calls._kept)
        keep(calls, head, body, call)
        if len(calls._kept) > before:
            seen.append(call)

    monkeypatch.setattr(KnownCalls, "keep", watched)
    agent, version = await world.client(), EVERY[-1]
    for tool in TOOLS.values():
        message = request("tools/call", {"name": tool.name, "arguments": tool.example}, version)
        await post(agent, message, headers(message, version))
    assert seen
    assert all(not call.operation.reads_phi and call.operation.kind == "read" for call in seen)
