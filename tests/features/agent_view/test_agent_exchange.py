"""Exchanges with our own doors in this process: they are what a caller from outside would have had."""

import orjson

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.app import build_app
from frontdesk.features.agent_view.exchange import Exchange, SentMessage, as_curl, exchange, mcp_request, rest_request
from frontdesk.features.agent_view.messages import panes
from frontdesk.operations import OPERATIONS
from tests.console.signing_in import ACCESS_TOKEN
from tests.support.world import World, patient_id, slots

URL = "http://test"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OPERATION = {operation.name: operation for operation in OPERATIONS}


async def send(world: World, sent: SentMessage, scopes: tuple[str, ...] = SCOPES) -> Exchange:
    client = await world.client()
    proven = AuthenticatedClient(client.headers["X-Test-Client"], "harbor", "agent", scopes)
    token = world.service.tokens.issue(proven, scopes, lifetime=60).text
    return await exchange(build_app(world.service), URL, token, sent)


async def test_both_doors_answer_alike(world: World) -> None:
    operation = OPERATION["list_providers"]
    arguments = {"name": "Bob Chen", "locationId": 1}
    rest = await send(world, rest_request(operation, arguments, trace=TRACE))
    mcp = await send(world, mcp_request(operation, arguments, trace=TRACE, number=7))
    assert rest.status == mcp.status == 200
    assert rest.answer == mcp.answer
    assert rest.answer["items"][0]["id"] == 10
    assert rest.sent.target == "/api/providers?name=Bob+Chen&locationId=1"
    assert mcp.is_stream
    assert mcp.frame["id"] == 7
    assert dict(rest.headers)["x-svc-trace-id"] == TRACE.split("-")[1]
    assert "ratelimit" in dict(rest.headers), "the message went through the gateway"


async def test_a_write_is_challenged_on_both_doors(world: World) -> None:
    client = await world.client()
    arguments = {"patientId": await patient_id(client), "slotId": (await slots(client))[0]["id"]}
    operation = OPERATION["book_appointment"]
    rest = await send(world, rest_request(operation, arguments, trace=TRACE))
    mcp = await send(world, mcp_request(operation, arguments, trace=TRACE, number=1))
    assert (rest.status, rest.reason) == (428, "Precondition Required")
    assert mcp.status == 200
    assert rest.answer["readBack"] == mcp.answer["readBack"]


async def test_ids_stand_in_the_path_and_the_rest_in_the_body(world: World) -> None:
    arguments = {"appointmentId": "apt_0123456789ABCDEFGHIJKL", "reason": "it's off"}
    sent = rest_request(OPERATION["cancel_appointment"], arguments, trace=TRACE)
    assert sent.target == "/api/appointments/apt_0123456789ABCDEFGHIJKL/cancel"
    assert orjson.loads(sent.body) == {"reason": "it's off"}
    assert (await send(world, sent)).status == 404


async def test_what_was_typed_cannot_leave_its_place_in_an_address(world: World) -> None:
    sent = rest_request(OPERATION["get_slot"], {"slotId": '../practice?x="$(id)`#'}, trace=TRACE)
    assert sent.target == "/api/slots/..%2Fpractice%3Fx%3D%22%24%28id%29%60%23"
    assert (await send(world, sent)).status == 404


async def test_a_missing_scope_is_refused_as_it_is_in_earnest(world: World) -> None:
    sent = rest_request(OPERATION["search_slots"], {}, trace=TRACE)
    answered = await send(world, sent, scopes=("practices:read",))
    assert (answered.status, answered.answer["code"]) == (403, "forbidden_scope")


async def test_nothing_that_is_shown_holds_the_access_token(world: World) -> None:
    operation = OPERATION["get_capabilities"]
    rest = await send(world, rest_request(operation, {}, trace=TRACE))
    mcp = await send(world, mcp_request(operation, {}, trace=TRACE, number=1))
    shown = repr(panes(rest, mcp, URL, ("REST", "MCP"), ("", "")))
    assert "Bearer $TOKEN" in shown
    assert not ACCESS_TOKEN.search(shown)


async def test_lines_that_both_messages_have_are_marked(world: World) -> None:
    operation = OPERATION["list_locations"]
    rest = await send(world, rest_request(operation, {}, trace=TRACE))
    mcp = await send(world, mcp_request(operation, {}, trace=TRACE, number=1))
    left, right = panes(rest, mcp, URL, ("REST", "MCP"), ("", ""))
    marked, marked_too = (
        [f"{line.name}{line.text}".removesuffix(",") for line in pane.response if line.same] for pane in (left, right)
    )
    assert '"name": "Downtown"' in marked
    assert marked == marked_too, "an id of the envelope is none of a location, even where it has the same number"


def test_a_copied_command_is_safe_to_paste() -> None:
    arguments = {"firstName": "O'Brien $(id)", "lastName": "`x`", "phone": '"', "dob": "1990-01-01"}
    sent = rest_request(OPERATION["match_patient"], arguments, trace=TRACE, simulate="not_found")
    text = as_curl(URL, sent)
    assert '-H "Authorization: Bearer $TOKEN"' in text
    assert '-H "Frontdesk-Simulate: not_found"' in text
    assert "O'\\''Brien $(id)" in text, "inside single quotes a shell reads nothing"
    assert "traceparent" not in text
