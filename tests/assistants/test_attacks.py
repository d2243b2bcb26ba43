"""What an attacker tries with codes, tokens, redirects and the consent page, and what stays refused."""

import re
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt
import pytest

from frontdesk.access.assistants import applications
from frontdesk.access.assistants.redirects import is_allowed, is_registered
from frontdesk.access.limits import failed_attempts
from tests.assistants.connecting import (
    EVERYTHING,
    REDIRECT,
    agreed,
    answer_of,
    client_of,
    connected,
    consent_page,
    decide,
    given,
    registered,
)
from tests.console.admin_pages import text_of
from tests.console.desk import records
from tests.console.signing_in import TEST_STAFF, browser_at, link_token, signed_in, use_link
from tests.doors.mcp_speech import call, problem, send
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module


@pytest.fixture
async def admin(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="admin", name="Ana")


NEVER_ALLOWED = (
    "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http://evil.example/callback", "https://",
    "//evil.example", "https://user@evil.example/", "https://good.example@evil.example/", "https://a.example/#x",
    "http://127.0.0.1.evil.example/", "http://localhost@evil.example/", "http://127.0.0.2/", "http://0.0.0.0/",
    "http://[::1]@evil.example/", "https://a.example\\@evil.example/", "https://a.example/\n", "https://a.example:x/",
    " https://a.example/", "https://a.example/ x", "myapp://callback", "cursor://evil/oauth/callback", "https://é.example/",
    "https://a.example/" + "x" * 1000, "https://boo\u212a.example/", "https://a.example/\u212a", "https://*/",
    "https://a.example;sandbox/", "https://a.example,b.example/", "https://a.example%2eb.example/", "https://[v1.a]/",
)  # fmt: skip


@pytest.mark.parametrize("uri", NEVER_ALLOWED)
def test_a_redirect_that_is_not_safe_cannot_be_registered(uri: str) -> None:
    assert not is_allowed(uri)
    assert not is_registered(uri, (uri,))


@pytest.mark.parametrize(
    ("uri", "registered_as", "matches"),
    [
        ("https://claude.ai/api/mcp/auth_callback", "https://claude.ai/api/mcp/auth_callback", True),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback", True),
        ("http://127.0.0.1:51000/callback", "http://127.0.0.1/callback", True),
        ("http://localhost:3030/callback", "http://localhost:7777/callback", True),
        ("http://[::1]:9/cb", "http://[::1]/cb", True),
        ("http://localhost:3030/callback", "http://127.0.0.1:3030/callback", False),
        ("http://127.0.0.1:3030/other", "http://127.0.0.1:3030/callback", False),
        ("http://127.0.0.1:3030/callback?x=1", "http://127.0.0.1:3030/callback", False),
        ("http://127.0.0.1:3030/callback/../x", "http://127.0.0.1:3030/callback", False),
        ("https://a.example:444/cb", "https://a.example/cb", False),
        ("https://a.example/cb/", "https://a.example/cb", False),
        ("https://a.example/cb?x", "https://a.example/cb", False),
        ("https://A.example/cb", "https://a.example/cb", False),
        ("https://evil.a.example/cb", "https://a.example/cb", False),
        ("https://a.example/%63b", "https://a.example/cb", False),
    ],
)
def test_redirects_match_to_the_letter_but_for_the_port_of_a_local_program(
    uri: str, registered_as: str, *, matches: bool
) -> None:
    assert is_registered(uri, (registered_as,)) is matches


async def test_an_unknown_client_or_redirect_is_an_error_page_and_never_a_redirect(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await registered(world)
    for changes in (
        {"client_id": None}, {"client_id": "app_" + "0" * 22}, {"client_id": "https://evil.example/client.json"},
        {"redirect_uri": None}, {"redirect_uri": "https://evil.example/"}, {"redirect_uri": REDIRECT + "/"},
        {"redirect_uri": REDIRECT + "?x=1"}, {"redirect_uri": REDIRECT.replace("https", "http")},
    ):  # fmt: skip
        is_document = str(changes.get("client_id")).startswith("https://")  # judged once staff have signed in
        for path in ("/console/connect",) if is_document else ("/oauth/authorize", "/console/connect"):
            answer = await admin.get(path, params=assistant.request(**changes))
            assert answer.status_code == 400, (path, changes)
            assert "location" not in answer.headers
            assert "evil" not in answer.text.replace("evil.example%2F", "").split("<main")[1]
    twice = [*assistant.request().items(), ("redirect_uri", REDIRECT)]
    assert (await admin.get("/oauth/authorize", params=twice)).status_code == 400


async def test_nobody_is_sent_to_an_application_before_signing_in(world: World) -> None:
    assistant = await registered(world)
    nobody = world.anonymous()
    for changes in ({}, {"response_type": "token"}, {"code_challenge": None}, {"scope": "nonsense"}):
        answer = await nobody.get("/oauth/authorize", params=assistant.request(**changes))
        answer = await nobody.get(answer.headers["location"])
        assert answer.headers["location"].startswith("/console/sign-in?")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://test/api"}, "invalid_target"),
        ({"resource": "http://test/fhir/R4"}, "invalid_target"),
        ({"resource": "http://test.evil.example/mcp"}, "invalid_target"),
        ({"scope": "nonsense"}, "invalid_scope"),
        ({"prompt": "none"}, "consent_required"),
        ({"state": "s" * 2001}, "invalid_request"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        *(({name: ["x", "y"]}, "invalid_request") for name in ("state", "scope", "prompt", "response_type")),
    ],
)
async def test_a_request_that_weakens_the_flow_is_refused_on_a_page_of_ours(
    world: World, admin: httpx.AsyncClient, changes: dict[str, Any], error: str
) -> None:
    """Else anybody could register an address, and send staff there by a link to us."""
    assistant, nobody = await registered(world), world.anonymous()
    first = await nobody.get("/oauth/authorize", params=assistant.request(**changes))
    assert first.headers["location"].startswith("/console/connect?")
    assert (await nobody.get(first.headers["location"])).headers["location"].startswith("/console/sign-in?")
    refused = await consent_page(admin, assistant, **changes)
    assert (refused.status_code, "location" in refused.headers) == (400, False)
    assert f"so nothing was connected: {error}, " in text_of(refused)
    page = await consent_page(admin, assistant)
    asked = urlencode(given(assistant.request(**changes)), doseq=True).replace("&", "&amp;")
    forged = re.sub(r'name="request" value="[^"]*"', f'name="request" value="{asked}"', page.text)
    for decision in ("connect", "cancel"):
        refused = await decide(admin, forged, decision, *EVERYTHING)
        assert (refused.status_code, "location" in refused.headers) == (400, False)


async def test_a_code_needs_the_verifier_the_client_and_the_redirect_that_it_was_made_for(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant, thief = await registered(world), await registered(world)
    for changes in (
        {"code_verifier": "x" * 43}, {"code_verifier": assistant.challenge}, {"code_verifier": "short"},
        {"client_id": thief.client_id}, {"redirect_uri": "https://evil.example/"},
    ):  # fmt: skip
        code = await agreed(admin, assistant)
        answer = await assistant.redeem(code, **changes)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), changes
        # It was consumed: a second guess is no longer possible.
        assert (await assistant.redeem(code)).json()["error"] == "invalid_grant"
    missing = await assistant.redeem(await agreed(admin, assistant), code_verifier=None)
    assert missing.json()["error"] == "invalid_request"
    elsewhere = await assistant.redeem(await agreed(admin, assistant), resource="https://other.example/mcp")
    assert elsewhere.json()["error"] == "invalid_target"
    old = await agreed(admin, assistant)
    world.clock.advance(seconds=61)
    assert (await assistant.redeem(old)).json()["error"] == "invalid_grant"
    for client_id in ("app_" + "0" * 22, "app_\0"):
        unknown = await assistant.redeem(await agreed(admin, assistant), client_id=client_id)
        assert (unknown.status_code, unknown.json()["error"]) == (401, "invalid_client")


async def test_a_replayed_code_ends_what_it_gave(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await registered(world)
    code = await agreed(admin, assistant)
    assistant.use((await assistant.redeem(code)).json())
    assert (await assistant.redeem(code)).json()["error"] == "invalid_grant"
    await heard(world, admin)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    record = (await records(world, operation="oauth.code_reused"))[-1]
    assert admin.headers[TEST_STAFF] in record["subject_ids"]


async def test_a_refresh_token_that_is_used_again_later_ends_the_connection(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin)
    stolen = assistant.tokens["refresh_token"]
    assistant.use((await assistant.refresh()).json())
    world.clock.advance(seconds=61)
    assert (await assistant.refresh(stolen)).json()["error"] == "invalid_grant"
    await heard(world, admin)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    record = (await records(world, operation="oauth.refresh_token_reused"))[-1]
    assert admin.headers[TEST_STAFF] in record["subject_ids"]


async def test_the_grace_gives_a_thief_no_line_of_tokens_of_its_own(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin)
    stolen = assistant.tokens["refresh_token"]
    first = (await assistant.refresh()).json()
    thief = (await assistant.refresh(stolen)).json()
    assert thief["refresh_token"] == first["refresh_token"]
    world.clock.advance(minutes=50)
    assert (await assistant.refresh(thief["refresh_token"])).status_code == 200
    world.clock.advance(minutes=5)
    assert (await assistant.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await records(world, operation="oauth.refresh_token_reused"))[-1]["outcome"] == "executed"


async def test_a_refresh_token_works_only_for_its_client(world: World, admin: httpx.AsyncClient) -> None:
    assistant, other = await connected(world, admin), await registered(world)
    token = assistant.tokens["refresh_token"]
    for changes in ({"client_id": other.client_id}, {"client_secret": "x"}, {"resource": "https://other.example"}):
        assert (await assistant.refresh(**changes)).status_code in (400, 401), changes
    credentials = await world.client()
    mixed = await assistant.refresh(client_id=credentials.headers["X-Test-Client"])
    assert mixed.json()["error"] == "invalid_client"
    assert (await assistant.refresh(token)).status_code == 200


async def test_an_assistant_has_no_secret_and_is_always_an_agent(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin, "appointments")
    row = await world.database.fetchrow(
        "SELECT client_id, practice_id FROM client WHERE application_id = $1", assistant.client_id
    )
    assert row is not None
    client_id = row["client_id"]
    rotated = await admin.post(f"/console/clients/{client_id}/rotate", data={"overlap": "0", "once": "x"})
    assert rotated.status_code == 409
    fields = {"name": "Claude", "per_minute": "10", "quota": "10", "known_patients_only": "yes"}
    held = assistant.tokens["scope"].split()
    for changes in ({"grant": "integration", "scopes": held}, {"grant": "agent", "scopes": [*held, "patients:read"]}):
        answer = await admin.post(f"/console/clients/{client_id}", data={**fields, **changes})
        assert answer.status_code == 422, changes
    changed = await admin.post(
        f"/console/clients/{client_id}", data={**fields, "grant": "agent", "scopes": ["slots:read"]}
    )
    assert changed.status_code == 303
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "fds_" + "A" * 43}
    assert (await world.anonymous().post("/oauth/token", data=form)).status_code == 401


async def test_the_consent_page_cannot_be_framed_or_forged(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await registered(world)
    page = await consent_page(admin, assistant)
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert "form-action 'self' https://assistant.example;" in policy
    other = await signed_in(world, role="admin", name="Eve")
    theirs = await consent_page(other, assistant)
    # A form of another session, one without a token, and one that another site sends.
    for headers, text in (
        ({}, theirs.text),
        ({}, re.sub(r'(name="csrf" value=")[0-9a-f]{64}', r"\g<1>" + "0" * 64, page.text)),
        ({"Origin": "https://evil.example"}, page.text),
        ({"Sec-Fetch-Site": "cross-site"}, page.text),
    ):
        victim = browser_at(world, "203.0.113.9")
        victim.cookies = admin.cookies
        victim.headers.update(headers)
        assert (await decide(victim, text, "connect")).status_code == 403
    assert answer_of(await decide(admin, page.text, "cancel"))["error"] == "access_denied"
    count = "SELECT count(*) FROM client WHERE application_id = $1"
    assert await world.database.fetchval(count, assistant.client_id) == 0


async def test_ticks_beyond_the_role_or_the_request_grant_nothing(world: World) -> None:
    staff = await signed_in(world, role="staff", name="Sam")
    assistant = await registered(world)
    code = await agreed(staff, assistant, "appointments", "patients", "records", scope="slots:read patients:write")
    assert (await assistant.redeem(code)).json()["scope"] == "slots:read"
    only = await consent_page(staff, assistant, scope="patients:write")
    assert (only.status_code, "location" in only.headers) == (403, False)
    assert "Your role includes nothing that the application asks for." in text_of(only)


async def test_access_to_patients_needs_proof_that_its_giver_is_present(world: World) -> None:
    """Somebody at a desk that was left open, or a page that steals a click, has neither."""
    staff, assistant = await signed_in(world, name="Sam"), await registered(world)
    world.clock.advance(minutes=4)
    await agreed(staff, assistant, *EVERYTHING)
    world.clock.advance(minutes=2)
    page = await consent_page(staff, assistant)
    refused = await decide(staff, page.text, "connect", "patients")
    assert (refused.status_code, "location" in refused.headers) == (422, False)
    assert "needs a fresh sign-in" in text_of(refused)
    assert "code" in answer_of(await decide(staff, page.text, "connect", "appointments")), "nothing about patients"
    back = (await decide(staff, page.text, "sign-in")).headers["location"]
    assert back.startswith("/console/sign-in?next=%2Fconsole%2Fconnect%3F")
    assert (await staff.get("/console/account")).status_code == 303, "the session has ended"


async def test_a_pin_is_such_a_proof_and_wrong_ones_end_the_session(world: World) -> None:
    staff, assistant = await signed_in(world, name="Kim"), await registered(world)
    pin = {"pin": "2580", "again": "2580", "minutes": "15"}
    assert (await staff.post("/console/pin", data=pin)).status_code == 303
    world.clock.advance(minutes=6)
    page = await consent_page(staff, assistant)
    assert 'name="pin"' in page.text
    for wrong in ("", "0000"):
        refused = await decide(staff, page.text, "connect", "patients", pin=wrong)
        assert (refused.status_code, "The PIN is wrong." in text_of(refused)) == (422, True)
    assert "code" in answer_of(await decide(staff, page.text, "connect", "patients", pin="2580"))
    for _ in range(3):
        await decide(staff, page.text, "connect", "patients", pin="0000")
    assert (await staff.get("/console/account")).status_code == 303, "the session has ended"
    outcomes = [each["outcome"] for each in await records(world, operation="console.connect_assistant")]
    assert outcomes[-6:] == ["unauthorized", "unauthorized", "executed", *["unauthorized"] * 3]


async def test_a_pin_that_was_first_set_at_a_desk_left_open_is_no_such_proof(world: World) -> None:
    staff, assistant = await signed_in(world, name="Lee"), await registered(world)
    world.clock.advance(minutes=6)
    pin = {"pin": "2580", "again": "2580", "minutes": "15"}
    assert (await staff.post("/console/pin", data=pin)).status_code == 303
    for new in ("", "3691"):
        if new:
            changed = {"pin": new, "again": new, "minutes": "15", "current": "2580"}
            assert (await staff.post("/console/pin", data=changed)).status_code == 303
        page = await consent_page(staff, assistant)
        refused = await decide(staff, page.text, "connect", "patients", pin=new or "2580")
        assert (refused.status_code, "location" in refused.headers) == (422, False)
        assert "needs a fresh sign-in" in text_of(refused)
    # It is one for sessions that its owner opens later.
    later = world.anonymous()
    world.clock.advance(minutes=1)
    assert (await use_link(later, await link_token(world, staff.headers[TEST_STAFF]))).status_code == 303
    world.clock.advance(minutes=6)
    page = await consent_page(later, assistant)
    assert "code" in answer_of(await decide(later, page.text, "connect", "patients", pin="3691"))


async def test_a_person_of_another_practice_connects_only_their_own(world: World, admin: httpx.AsyncClient) -> None:
    stranger = await signed_in(world, role="admin", practice="other", name="Stranger")
    assistant = await connected(world, admin)
    client_id = await client_of(world, assistant)
    assert client_id not in (await stranger.get("/console/assistants")).text
    assert client_id in (await admin.get("/console/assistants")).text
    assert (await stranger.post(f"/console/assistants/{client_id}/disconnect")).status_code == 404
    assert (await stranger.get(f"/console/clients/{client_id}")).status_code == 404
    # The same application, connected by both: each calls for one practice.
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    found = (await call(assistant.http, "match_patient", **ada))["structuredContent"]["items"][0]["id"]
    assistant.use((await assistant.redeem(await agreed(stranger, assistant, "patients"))).json())
    claims = jwt.decode(assistant.tokens["access_token"], options={"verify_signature": False})
    assert claims["practice"] == "other"
    assert (await call(assistant.http, "get_patient", patientId=found))["structuredContent"]["code"] == "not_found"


async def test_the_issuer_is_told_so_that_a_mixed_up_one_is_noticed(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await registered(world)
    page = await consent_page(admin, assistant)
    assert answer_of(await decide(admin, page.text, "connect"))["iss"] == "http://test"
    server = (await assistant.http.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == "http://test"
    # A code of another server, sent here, and a token for another server are worth nothing.
    assert (await assistant.redeem("code-of-another-server")).json()["error"] == "invalid_grant"


async def test_a_revoked_token_ends_the_connection(world: World, admin: httpx.AsyncClient) -> None:
    by_refresh, by_access = await connected(world, admin), await connected(world, admin)
    stranger = await registered(world)
    form = {"token": by_refresh.tokens["refresh_token"], "client_id": stranger.client_id}
    assert (await stranger.http.post("/oauth/revoke", data=form)).status_code == 400
    assert (await send(by_refresh.http, "tools/list")).status_code == 200
    for assistant, name in ((by_refresh, "refresh_token"), (by_access, "access_token")):
        form = {"token": assistant.tokens[name], "client_id": assistant.client_id, "token_type_hint": name}
        assert (await stranger.http.post("/oauth/revoke", data=form)).status_code == 200
        await heard(world, admin)
        assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await by_refresh.refresh()).json()["error"] == "invalid_grant"
    assert (await stranger.http.post("/oauth/revoke", data={"token": "unknown"})).status_code == 200
    credentials = await world.client()
    token = credentials.headers["Authorization"].removeprefix("Bearer ")
    refused = await stranger.http.post("/oauth/revoke", data={"token": token})
    assert refused.json()["error"] == "unsupported_token_type"
    assert (await send(credentials, "tools/list")).status_code == 200


async def test_an_access_token_that_was_ended_ends_no_others(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin)
    form = {"token": assistant.tokens["access_token"]}
    assert (await assistant.http.post("/oauth/revoke", data=form)).status_code == 200
    assistant.use((await assistant.refresh()).json())
    revoked = await records(world, operation="oauth.revoke_token")
    assert (await assistant.http.post("/oauth/revoke", data=form)).status_code == 200
    await heard(world, admin)
    assert (await send(assistant.http, "tools/list")).status_code == 200
    assert await records(world, operation="oauth.revoke_token") == revoked


@pytest.mark.parametrize("acts", [("revoke-tokens",), ("disable", "enable")])
async def test_what_an_admin_ends_gets_no_new_token(
    world: World, admin: httpx.AsyncClient, acts: tuple[str, ...]
) -> None:
    assistant = await connected(world, admin)
    pending = await agreed(admin, assistant, "appointments", "patients", "records")
    client_id = jwt.decode(assistant.tokens["access_token"], options={"verify_signature": False})["sub"]
    for act in acts:
        assert (await admin.post(f"/console/clients/{client_id}/{act}")).status_code == 303
    await heard(world, admin)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    assert (await assistant.redeem(pending)).json()["error"] == "invalid_grant"
    assistant.use((await assistant.redeem(await agreed(admin, assistant, "appointments"))).json())
    assert (await send(assistant.http, "tools/list")).status_code == 200, "connected again"


async def test_a_later_consent_widens_nothing_that_came_from_an_earlier_one(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin, "appointments")
    earlier = await agreed(admin, assistant, "appointments")
    later = await agreed(admin, assistant, "appointments", "patients")
    assert (await assistant.refresh()).json()["error"] == "invalid_grant"
    assert (await assistant.redeem(earlier)).json()["error"] == "invalid_grant"
    assistant.use((await assistant.redeem(later)).json())
    again = await agreed(admin, assistant, "appointments", "patients")
    assert (await assistant.refresh()).status_code == 200, "the same consent ends nothing"
    assert (await assistant.redeem(again)).status_code == 200


async def test_an_assistant_goes_on_with_the_scopes_that_an_admin_has_left_it(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin, "appointments", "patients")
    client_id = jwt.decode(assistant.tokens["access_token"], options={"verify_signature": False})["sub"]
    fields = {"name": "Claude", "grant": "agent", "per_minute": "10", "quota": "10", "known_patients_only": "yes"}
    changed = await admin.post(f"/console/clients/{client_id}", data={**fields, "scopes": ["slots:read"]})
    assert changed.status_code == 303
    await heard(world, admin)
    assert problem(await send(assistant.http, "tools/list"), 401) == "unauthorized"
    assert (await assistant.refresh()).json()["scope"] == "slots:read"


async def test_registrations_are_checked_limited_and_expire(world: World) -> None:
    http = browser_at(world, "203.0.113.77")
    for description, error in (
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://{name}.example/" for name in "abcd"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a.example/" + "x" * 495]}, "invalid_redirect_uri"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT], "grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "x" * 101}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "Cla\u202eude"}, "invalid_client_metadata"),
        ([], "invalid_client_metadata"),
    ):
        answer = await http.post("/oauth/register", json=description)
        assert (answer.status_code, answer.json()["error"]) == (400, error), description
    answers = [await http.post("/oauth/register", json={"redirect_uris": [REDIRECT]}) for _ in range(10)]
    made = answers[0]
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    assert None not in made.json().values()
    assert not made.json()["client_id"].startswith("https://")
    assert answers[-1].status_code == 429
    assert "retry-after" in answers[-1].headers


async def test_an_application_of_two_sites_and_this_machine_registers(world: World) -> None:
    redirects = ("https://a.example/", "https://b.example/", "http://127.0.0.1/", "http://localhost/", "http://[::1]/")
    assert (await registered(world, *redirects)).client_id.startswith("app_")
    http = browser_at(world, "203.0.113.79")
    for many in (
        [REDIRECT, *(f"http://127.0.0.1:{n}/" for n in range(1, 5))],
        [f"cursor://anysphere.cursor-mcp/{n}" for n in range(500)],
    ):
        refused = await http.post("/oauth/register", json={"redirect_uris": many})
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")


async def test_registrations_of_a_day_are_limited_in_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.clock.advance(days=1, seconds=1)
    monkeypatch.setattr(applications, "_MAX_REGISTRATIONS", 2)
    for _ in range(2):
        await registered(world)
    http = browser_at(world, "203.0.113.78")
    refused = await http.post("/oauth/register", json={"redirect_uris": [REDIRECT]})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    world.clock.advance(days=1, seconds=1)
    await registered(world)


async def test_an_outage_of_the_database_is_told_as_one(world: World, admin: httpx.AsyncClient) -> None:
    assistant = await connected(world, admin)
    await world.database.close()
    try:
        form = {"token": assistant.tokens["access_token"]}
        answers = [
            await assistant.refresh(),
            await assistant.redeem("x"),
            await assistant.http.post("/oauth/revoke", data=form),
            await assistant.http.post("/oauth/register", json={"redirect_uris": [REDIRECT]}),
            await assistant.http.get("/oauth/authorize", params=assistant.request()),
        ]
        assert [answer.status_code for answer in answers] == [502] * 5
    finally:
        await world.database.open()


async def heard(world: World, browser: httpx.AsyncClient) -> None:
    """Passes notifications on, as the listener of a running service does."""
    select = "SELECT client_id FROM client WHERE staff_id = $1"
    for row in await world.database.fetch(select, browser.headers[TEST_STAFF]):
        world.service.authenticator.on_change("client", row["client_id"])


async def test_a_refresh_for_unknown_scopes_gives_no_token_and_uses_nothing_up(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin)
    refused = await assistant.refresh(scope="openid offline_access")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope")
    answer = await assistant.refresh(scope="openid practices:read")
    assert (answer.status_code, answer.json()["scope"]) == (200, "practices:read")


async def test_a_code_can_be_used_after_the_limit_of_tokens(
    world: World, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = await connected(world, admin)
    code = await agreed(admin, assistant)
    with monkeypatch.context() as patch:
        patch.setattr(failed_attempts, "MIN_TOKENS", 0)
        assert (await assistant.redeem(code)).status_code == 429
    world.service.failed_attempts._refused.clear()
    assert (await assistant.redeem(code)).status_code == 200


async def test_failures_with_one_application_lock_out_nobody_else_who_uses_it(
    world: World, admin: httpx.AsyncClient
) -> None:
    assistant = await connected(world, admin)
    for attempt in range(failed_attempts.PER_CLIENT):
        assert (await assistant.redeem(f"guess {attempt}")).json()["error"] == "invalid_grant"
    assert (await assistant.redeem("another guess")).status_code == 429
    assert (await assistant.refresh()).status_code == 200
    assert (await assistant.redeem(await agreed(admin, assistant))).status_code == 200


async def test_revoking_has_a_limit_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_attempts, "REVOCATIONS_PER_ADDRESS", 2)
    stranger = browser_at(world, "203.0.113.201")
    statuses = [(await stranger.post("/oauth/revoke", data={"token": f"fdr_{n}"})).status_code for n in range(3)]
    assert statuses == [200, 200, 429]
    other = browser_at(world, "203.0.113.202")
    assert (await other.post("/oauth/revoke", data={"token": "fdr_x"})).status_code == 200
