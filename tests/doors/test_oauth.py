"""The token endpoint over the wire: who gets a token, and what the refusals look like."""

import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from frontdesk.access.clients.records import disable_client
from frontdesk.access.clients.scopes import SCOPES
from tests.doors.oauth_desk import HELD, URL, Desk, check_refusal
from tests.support.shared_database import world_of_a_module

world = world_of_a_module


async def test_credentials_in_the_body_get_a_token_that_works(desk: Desk) -> None:
    answer = await desk.token()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, " ".join(HELD))
    caller = await desk.authenticator.identify(body["access_token"])
    assert (caller.client_id, caller.practice_slug, caller.grant) == (desk.client_id, "riverside", "agent")
    assert caller.scopes == frozenset(HELD)


async def test_credentials_by_http_basic_get_a_token(desk: Desk) -> None:
    for headers in (desk.basic(), {"Authorization": desk.basic()["Authorization"].replace("Basic", "bASIC")}):
        answer = await desk.token(headers, client_id=None, client_secret=None)
        assert answer.status_code == 200
        assert (await desk.authenticator.identify(answer.json()["access_token"])).client_id == desk.client_id
    same_client_in_the_body = await desk.token(desk.basic(), client_secret=None)
    assert same_client_in_the_body.status_code == 200


async def test_basic_credentials_are_form_decoded(desk: Desk) -> None:
    encoded = "".join(f"%{ord(character):02X}" for character in desk.secret)
    answer = await desk.token(desk.basic(secret=encoded), client_id=None, client_secret=None)
    assert answer.status_code == 200


async def test_scope_narrows_what_the_client_holds(desk: Desk) -> None:
    answer = await desk.token(scope="slots:read  practices:read")
    assert answer.json()["scope"] == "practices:read slots:read"
    caller = await desk.authenticator.identify(answer.json()["access_token"])
    assert caller.scopes == {"practices:read", "slots:read"}
    assert (await desk.token(scope="")).json()["scope"] == " ".join(HELD)


async def test_asking_for_every_published_scope_gets_those_that_are_held(desk: Desk) -> None:
    assert (await desk.token(scope=" ".join(SCOPES))).json()["scope"] == " ".join(HELD)


async def test_asking_for_the_published_scopes_gets_no_other(desk: Desk) -> None:
    await desk.database.write("UPDATE client SET scopes = $1", [*HELD, "notes:read"])
    assert (await desk.token(scope=" ".join(SCOPES))).json()["scope"] == " ".join(HELD)
    assert (await desk.token()).json()["scope"] == " ".join((*HELD, "notes:read"))
    await desk.database.write("UPDATE client SET scopes = $1", ["notes:read"])
    check_refusal(await desk.token(scope=" ".join(SCOPES)), 400, "validation", "invalid_scope")


async def test_a_wrong_method_is_an_oauth_error_too(desk: Desk) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        answer = await desk.http.request(method, "/oauth/token")
        check_refusal(answer, 405, "method_not_allowed", "invalid_request")
        assert answer.headers["allow"] == "POST"
    assert (await desk.http.head("/oauth/token")).headers["allow"] == "POST"


async def test_a_scope_that_is_unknown_or_not_held_is_refused(desk: Desk) -> None:
    for scope in ("patients:read", "slots:read patients:read", "everything", "slots:read,practices:read"):
        body = check_refusal(await desk.token(scope=scope), 400, "validation", "invalid_scope")
        assert [error["field"] for error in body["errors"]] == ["scope"]
        assert scope not in str(body)


async def test_a_resource_of_ours_is_accepted_and_any_other_refused(desk: Desk) -> None:
    for resource in (URL, f"{URL}/", f"{URL}/mcp", f"{URL}/api"):
        assert (await desk.token(resource=resource)).status_code == 200
    several = httpx.QueryParams([*desk.form().items(), ("resource", URL), ("resource", f"{URL}/mcp")])
    assert (await desk.raw(str(several))).status_code == 200
    for resource in ("https://evil.example", f"{URL}.evil.example", "x"):
        check_refusal(await desk.token(resource=resource), 400, "validation", "invalid_target")


async def test_wrong_credentials_look_all_alike(desk: Desk) -> None:
    wrong = [
        await desk.token(client_secret="fds_" + "A" * 43),
        await desk.token(client_id="fd_" + "0" * 20),
        await desk.token(client_id="nobody"),
        await desk.token(client_id="fd_\x00"),
        await desk.token(desk.basic(secret="wrong"), client_id=None, client_secret=None),
        await desk.token(desk.basic(client_id="wrong"), client_id=None, client_secret=None),
    ]
    await disable_client(desk.database, desk.client_id)
    wrong.append(await desk.token())
    bodies = []
    for answer in wrong:
        body = check_refusal(answer, 401, "unauthorized", "invalid_client")
        assert body.pop("requestId")
        bodies.append(body)
        challenge = answer.headers["www-authenticate"]
        assert challenge == (
            f'Bearer resource_metadata="{URL}/.well-known/oauth-protected-resource", Basic realm="frontdesk"'
        )
    assert all(body == bodies[0] for body in bodies)


async def test_an_unreadable_authorization_header_is_unauthorized(desk: Desk) -> None:
    form = desk.form(client_id=None, client_secret=None)
    for header in (b"Basic", b"Basic !!!!", b"Basic bm9jb2xvbg==", b"Basic /w==", b"Basic Zg", b"Bearer x", b"\xff"):
        answer = await desk.http.post("/oauth/token", data=form, headers=[(b"Authorization", header)])
        check_refusal(answer, 401, "unauthorized", "invalid_client")


async def test_two_ways_of_authenticating_at_once_are_refused(desk: Desk) -> None:
    check_refusal(await desk.token(desk.basic()), 400, "validation", "invalid_request")
    other_client = await desk.token(desk.basic(), client_id="fd_" + "0" * 20, client_secret=None)
    check_refusal(other_client, 400, "validation", "invalid_request")


async def test_a_suspended_practice_is_forbidden(desk: Desk) -> None:
    await desk.database.write("UPDATE practice SET suspended = true")
    check_refusal(await desk.token(), 403, "forbidden_tenant", "unauthorized_client")
    check_refusal(await desk.token(client_secret="wrong"), 401, "unauthorized", "invalid_client")


async def test_every_missing_field_is_named(desk: Desk) -> None:
    body = check_refusal(await desk.raw(""), 400, "validation", "invalid_request")
    assert [(error["field"], error["rule"]) for error in body["errors"]] == [
        ("grant_type", "required"),
        ("client_id", "required"),
        ("client_secret", "required"),
    ]
    body = check_refusal(await desk.token(client_secret=""), 400, "validation", "invalid_request")
    assert [error["field"] for error in body["errors"]] == ["client_secret"]
    body = check_refusal(await desk.raw("", **desk.basic()), 400, "validation", "invalid_request")
    assert [error["field"] for error in body["errors"]] == ["grant_type"]


async def test_another_grant_type_is_refused(desk: Desk) -> None:
    for grant in ("password", "implicit", "CLIENT_CREDENTIALS", "x"):
        body = check_refusal(await desk.token(grant_type=grant), 400, "validation", "unsupported_grant_type")
        published = (await desk.http.get("/.well-known/oauth-authorization-server")).json()["grant_types_supported"]
        assert body["detail"] == f"grant_type must be one of {', '.join(published)}."
        # Also of a client without a secret, such as an assistant, and before an assertion is read.
        for credentials in ({}, {"client_assertion_type": "x"}, {"client_assertion": "x"}):
            answer = await desk.token(grant_type=grant, client_secret=None, **credentials)
            assert check_refusal(answer, 400, "validation", "unsupported_grant_type")["detail"] == body["detail"]


async def test_a_repeated_parameter_is_refused(desk: Desk) -> None:
    form = {**desk.form(), "scope": "slots:read", "anything": "x"}
    for name, value in form.items():
        body = str(httpx.QueryParams([*form.items(), (name, value)]))
        document = check_refusal(await desk.raw(body), 400, "validation", "invalid_request")
        assert [error["field"] for error in document["errors"]] == ["$" if name == "anything" else name]


async def test_parameters_nobody_knows_are_ignored(desk: Desk) -> None:
    assert (await desk.token(audience="x", client_assertion="y")).status_code == 200


async def test_credentials_in_the_address_do_not_count(desk: Desk) -> None:
    address = f"/oauth/token?{httpx.QueryParams(desk.form())}"
    answer = await desk.http.post(address, headers={"content-type": "application/x-www-form-urlencoded"})
    check_refusal(answer, 400, "validation", "invalid_request")


async def test_a_body_that_is_not_a_form_is_refused(desk: Desk) -> None:
    body = str(httpx.QueryParams(desk.form()))
    for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain", ""):
        answer = await desk.raw(body, **{"content-type": kind})
        check_refusal(answer, 415, "unsupported_media_type", "invalid_request")


async def test_the_charset_of_a_form_does_no_harm(desk: Desk) -> None:
    body = str(httpx.QueryParams(desk.form()))
    answer = await desk.raw(body, **{"content-type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"})
    assert answer.status_code == 200


async def test_a_form_that_cannot_be_read_is_refused(desk: Desk) -> None:
    for body in (b"\xff\xfe", b"grant_type=%FF", b"a=1&" * 100):
        check_refusal(await desk.raw(body), 400, "validation", "invalid_request")


async def test_a_body_over_64_kib_is_refused(desk: Desk) -> None:
    body = str(httpx.QueryParams(desk.form())) + "&x="
    largest = body + "y" * (64 * 1024 - len(body))
    assert (await desk.raw(largest)).status_code == 200
    check_refusal(await desk.raw(largest + "y"), 413, "payload_too_large", "invalid_request")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"y" * 8192

    answer = await desk.http.post(
        "/oauth/token", content=endless(), headers={"content-type": "application/x-www-form-urlencoded"}
    )
    check_refusal(answer, 413, "payload_too_large", "invalid_request")
    assert answer.headers["connection"] == "close"


async def test_a_database_that_is_down_is_a_problem_to_retry(desk: Desk) -> None:
    await desk.database.close()
    answer = await desk.token()
    check_refusal(answer, 502, "upstream_unavailable", "temporarily_unavailable")
    assert answer.headers["retry-after"] == "2"
    await desk.database.open()
    assert (await desk.token()).status_code == 200


async def test_an_unexpected_error_is_a_problem_whose_request_id_finds_the_trace(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(desk.tokens, "issue", None)
    body = check_refusal(await desk.token(), 500, "internal", "server_error")
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.__dict__["requestId"] == body["requestId"]


async def test_neither_secrets_nor_what_was_sent_reach_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        token = (await desk.token()).json()["access_token"]
        await desk.token(client_secret="fds_wrong", client_id="fd_mistyped", scope="slots:read")
        await desk.token(desk.basic(secret="fds_wrong"), client_id=None, client_secret=None)
    lines = [record for record in caplog.records if record.name == "frontdesk.request"]
    assert [(line.__dict__["status"], line.__dict__["client"]) for line in lines] == [
        (200, desk.client_id),
        (401, None),
        (401, None),
    ]
    text = repr([record.__dict__ for record in caplog.records if record.name.startswith("frontdesk")])
    for secret in (desk.secret, token, "fds_wrong", "fd_mistyped"):
        assert secret not in text
