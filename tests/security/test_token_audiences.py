"""Tokens for some doors, tried at every door: a door takes those that were requested for it, or for all of them."""

from collections.abc import Sequence
from typing import Any

import httpx
import jwt
import pytest

from frontdesk.access.clients.scopes import every_scope
from tests.assistants.connecting import connected, registered
from tests.console.signing_in import signed_in
from tests.doors.mcp_speech import call, send
from tests.fhir_server.conftest import server
from tests.support.world import World

__all__ = ["server"]
ADDRESS = "http://test"
API, MCP, FHIR = "/api", "/mcp", "/fhir/R4"
EVERYWHERE = {API, MCP, FHIR}
REQUESTS: list[tuple[Sequence[str], set[str]]] = [
    ((), EVERYWHERE),
    ((ADDRESS,), EVERYWHERE),
    ((f"{ADDRESS}/",), EVERYWHERE),
    ((f"{ADDRESS}{API}",), {API}),
    ((f"{ADDRESS}{MCP}",), {MCP}),
    ((f"{ADDRESS}{FHIR}",), {FHIR}),
    ((f"{ADDRESS}{MCP}/",), {MCP}),
    ((f"{ADDRESS}{MCP}?toolset=voice",), {MCP}),
    ((f"{ADDRESS}{API}", f"{ADDRESS}{MCP}"), {API, MCP}),
    ((f"{ADDRESS}{FHIR}", f"{ADDRESS}{API}", f"{ADDRESS}{API}"), {API, FHIR}),
    ((f"{ADDRESS}{MCP}", ADDRESS), EVERYWHERE),
]
UNKNOWN = (
    "https://evil.example/mcp", f"{ADDRESS}.evil.example/mcp", f"{ADDRESS}@evil.example/mcp", f"{ADDRESS}//mcp",
    f"{ADDRESS}/api/patients", f"{ADDRESS}/MCP", f"{ADDRESS}/mcp#x", f"{ADDRESS}/mcp#?x", f"{ADDRESS}/fhir",
    f"{ADDRESS}/console", f"{ADDRESS}/mcp/../api", f"{ADDRESS}:80/mcp", "/mcp", "mcp", "https://test/mcp",
    "HTTP://test/mcp", "http://[", "*",
)  # fmt: skip


async def token_for(world: World, client: httpx.AsyncClient, *resources: str, **more: str) -> httpx.Response:
    client_id = client.headers["X-Test-Client"]
    form: dict[str, Any] = {
        "grant_type": "client_credentials", "client_id": client_id, "client_secret": world.secrets[client_id], **more,
    }  # fmt: skip
    return await world.anonymous().post("/oauth/token", data={**form, "resource": list(resources)})


async def doors_open_to(client: httpx.AsyncClient, *, write: bool = False) -> set[str]:
    """The doors that take the client's token, asked by reads or, with a body, by calls that need one."""
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    by_form = "family=Lovelace&given=Ada&phone=5550100199&birthdate=1985-12-10"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    if write:
        answers = {
            API: await client.post("/api/patients/match", json=ada),
            MCP: await send(client, "tools/call", {"name": "match_patient", "arguments": ada}),
            FHIR: await client.post("/fhir/R4/Patient/_search", content=by_form, headers=form),
        }
    else:
        answers = {
            API: await client.get("/api/practice"),
            MCP: await send(client, "tools/call", {"name": "get_practice", "arguments": {}}),
            FHIR: await client.get("/fhir/R4/Location"),
        }
    for door, answer in answers.items():
        assert answer.status_code in (200, 401), answer.text
        if answer.status_code == 401:
            metadata = f'resource_metadata="{ADDRESS}/.well-known/oauth-protected-resource{door}"'
            assert metadata in answer.headers["www-authenticate"]
            assert "RateLimit" not in answer.headers
    return {door for door, answer in answers.items() if answer.status_code == 200}


@pytest.mark.parametrize(("resources", "doors"), REQUESTS)
async def test_each_door_takes_the_tokens_that_were_requested_for_it(
    server: World, resources: Sequence[str], doors: set[str]
) -> None:
    for grant in ("agent", "integration"):
        client = await server.client(grant=grant)
        answer = await token_for(server, client, *resources)
        assert answer.status_code == 200, answer.text
        token = answer.json()["access_token"]
        audience = jwt.decode(token, options={"verify_signature": False})["aud"]
        named = {audience} if isinstance(audience, str) else set(audience)
        assert named == ({ADDRESS} if doors == EVERYWHERE else {f"{ADDRESS}{door}" for door in doors})
        client.headers["Authorization"] = f"Bearer {token}"
        # Twice: not from memory either, after the right door has checked it.
        for write in (False, True, False, True):
            assert await doors_open_to(client, write=write) == doors


@pytest.mark.parametrize("unknown", UNKNOWN)
async def test_a_resource_that_is_not_ours_gets_no_token(server: World, unknown: str) -> None:
    client = await server.client()
    for resources in ((unknown,), (f"{ADDRESS}/mcp", unknown), (unknown, ADDRESS)):
        answer = await token_for(server, client, *resources)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target"), answer.text
        assert "evil" not in answer.text


async def test_without_a_fhir_server_there_is_no_such_resource(world: World) -> None:
    answer = await token_for(world, await world.client(), f"{ADDRESS}{FHIR}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")


async def test_the_metadata_of_each_door_leads_to_tokens_for_it(server: World) -> None:
    nobody, client = server.anonymous(), await server.client()
    authorization = (await nobody.get("/.well-known/oauth-authorization-server")).json()
    assert authorization["protected_resources"] == [f"{ADDRESS}{door}" for door in (API, MCP, FHIR)]
    for resource in (ADDRESS, *authorization["protected_resources"]):
        door = resource.removeprefix(ADDRESS)
        described = (await nobody.get(f"/.well-known/oauth-protected-resource{door}")).json()
        assert (described["resource"], described["authorization_servers"]) == (resource, [ADDRESS])
        answer = await token_for(server, client, described["resource"], scope=" ".join(described["scopes_supported"]))
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        assert await doors_open_to(client) == ({door} if door else EVERYWHERE)


async def test_a_backend_service_gets_in_with_smart_scopes_and_no_resource(server: World) -> None:
    client = await server.client(grant="integration")
    answer = await token_for(server, client, scope="system/Location.rs")
    client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
    assert (await client.get("/fhir/R4/Location")).status_code == 200


async def test_the_openapi_document_shows_extensions_to_tokens_for_the_api_only(server: World) -> None:
    client = await server.client(scopes=sorted(every_scope()))
    public = (await server.anonymous().get("/openapi/v1.json")).content
    for door, differs in ((API, True), (MCP, False)):
        answer = await token_for(server, client, f"{ADDRESS}{door}")
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        assert ((await client.get("/openapi/v1.json")).content != public) is differs


async def test_a_token_of_an_assistant_stays_for_mcp_whatever_a_refresh_asks_for(server: World) -> None:
    browser = await signed_in(server, role="admin")
    assistant = await connected(server, browser)
    for resource, error in (
        (None, None), (ADDRESS, None), (f"{ADDRESS}{MCP}", None), (f"{ADDRESS}{API}", "invalid_target"),
        (f"{ADDRESS}{FHIR}", "invalid_target"), ("https://evil.example/", "invalid_target"),
    ):  # fmt: skip
        answer = await assistant.refresh(resource=resource)
        assert answer.json().get("error") == error
        if error is None:
            assistant.use(answer.json())
        assert (await call(assistant.http, "get_practice"))["isError"] is False
        for path in ("/api/practice", "/fhir/R4/Location"):
            assert (await assistant.http.get(path)).status_code == 401
    other = await registered(server)
    for resource in (API, FHIR):
        answer = await browser.get("/console/connect", params=other.request(resource=f"{ADDRESS}{resource}"))
        assert answer.status_code == 400


async def test_revoking_a_token_for_mcp_does_not_end_its_client(server: World) -> None:
    """Only tokens of assistants can be revoked at the endpoint, which asks for no credentials."""
    client = await server.client()
    for resources in ((), (f"{ADDRESS}{MCP}",), (f"{ADDRESS}{API}", f"{ADDRESS}{MCP}")):
        token = (await token_for(server, client, *resources)).json()["access_token"]
        refused = await server.anonymous().post("/oauth/revoke", data={"token": token})
        assert refused.json()["error"] == "unsupported_token_type"
        server.service.authenticator.on_change("client", client.headers["X-Test-Client"])
        client.headers["Authorization"] = f"Bearer {token}"
        assert (await send(client, "tools/list")).status_code == 200
