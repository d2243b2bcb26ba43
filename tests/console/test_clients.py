"""Clients at the console: added, changed, disabled, given new secrets; each secret shown once, everything recorded."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits, change_client, list_clients, show_client
from frontdesk.access.clients.scopes import SCOPES, every_scope
from frontdesk.console.pages.clients import scope_meanings
from tests.console.admin_pages import (
    EVIL,
    check_harmless,
    errors_in,
    practice_id,
    text_of,
    token_status,
    value_of,
)
from tests.console.signing_in import TEST_STAFF, audited, signed_in
from tests.support.world import World, book, confirmed, patient_id, slots

PHONE_AGENT = {
    "name": "Phone agent",
    "grant": "agent",
    "scopes": ["slots:read", "appointments:book"],
    "per_minute": "60",
    "quota": "10,000",
}
SECRET = re.compile(r"fds_[0-9A-Za-z_-]{43}")
CLIENT_ID = re.compile(r"(?<![\w-])fd_[0-9A-Za-z]{20}(?![\w-])")  # a secret may hold what looks like one


async def add(browser: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    form = await browser.get("/console/clients/new")
    assert form.status_code == 200
    return await browser.post("/console/clients", data={**PHONE_AGENT, "once": value_of(form, "once"), **fields})


async def added(browser: httpx.AsyncClient, **fields: Any) -> tuple[str, str]:
    """The id and the secret of a new client."""
    page = await add(browser, **fields)
    assert page.status_code == 200, page.text
    (client_id,) = set(CLIENT_ID.findall(page.text))
    (secret,) = SECRET.findall(page.text)
    return client_id, secret


def test_every_scope_is_offered_in_the_order_of_the_scopes() -> None:
    assert tuple(scope_meanings()) == every_scope()


async def test_an_empty_practice_is_told_what_to_do_first(admin: httpx.AsyncClient) -> None:
    page = await admin.get("/console/clients")
    assert "No clients yet" in page.text
    assert 'href="/console/clients/new"' in page.text


async def test_a_client_that_was_added_can_call_with_what_was_shown(world: World, admin: httpx.AsyncClient) -> None:
    client_id, secret = await added(admin)
    client = await show_client(world.database, client_id)
    assert (client.practice_slug, client.name, client.grant) == ("harbor", "Phone agent", "agent")
    assert (client.scopes, client.per_minute, client.quota) == (("slots:read", "appointments:book"), 60, 10_000)
    assert await token_status(world, client_id, secret) == 200
    listed = await admin.get("/console/clients")
    assert f'<a href="/console/clients/{client_id}">Phone agent</a>' in listed.text
    assert "0 of 60" in text_of(listed)


async def test_a_secret_is_in_one_answer_and_nowhere_else(world: World, admin: httpx.AsyncClient) -> None:
    page = await add(admin)
    (secret,) = SECRET.findall(page.text)
    assert page.headers["cache-control"] == "no-store"
    assert secret not in str(page.url)
    client_id = (await list_clients(world.database, practice="harbor"))[-1].client_id
    for path in (f"/console/clients/{client_id}", "/console/clients", "/console/audit", "/console/usage"):
        assert secret not in (await admin.get(path)).text
    rows = await world.database.fetch("SELECT * FROM client_secret WHERE client_id = $1", client_id)
    assert secret.encode() not in rows[0]["digest"]


async def test_a_form_that_is_sent_again_adds_nobody_and_shows_nothing(world: World, admin: httpx.AsyncClient) -> None:
    once = value_of(await admin.get("/console/clients/new"), "once")
    answers = await asyncio.gather(
        *(admin.post("/console/clients", data={**PHONE_AGENT, "once": once}) for _ in range(3))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 303, 303]
    (client,) = await list_clients(world.database, practice="harbor")
    reloaded = await admin.post("/console/clients", data={**PHONE_AGENT, "once": once})
    assert reloaded.status_code == 303
    assert reloaded.headers["location"] == f"/console/clients/{client.client_id}?notice=secret_shown"
    shown = await admin.get(reloaded.headers["location"])
    assert "cannot be shown again" in shown.text
    assert not SECRET.search(shown.text)
    assert len(await list_clients(world.database, practice="harbor")) == 1
    assert len(client.secrets) == 1


async def test_every_error_is_told_beside_its_field_and_what_was_typed_stays(
    world: World, admin: httpx.AsyncClient
) -> None:
    page = await add(admin, name=" ", grant="owner", scopes=[], per_minute="many", quota="0")
    assert page.status_code == 422
    assert errors_in(page) == {
        "name": "A client's name is one line of 1 to 100 characters.",
        "grant": "A client's grant is agent or integration.",
        "scopes": "A client needs at least one scope.",
        "per_minute": "The rate limit must be a whole number, such as 1,000.",
        "quota": "The quota must be between 1 and 9223372036854775807.",
    }
    assert value_of(page, "per_minute") == "many"
    assert await list_clients(world.database, practice="harbor") == []
    page = await add(admin, name="Fax", scopes=["slots:read", "everything"])
    assert value_of(page, "name") == "Fax"
    assert "checked" in re.findall(r'<input[^>]*value="slots:read"[^>]*>', page.text)[0]
    assert "checked" not in re.findall(r'<input[^>]*value="patients:read"[^>]*>', page.text)[0]
    assert set(errors_in(page)) == {"scopes"}


async def test_limits_and_scopes_can_be_changed(world: World, admin: httpx.AsyncClient) -> None:
    client_id, _ = await added(admin)
    path = f"/console/clients/{client_id}"
    changed = {"name": "Night agent", "scopes": list(SCOPES), "per_minute": "5", "quota": "50"}
    answer = await admin.post(path, data=changed)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?notice=client_changed")
    client = await show_client(world.database, client_id)
    assert (client.name, client.scopes, client.per_minute, client.quota) == ("Night agent", SCOPES, 5, 50)
    refused = await admin.post(path, data={**changed, "quota": "-1", "name": "x" * 101})
    assert refused.status_code == 422
    assert set(errors_in(refused)) == {"quota", "name"}
    assert await show_client(world.database, client_id) == client


async def test_only_the_operator_lifts_limits_beyond_those_of_the_console(
    world: World, admin: httpx.AsyncClient
) -> None:
    refused = await add(admin, per_minute="6001", quota="10000001")
    assert (refused.status_code, set(errors_in(refused))) == (422, {"per_minute", "quota"})
    client_id, _ = await added(admin, per_minute="6000", quota="10000000")
    path, more = f"/console/clients/{client_id}", {**PHONE_AGENT, "per_minute": "7000", "quota": "20000000"}
    assert (await admin.post(path, data=more)).status_code == 422
    await change_client(world.database, client_id, per_minute=7000, quota=20_000_000)
    assert (await admin.post(path, data={**more, "name": "Night agent"})).status_code == 303, "what it has"
    assert (await admin.post(path, data={**more, "per_minute": "7001"})).status_code == 422
    client = await show_client(world.database, client_id)
    assert (client.name, client.per_minute, client.quota) == ("Night agent", 7000, 20_000_000)
    spanish = await admin.post(path, data={**more, "quota": "20000001"}, headers={"Accept-Language": "es"})
    assert "Solo el operador" in spanish.text


async def test_a_form_that_was_opened_before_gives_back_no_scopes(world: World, admin: httpx.AsyncClient) -> None:
    client_id, _ = await added(admin)
    path = f"/console/clients/{client_id}"
    form = {**PHONE_AGENT, "shown": value_of(await admin.get(path), "shown")}
    fewer = {**form, "scopes": ["slots:read"]}
    assert (await admin.post(path, data=fewer)).status_code == 303
    stale = await admin.post(path, data={**form, "quota": "77"})
    assert (stale.status_code, "Somebody else has changed this client" in stale.text) == (409, True)
    client = await show_client(world.database, client_id)
    assert (client.scopes, client.quota != 77) == (("slots:read",), True)


@pytest.mark.parametrize(("overlap", "old_status"), [("24", 200), ("0", 401)])
async def test_a_new_secret_works_beside_the_old_one_for_as_long_as_was_chosen(
    world: World, overlap: str, old_status: int
) -> None:
    world.clock.now = datetime.now(UTC)  # secrets retire by the clock on the wall
    admin = await signed_in(world, role="admin")
    client_id, old = await added(admin)
    once = value_of(await admin.get(f"/console/clients/{client_id}"), "once")
    path = f"/console/clients/{client_id}/rotate"
    page = await admin.post(path, data={"overlap": overlap, "once": once})
    assert page.status_code == 200
    (new,) = SECRET.findall(page.text)
    assert new != old
    assert await token_status(world, client_id, new) == 200
    assert await token_status(world, client_id, old) == old_status
    again = await admin.post(path, data={"overlap": overlap, "once": once})
    assert again.headers["location"] == f"/console/clients/{client_id}?notice=secret_shown"
    assert await token_status(world, client_id, new) == 200
    wrong = await admin.post(path, data={"overlap": "forever", "once": "another"})
    assert wrong.status_code == 422


async def test_a_disabled_client_is_refused_until_it_is_enabled(world: World, admin: httpx.AsyncClient) -> None:
    client_id, secret = await added(admin)
    for action, status, shown in (("disable", 401, "Disabled"), ("enable", 200, "Active")):
        answer = await admin.post(f"/console/clients/{client_id}/{action}")
        assert answer.status_code == 303
        assert await token_status(world, client_id, secret) == status
        assert shown in text_of(await admin.get(f"/console/clients/{client_id}"))


async def test_a_thief_is_shut_out_by_revoking_tokens_and_by_narrowing_what_the_client_may_do(
    world: World, admin: httpx.AsyncClient
) -> None:
    client_id, secret = await added(admin)
    caller, path = world.anonymous(), f"/console/clients/{client_id}"
    caller.headers["X-Test-Client"], world.secrets[client_id] = client_id, secret
    for posted_to, fields, notice in (
        (f"{path}/revoke-tokens", {}, "tokens_revoked"),
        (path, {**PHONE_AGENT, "scopes": ["slots:read"]}, "client_changed"),
        (path, {**PHONE_AGENT, "scopes": ["slots:read"], "grant": "integration"}, "client_changed"),
        (f"{path}/rotate", {"overlap": "0", "once": "k"}, None),
    ):
        await world.renew(caller)
        assert (await caller.get("/api/capabilities")).status_code == 200
        answer = await admin.post(posted_to, data=fields)
        assert answer.headers.get("location") == (notice and f"{path}?notice={notice}")
        world.service.on_change("client", client_id)  # the listener's part
        assert (await caller.get("/api/capabilities")).status_code == 401
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = await caller.post("/mcp", json=mcp, headers={"Accept": "application/json, text/event-stream"})
        assert refused.status_code == 401
    client = await show_client(world.database, client_id)
    assert (client.grant, client.scopes) == ("integration", ("slots:read",))
    assert "refused if issued before" in text_of(await admin.get(path))
    assert "console.revoke_client_tokens" in [operation for operation, _, _ in await audited(world)]


async def test_every_change_is_recorded_under_the_staff_id(world: World, admin: httpx.AsyncClient) -> None:
    client_id, _ = await added(admin)
    path = f"/console/clients/{client_id}"
    await admin.post(path, data={**PHONE_AGENT, "quota": "7"})
    await admin.post(f"{path}/rotate", data={"overlap": "1", "once": "k"})
    await admin.post(f"{path}/disable")
    await admin.post(f"{path}/enable")
    for action, shown in (("trust", "Trusted to ask people"), ("distrust", "Not trusted to ask people")):
        assert (await admin.post(f"{path}/{action}")).status_code == 303
        assert shown in text_of(await admin.get(path))
    await add(admin, name="")
    records = [record for record in await audited(world) if "client" in record[0]]
    assert [(operation, outcome) for operation, outcome, _ in records] == [
        ("console.add_client", "executed"),
        ("console.change_client", "executed"),
        ("console.rotate_client_secret", "executed"),
        ("console.disable_client", "executed"),
        ("console.enable_client", "executed"),
        ("console.trust_client", "executed"),
        ("console.distrust_client", "executed"),
    ]
    assert {actor for _, _, actor in records} == {admin.headers[TEST_STAFF]}
    async with world.database.transaction(await practice_id(world)) as connection:
        subjects = await connection.fetch(
            "SELECT DISTINCT subject_ids FROM audit_record WHERE practice_id = 1 AND operation LIKE '%client%'"
        )
    assert [row["subject_ids"] for row in subjects] == [[client_id]]


async def test_another_practices_clients_do_not_exist(world: World, admin: httpx.AsyncClient) -> None:
    other = await signed_in(world, role="admin", practice="other")
    client_id, secret = await added(other, name="Theirs")
    before = await show_client(world.database, client_id)
    for method, path, fields in (
        ("GET", "", {}),
        ("POST", "", PHONE_AGENT),
        ("POST", "/rotate", {"overlap": "0", "once": "k"}),
        ("POST", "/revoke-tokens", {}),
        ("POST", "/disable", {}),
        ("POST", "/enable", {}),
        ("POST", "/trust", {}),
    ):
        theirs = await admin.request(method, f"/console/clients/{client_id}{path}", data=fields)
        nobodys = await admin.request(method, f"/console/clients/fd_{'x' * 20}{path}", data=fields)
        assert (theirs.status_code, nobodys.status_code) == (404, 404), path
        assert "Theirs" not in theirs.text
        assert "There is no such client" in theirs.text
    assert "Theirs" not in (await admin.get("/console/clients")).text
    assert await show_client(world.database, client_id) == before
    assert await token_status(world, client_id, secret) == 200


async def test_staff_can_neither_see_nor_change_clients(
    world: World, admin: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    client_id, _ = await added(admin)
    for page in ("", "/new", f"/{client_id}"):
        assert (await staff.get(f"/console/clients{page}")).status_code == 403
    for page in ("", f"/{client_id}", f"/{client_id}/rotate", f"/{client_id}/disable", f"/{client_id}/enable"):
        assert (await staff.post(f"/console/clients{page}", data=PHONE_AGENT)).status_code == 403
    assert not (await show_client(world.database, client_id)).disabled


async def test_a_name_is_text_wherever_it_is_shown(world: World, admin: httpx.AsyncClient) -> None:
    page = await add(admin, name=EVIL)
    check_harmless(page)
    (client_id,) = set(CLIENT_ID.findall(page.text))
    for path in (f"/clients/{client_id}", "/clients", "/usage", f"/usage?client={client_id}", "/audit"):
        check_harmless(await admin.get(f"/console{path}"))
    refused = await admin.post("/console/clients", data={**PHONE_AGENT, "name": EVIL, "scopes": [EVIL], "grant": EVIL})
    assert refused.status_code == 422
    check_harmless(refused)


async def test_limits_are_set_and_an_empty_field_follows_the_practice(world: World, admin: httpx.AsyncClient) -> None:
    limits = {"patients_per_hour": "20", "patients_per_day": "", "match_misses": "0", "known_patients_only": "yes"}
    limits |= {"writes_per_hour": "30", "upcoming_per_patient": "0"}
    client_id, _ = await added(admin, **limits)
    assert (await show_client(world.database, client_id)).access_limits == AccessLimits(20, None, 0, True, 30, 0)
    page = await admin.get(f"/console/clients/{client_id}")
    numbers = [name for name in limits if name != "known_patients_only"]
    assert [value_of(page, name) for name in numbers] == [limits[name] for name in numbers]
    assert "0 of 20" in text_of(page)
    assert "0 of 400" in text_of(page)
    assert "only patients that it matched" in text_of(page)
    faulty = {"patients_per_hour": "few", "match_misses": "101", "known_patients_only": "some"}
    faulty |= {"writes_per_hour": "1000001", "upcoming_per_patient": "1001"}
    refused = await admin.post(f"/console/clients/{client_id}", data={**PHONE_AGENT, **faulty})
    assert set(errors_in(refused)) == set(faulty)
    assert (await admin.post(f"/console/clients/{client_id}", data=PHONE_AGENT)).status_code == 303
    assert (await show_client(world.database, client_id)).access_limits == AccessLimits()


async def book_status(agent: httpx.AsyncClient) -> int:
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    return (await agent.post("/api/appointments", json=body)).status_code


async def test_an_alarm_and_failed_matches_are_seen_and_can_be_forgotten(
    world: World, admin: httpx.AsyncClient
) -> None:
    limits = AccessLimits(patients_per_hour=1, match_misses=2, writes_per_hour=2, upcoming_per_patient=1)
    agent = await world.client(access_limits=limits)
    client_id = agent.headers["X-Test-Client"]
    pages = ("/console/clients", f"/console/clients/{client_id}", "/console/practice/system")
    for path in pages:
        assert "exceeded its budget" not in text_of(await admin.get(path))
    booked = await book(agent)
    assert await book_status(agent) == 429
    assert (await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})).status_code == 200
    await book(agent)
    assert await book_status(agent) == 429
    match = {"firstName": "Alan", "lastName": "Turing", "dob": "1990-06-23", "phone": "0123"}
    assert (await agent.post("/api/patients/match", json=match)).status_code == 429
    for phone in ("2001", "2002"):
        assert (await agent.post("/api/patients/match", json={**match, "phone": phone})).status_code == 404
        world.clock.advance(minutes=2)
    for path in pages:
        text = text_of(await admin.get(path))
        assert "reached its hourly patient limit (1)" in text, path
        assert "reached its hourly limit of writes (2 of a kind)" in text, path
        assert "reached its limit of upcoming appointments for one patient (1)" in text, path
        assert "failed too often to match a person and is locked out until" in text, path
    page = await admin.get(f"/console/clients/{client_id}")
    assert "2 in the last week" in text_of(page)
    assert "Turing" not in page.text
    asked = re.search(r"subject=(asked_[0-9a-f]{32})", page.text)
    assert asked is not None
    found = await admin.get("/console/audit", params={"actor": client_id, "subject": asked[1]})
    assert text_of(found).count("attempted: Find a patient") == 3
    assert (await admin.post(f"/console/clients/{client_id}/forget-misses")).status_code == 303
    assert "locked out" not in text_of(await admin.get(f"/console/clients/{client_id}"))
    assert (await audited(world))[-1][0] == "console.forget_client_misses"
