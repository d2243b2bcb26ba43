"""From an address to a booking: an application registers, a staff member agrees, and the assistant calls for them."""

from datetime import timedelta
from typing import Any

import httpx
import httpx2
import jwt
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from frontdesk.access.clients.scopes import ROLE_SCOPES, SCOPES
from frontdesk.console.pages.connect import GROUPS
from frontdesk.operations import OPERATIONS
from tests.assistants.connecting import (
    EVERYTHING,
    REDIRECT,
    RESOURCE,
    agreed,
    answer_of,
    connected,
    consent_page,
    decide,
    registered,
)
from tests.console.desk import records
from tests.console.signing_in import TEST_STAFF, link_token, signed_in, use_link
from tests.desk.acting import staff_member
from tests.doors.mcp_speech import MODERN, call, problem, result, send
from tests.doors.test_mcp_sdk import Forgetful
from tests.support.shared_database import world_of_a_module
from tests.support.world import MONDAY, World

NEW_PATIENT = {"firstName": "New", "lastName": "Person", "phone": "555 0100", "dob": "1990-01-01"}

world = world_of_a_module


@pytest.fixture
async def admin(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="admin", name="Ana")


@pytest.fixture
async def staff(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="staff", name="Sam")


async def test_the_official_client_signs_in_through_the_consent_page_and_books(
    world: World, admin: httpx.AsyncClient
) -> None:
    answers: list[dict[str, str]] = []
    ticked = [["appointments"], [*EVERYTHING]]  # at first, and when it asks for more

    async def open_browser(address: str) -> None:
        page = await admin.get(address.removeprefix("http://test"))
        page = await admin.get(page.headers["location"])
        decided = await decide(admin, page.text, "connect", *ticked.pop(0))
        answers.append(answer_of(decided, "http://localhost:3030/"))

    async def callback() -> AuthorizationCodeResult:
        answer = answers.pop()
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    metadata = OAuthClientMetadata(client_name="The SDK", redirect_uris=["http://localhost:3030/callback"])  # type: ignore[list-item]
    memory = Forgetful()
    provider = OAuthClientProvider(RESOURCE, metadata, memory, open_browser, callback)
    transport = httpx2.ASGITransport(app=world.transport.app)  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url="http://test", auth=provider) as sdk:
        headers = {"Accept": "application/json, text/event-stream"}
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        answer = await sdk.post("/mcp", json=body | {"params": {"name": "get_capabilities"}}, headers=headers)
        assert answer.status_code == 200, answer.text
        assert memory.tokens is not None
        assert "patients:read" not in str(memory.tokens.scope)
        reading = {"params": {"name": "get_patient", "arguments": {"patientId": "pat_x"}}}
        answer = await sdk.post("/mcp", json=body | reading, headers=headers)
    assert answer.status_code == 200, answer.text
    assert ticked == []
    assert "patients:read" in str(memory.tokens.scope)

    assistant = world.anonymous()
    assistant.headers["Authorization"] = f"Bearer {memory.tokens.access_token}"
    found = await call(
        assistant, "match_patient", firstName="Ada", lastName="Lovelace", phone="555 010 0199", dob="1985-12-10"
    )
    slots = await call(
        assistant, "search_slots", providerId=10, locationId=1, visitTypeId=21, procedureId=101,
        **{"from": MONDAY.isoformat(), "to": MONDAY.isoformat()},
    )  # fmt: skip
    wanted = {
        "patientId": found["structuredContent"]["items"][0]["id"],
        "slotId": slots["structuredContent"]["items"][0]["id"],
    }
    pending = await call(assistant, "book_appointment", **wanted)
    token = pending["structuredContent"]["confirmationToken"]
    booked = await call(assistant, "book_appointment", **wanted, confirmationToken=token)
    appointment = booked["structuredContent"]["appointmentId"]

    [record] = await records(world, operation="book_appointment", outcome="executed")
    assert record["actor"].startswith("fd_as_")
    assert {appointment, admin.headers[TEST_STAFF]} <= set(record["subject_ids"])
    for consent in await records(world, operation="console.connect_assistant"):
        assert (consent["actor"], consent["subject_ids"]) == (admin.headers[TEST_STAFF], [record["actor"]])
    trail = (await admin.get("/console/audit")).text
    assert "The SDK for Ana" in trail


async def test_every_scope_is_in_one_group_and_patients_data_is_a_tick_of_its_own(
    world: World, admin: httpx.AsyncClient
) -> None:
    assert sorted(scope for group in GROUPS for scope in group.scopes) == sorted(SCOPES)
    page = (await consent_page(admin, await registered(world))).text
    assert 'value="appointments" checked' in page
    assert 'value="patients">' in page
    assert 'value="records">' in page
    for text in ("Connect Claude?", "Harbor Family Medicine", "Ana", "assistant.example", "not verified"):
        assert text in page
    assert "a program on this computer" not in page
    for local in ("http://127.0.0.1:7777/callback", "cursor://anysphere.cursor-mcp/oauth/callback"):
        assistant = await registered(world, local, REDIRECT)
        assert "a program on this computer" in (await consent_page(admin, assistant)).text
        assistant.redirect_uri = REDIRECT
        assert "a program on this computer" not in (await consent_page(admin, assistant)).text


async def test_an_assistant_gets_what_was_ticked_and_asks_for_more(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin, "appointments")
    assert "patients:read" not in assistant.tokens["scope"]
    refused = await send(assistant.http, "tools/call", {"name": "get_patient", "arguments": {"patientId": "pat_x"}})
    assert problem(refused, 403) == "forbidden_scope"
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'resource_metadata="http://test/.well-known/oauth-protected-resource/mcp"' in challenge
    scopes = challenge.split('scope="')[1].split('"')[0]
    assert set(scopes.split()) == {*assistant.tokens["scope"].split(), "patients:read"}

    code = await agreed(admin, assistant, "appointments", "patients", scope=scopes)
    answer = await assistant.redeem(code)
    assistant.use(answer.json())
    # Of a group only what was asked for is granted.
    assert set(answer.json()["scope"].split()) == set(scopes.split())
    unknown = await call(assistant.http, "get_patient", patientId="pat_x")
    assert unknown["isError"]
    assert unknown["structuredContent"]["code"] == "not_found"


async def test_the_role_caps_scopes_and_tools_at_every_call(world: World, staff: httpx.AsyncClient) -> None:
    page = (await consent_page(staff, await registered(world))).text
    assert "Add patients" not in page
    assistant = await connected(world, staff)
    assert assistant.tokens["scope"].split() == [scope for scope in SCOPES if scope in ROLE_SCOPES["staff"]]
    listed = await result(assistant.http, "tools/list", None, MODERN)
    hidden = {operation.name for operation in OPERATIONS} - {tool["name"] for tool in listed["tools"]}
    assert hidden == {"create_patient", "update_patient"}
    assert listed["cacheScope"] == "private"
    # A hidden tool is refused, without a challenge for a scope that the role does not include.
    answer = await call(
        assistant.http, "create_patient", firstName="A", lastName="B", phone="5550100", dob="1990-01-01"
    )
    assert answer["structuredContent"]["code"] == "forbidden_scope"

    client = await world.client(scopes=["slots:read"])
    everything = await result(client, "tools/list", None, MODERN)
    assert len(everything["tools"]) == len(OPERATIONS)
    assert everything["cacheScope"] == "public"
    lacking = await call(client, "get_practice")
    assert lacking["isError"]


async def test_a_lower_role_takes_effect_on_connections_made_before(world: World, admin: httpx.AsyncClient) -> None:
    other = await signed_in(world, role="admin", name="Boss")
    assistant = await connected(world, admin)
    assert "confirmationToken" in (await call(assistant.http, "create_patient", **NEW_PATIENT))["structuredContent"]
    staff_id = admin.headers[TEST_STAFF]
    assert (await other.post(f"/console/staff/{staff_id}/change", data={"change": "staff"})).status_code == 303
    await notify(world, staff_id)
    answer = await call(assistant.http, "create_patient", **NEW_PATIENT)
    assert answer["structuredContent"]["code"] == "forbidden_scope"
    assert "patients:write" not in (await assistant.refresh()).json()["scope"]
    # Back in the old role, the old consent holds again.
    assert (await other.post(f"/console/staff/{staff_id}/change", data={"change": "admin"})).status_code == 303
    await notify(world, staff_id)
    assert "confirmationToken" in (await call(assistant.http, "create_patient", **NEW_PATIENT))["structuredContent"]

    assert (await other.post(f"/console/staff/{staff_id}/change", data={"change": "disable"})).status_code == 303
    await notify(world, staff_id)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).status_code == 400
    assert (await other.post(f"/console/staff/{staff_id}/change", data={"change": "enable"})).status_code == 303
    await notify(world, staff_id)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"


async def notify(world: World, staff_id: str) -> None:
    """Passes the notification on, as the listener of a running service does."""
    rows = await world.database.fetch("SELECT client_id FROM client WHERE staff_id = $1", staff_id)
    for row in rows:
        world.service.authenticator.on_change("client", row["client_id"])


async def test_a_token_of_an_assistant_is_for_the_mcp_door_alone(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin)
    claims: dict[str, Any] = jwt.decode(assistant.tokens["access_token"], options={"verify_signature": False})
    assert (claims["aud"], claims["iss"], claims["grant"]) == (RESOURCE, "http://test", "agent")
    assert problem(await assistant.http.get("/api/practice"), 401) == "unauthorized"
    assert (await call(assistant.http, "get_practice"))["isError"] is False
    # Not even from memory, after the other door has checked it.
    assert problem(await assistant.http.get("/api/practice"), 401) == "unauthorized"


async def test_an_assistant_sees_only_patients_that_it_has_found(world: World, admin: httpx.AsyncClient) -> None:
    first, second = await connected(world, admin), await connected(world, admin)
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    found = (await call(first.http, "match_patient", **ada))["structuredContent"]["items"][0]["id"]
    assert (await call(first.http, "get_patient", patientId=found))["isError"] is False
    assert (await call(second.http, "get_patient", patientId=found))["structuredContent"]["code"] == "not_found"


async def test_somebody_who_is_not_signed_in_signs_in_first_and_comes_back(world: World) -> None:
    assistant = await registered(world)
    member = await staff_member(world, "staff", name="Late")
    browser = world.anonymous()
    begun = await browser.get("/oauth/authorize", params=assistant.request(state="s" * 1500))
    sent = await browser.get(begun.headers["location"])
    assert sent.headers["location"].startswith("/console/sign-in?next=")
    page = await browser.get(sent.headers["location"])
    then = page.text.split('name="next" value="')[1].split('"')[0].replace("&amp;", "&")
    signed = await use_link(browser, await link_token(world, member.staff_id), next=then)
    consent = await browser.get(signed.headers["location"])
    assert "Connect Claude?" in consent.text
    # The sign-in page of another tab leads there, too, once it is loaded again.
    again = await browser.get(sent.headers["location"])
    assert again.headers["location"] == signed.headers["location"]
    assert answer_of(await decide(browser, consent.text, "connect"))["state"] == "s" * 1500


async def test_an_earlier_consent_is_asked_for_again_and_replaced(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin)
    before = jwt.decode(assistant.tokens["access_token"], options={"verify_signature": False})["sub"]
    code = await agreed(admin, assistant, scope=None)
    await notify(world, admin.headers[TEST_STAFF])
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"  # it had more scopes
    answer = (await assistant.redeem(code)).json()
    assert answer["scope"] == "practices:read slots:read"
    assert jwt.decode(answer["access_token"], options={"verify_signature": False})["sub"] == before


async def test_refresh_tokens_rotate_and_racing_clients_get_the_same_one(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin)
    first, second = [(await assistant.refresh()).json() for _ in range(2)]
    assert first["refresh_token"] == second["refresh_token"] != assistant.tokens["refresh_token"]
    assert first["scope"] == assistant.tokens["scope"]
    narrow = (await assistant.refresh(first["refresh_token"], scope="slots:read")).json()
    assert narrow["scope"] == "slots:read"
    world.clock.advance(hours=2)
    answer = await assistant.refresh(narrow["refresh_token"], resource=None)
    assistant.use(answer.json())
    assert (await call(assistant.http, "get_practice"))["isError"] is False
    world.clock.advance(days=31)
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    world.clock.now -= timedelta(days=31, hours=2)


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/register", "/oauth/revoke", "/.well-known/jwks.json"])
async def test_browsers_of_any_origin_may_use_the_endpoints_without_cookies(world: World, path: str) -> None:
    page = {"Origin": "https://inspector.example", "Access-Control-Request-Method": "POST"}
    nobody = world.anonymous()
    preflight = await nobody.options(path, headers=page)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    answer = await nobody.request("GET" if "well-known" in path else "POST", path, headers=page)
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    assert "access-control-allow-credentials" not in answer.headers
    authorize = await nobody.options("/oauth/authorize", headers=page)
    assert authorize.status_code == 405
    assert "access-control-allow-origin" not in authorize.headers


async def test_the_metadata_leads_every_revision_to_the_endpoints(world: World) -> None:
    nobody = world.anonymous()
    for method in ("GET", "POST", "DELETE"):
        challenge = (await nobody.request(method, "/mcp")).headers["www-authenticate"]
        assert challenge == (
            'Bearer resource_metadata="http://test/.well-known/oauth-protected-resource/mcp", '
            f'scope="{" ".join(SCOPES)}"'
        )
    nobody.headers["Authorization"] = "Bearer nonsense"
    assert 'error="invalid_token"' in (await nobody.get("/mcp")).headers["www-authenticate"]
    client = await world.client()
    assert problem(await client.get("/mcp"), 405) == "method_not_allowed"
    documents = [
        (await nobody.get(f"/.well-known/{name}")).json()
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    assert documents[0] == documents[1]
    server = documents[0]
    assert server["issuer"] == "http://test"
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["response_types_supported"] == ["code"]
    assert server["client_id_metadata_document_supported"] is False
    assert server["authorization_response_iss_parameter_supported"] is True
    assert "none" in server["token_endpoint_auth_methods_supported"]
