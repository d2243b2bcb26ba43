"""App cards: what hosts are offered, and a token that only the card gets where the practice demands it."""

import httpx
import orjson
import pytest

from frontdesk.operations import OPERATIONS
from tests.assistants.connecting import connected
from tests.console.signing_in import signed_in
from tests.doors.elicitation_hosts import CARDS, FORMS, modern, open_call, session_of
from tests.doors.mcp_speech import HANDSHAKE, MODERN, error, result, send
from tests.doors.test_elicitation import booked, booking
from tests.engine.test_consent import demand, recorded
from tests.support.world import World

TOOL = "book_appointment"
CONFIRM, SLOTS = "ui://frontdesk/confirm.html", "ui://frontdesk/slots.html"


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    await demand(world, bookAppointment="card", createPatient="elicitation")
    return await world.client(trusted_to_ask=True)


async def test_only_the_card_gets_the_token_and_only_its_button_books(world: World, agent: httpx.AsyncClient) -> None:
    wanted = await booking(agent)
    proposed = await modern(agent, TOOL, wanted, CARDS)
    shown = proposed["_meta"]["frontdesk/card"]
    token = shown["confirmationToken"]
    assert (shown["tool"], shown["title"]) == (TOOL, "Book an appointment")
    assert shown["lines"][:3] == [
        ["Patient", "Ada Lovelace"],
        ["When", "Monday, 16 November 2026, 09:00-09:15 (America/New_York)"],
        ["With", "Dr. Robert Chen"],
    ]
    seen_by_model = orjson.dumps([proposed["content"], proposed["structuredContent"]]).decode()
    assert token not in seen_by_model
    assert token.removeprefix("card-") not in seen_by_model
    assert "confirmationToken" not in seen_by_model
    assert proposed["content"][0]["text"].startswith("NOTHING HAS BEEN CHANGED YET.")

    # A model that goes on by itself: without a token, with a made-up one, with that of another write.
    again = await modern(agent, TOOL, wanted, CARDS)
    assert again["structuredContent"]["code"] == "confirmation_required"
    for made_up in ("card-" + "0" * 32, token.removeprefix("card-"), "0" * 32, "elicitation-" + "0" * 32):
        refused = await modern(agent, TOOL, {**wanted, "confirmationToken": made_up}, CARDS)
        assert refused["structuredContent"]["code"] == "confirmation_required"
    other = {**await booking(agent, at=3), "confirmationToken": token}
    assert (await modern(agent, TOOL, other, CARDS))["structuredContent"]["code"] == "confirmation_mismatch"
    assert (await modern(agent, TOOL, wanted, FORMS))["structuredContent"]["code"] == "consent_required"
    assert await booked(world) == 0

    pressed = await modern(agent, TOOL, {**wanted, "confirmationToken": token}, CARDS)
    appointment = pressed["structuredContent"]["appointmentId"]
    assert (await recorded(world, appointment))[-1] == (TOOL, "executed", "card")
    assert await booked(world) == 1


async def test_earlier_hosts_declare_cards_when_they_connect(world: World, agent: httpx.AsyncClient) -> None:
    session = await session_of(agent, CARDS)
    async with open_call(world.transport.app, agent, session, TOOL, await booking(agent)) as call:
        shown = call.messages[0]["result"]["_meta"]["frontdesk/card"]
    assert shown["confirmationToken"].startswith("card-")


async def test_cards_are_offered_to_those_who_can_use_them(world: World, agent: httpx.AsyncClient) -> None:
    """The contract's list for a client with credentials of its own; an assistant, or a practice that demands more."""
    assistant = (await connected(world, await signed_in(world, "admin"))).http
    plain = await world.client("other")
    for version in (HANDSHAKE[-1], MODERN):
        for client in (agent, assistant):
            tools = {tool["name"]: tool for tool in (await result(client, "tools/list", version=version))["tools"]}
            cards = {name: tool["_meta"]["ui"]["resourceUri"] for name, tool in tools.items() if "_meta" in tool}
            writes = {each.name for each in OPERATIONS if each.kind == "write"} & tools.keys()
            assert cards == {**dict.fromkeys(writes, CONFIRM), "search_slots": SLOTS, "find_first_available": SLOTS}
            assert all(tool["icons"][0]["src"].startswith("http://test/") for tool in tools.values())
            listed = (await result(client, "resources/list", version=version))["resources"]
            assert [resource["uri"] for resource in listed] == [CONFIRM, SLOTS]
            assert (await result(client, "resources/templates/list", version=version))["resourceTemplates"] == []
            for uri in (CONFIRM, SLOTS):
                [document] = (await result(client, "resources/read", {"uri": uri}, version))["contents"]
                assert document["mimeType"] == "text/html;profile=mcp-app"
                assert "default-src 'none'" in document["text"]
                assert "http://" not in document["text"]
                assert "https://" not in document["text"]
            unknown = await send(client, "resources/read", {"uri": "ui://frontdesk/../x"}, version)
            expected = (400, -32602) if version == MODERN else (200, -32002)
            assert error(unknown, expected[0])["code"] == expected[1]
        kept = await result(plain, "tools/list", version=version)
        assert not any("_meta" in tool or "icons" in tool for tool in kept["tools"])
        refused = await send(plain, "resources/list", None, version)
        assert error(refused, 404 if version == MODERN else 200)["code"] == -32601
    found = await result(agent, "server/discover", version=MODERN)
    assert found["capabilities"] == {"tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/ui": {}}}
    assert found["cacheScope"] == "private"


async def test_a_card_of_an_assistant_without_a_demand_uses_the_token_of_the_text(world: World) -> None:
    assistant = (await connected(world, await signed_in(world, "admin"))).http
    agent = await world.client()
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    await modern(assistant, "match_patient", person)
    wanted = await booking(agent)
    proposed = await modern(assistant, TOOL, wanted, CARDS)
    assert "confirmationToken" not in proposed["_meta"]["frontdesk/card"]
    token = proposed["structuredContent"]["confirmationToken"]
    done = await modern(assistant, TOOL, {**wanted, "confirmationToken": token}, CARDS)
    assert (await recorded(world, done["structuredContent"]["appointmentId"]))[-1][2] == "token"
