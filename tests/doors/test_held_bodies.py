"""Bodies that take their time: what their sender may do is decided when they have arrived."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import httpx
import orjson
import pytest

from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.records import change_client, disable_client, revoke_tokens
from frontdesk.app import build_app
from frontdesk.store.practices import set_suspended
from tests.doors.elicitation_hosts import modern_call
from tests.doors.mcp_speech import MODERN, headers, request
from tests.engine.test_consent import demand
from tests.support.held_bodies import HeldRequest, held_post
from tests.support.world import World, patient_id, slots

JSON = {"Content-Type": "application/json"}
NOBODY = {"firstName": "Mal", "lastName": "Lory", "phone": "+1 555 010 7777", "dob": "1980-01-01"}
FHIR_NOBODY = {
    "resourceType": "Patient",
    "name": [{"family": "Lory", "given": ["Mal"]}],
    "telecom": [{"system": "phone", "value": "+1 555 010 7777"}],
    "birthDate": "1980-01-01",
}
Send = Callable[[httpx.AsyncClient], Awaitable[HeldRequest]]


async def rest(client: httpx.AsyncClient) -> HeldRequest:
    return await held_post(client, "/api/patients", orjson.dumps(NOBODY), JSON)


async def mcp(client: httpx.AsyncClient) -> HeldRequest:
    call = request("tools/call", {"name": "create_patient", "arguments": NOBODY})
    return await held_post(client, "/mcp", orjson.dumps(call), JSON | headers(call, "2025-11-25"))


async def mcp_read(client: httpx.AsyncClient) -> HeldRequest:
    call = request("tools/call", {"name": "match_patient", "arguments": NOBODY})
    return await held_post(client, "/mcp", orjson.dumps(call), JSON | headers(call, "2025-11-25"))


async def fhir(client: httpx.AsyncClient) -> HeldRequest:
    kind = {"Content-Type": "application/fhir+json"}
    return await held_post(client, "/fhir/R4/Patient", orjson.dumps(FHIR_NOBODY), kind)


async def fhir_search(client: httpx.AsyncClient) -> HeldRequest:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"family=Lory&given=Mal&birthdate=1980-01-01&phone=%2B15550107777"
    return await held_post(client, "/fhir/R4/Patient/_search", body, kind)


@pytest.fixture
async def served(world: World) -> AsyncIterator[World]:
    """The world with the FHIR door open."""
    service = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    opened = World(service, world.clock, httpx.ASGITransport(app=build_app(service)))
    yield opened
    await opened.close()


async def end(world: World, client_id: str) -> None:
    await revoke_tokens(world.database, client_id)


async def disable(world: World, client_id: str) -> None:
    await disable_client(world.database, client_id)


async def narrow(world: World, client_id: str) -> None:
    await change_client(world.database, client_id, scopes=["practices:read"])


async def suspend(world: World, _client_id: str) -> None:
    await set_suspended(world.database, "harbor", suspended=True)


@pytest.mark.parametrize("send", [rest, mcp, mcp_read, fhir, fhir_search])
@pytest.mark.parametrize(("change", "status"), [(disable, 401), (end, 401), (narrow, 401), (suspend, 403)])
async def test_a_client_that_loses_its_access_meanwhile_does_nothing(
    served: World, send: Send, change: Callable[[World, str], Awaitable[None]], status: int
) -> None:
    client = await served.client(grant="integration")
    held = await send(client)
    await change(served, client.headers["X-Test-Client"])
    served.service.authenticator.on_change("client", client.headers["X-Test-Client"])
    answer = await held.let_go()
    assert answer.status_code == status, answer.text
    stored = "SELECT count(*) FROM patient WHERE last_name = 'Lory'"
    async with served.database.transaction(1) as connection:
        assert await connection.fetchval(stored) == 0


@pytest.mark.parametrize("send", [rest, mcp, mcp_read, fhir, fhir_search])
async def test_a_client_whose_status_has_only_been_read_again_goes_on(served: World, send: Send) -> None:
    client = await served.client(grant="integration")
    held = await send(client)
    served.service.authenticator.on_change("client", client.headers["X-Test-Client"])
    answer = await held.let_go()
    assert answer.status_code in (200, 201), answer.text


async def test_the_user_of_a_host_is_still_asked(world: World) -> None:
    await demand(world, bookAppointment="elicitation")
    agent = await world.client(trusted_to_ask=True)
    wanted = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    call = modern_call("book_appointment", wanted)
    held = await held_post(agent, "/mcp", orjson.dumps(call), JSON | headers(call, MODERN))
    world.service.authenticator.on_change("client", agent.headers["X-Test-Client"])
    assert '"input_required"' in (await held.let_go()).text


async def test_a_request_without_a_body_is_looked_up_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client, lookup = await world.client(), Authenticator.lookup
    looked_up: list[str] = []

    def counted(self: Authenticator, token: str, resource: str = "") -> Caller | None:
        looked_up.append(token)
        return lookup(self, token, resource)

    monkeypatch.setattr(Authenticator, "lookup", counted)
    assert (await client.get("/api/capabilities")).status_code == 200
    assert len(looked_up) == 1
