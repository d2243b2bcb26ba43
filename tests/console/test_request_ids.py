"""The request id of an audit record is the trace id of the answer, on every page that leaves one."""

from secrets import token_bytes
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from frontdesk.access.staff.sessions import SESSION_LIFETIME
from frontdesk.console.guard import Page
from frontdesk.console.practice_forms.editor import Editor
from frontdesk.console.routes import pages
from frontdesk.feature import features
from tests.assistants.connecting import client_of, connected, registered
from tests.console.desk import records, stored
from tests.console.filled_forms import form_of
from tests.console.signing_in import TEST_STAFF, link_token, signed_in, use_link
from tests.console.test_webhook_pages import endpoint, names
from tests.console.walking import address_of
from tests.desk.acting import staff_member
from tests.support.audited_features import audited
from tests.support.shared_database import world_of_a_module
from tests.support.world import World, book, patient_id, slots

__all__ = ["names"]
world = world_of_a_module

SILENT_FORMS = {"/theme", "/account/language", "/calendar/preferences", "/practice/preview", "/passkeys/options"}
CONTINUED = {"/clients/{client_id}/undo/{undo_id}"}  # its changes carry the id of the request that began
NEEDS_AN_AUTHENTICATOR = {"/passkeys"}
READS_OF_PATIENTS = {
    "/away/{absence_id}",
    "/away/{absence_id}/calls",
    "/appointments/{appointment_id}",
    "/appointments/{appointment_id}/move",
    "/appointments/{appointment_id}/move/confirm",
    "/arrivals",
    "/arrivals/board",
    "/book/{patient_id}",
    "/book/{patient_id}/confirm",
    "/calendar",
    "/calendar/grid",
    "/clients/{client_id}/undo",
    "/clients/{client_id}/undo/{undo_id}",
    "/clients/{client_id}/undo/{undo_id}/calls",
    "/day-sheet",
    "/patients/{patient_id}",
    "/patients/{patient_id}/edit",
}
# Like that of the booking rules, these forms are applied by Editor.
OTHER_EDITORS = {
    "/practice/closures/holidays",  # an Editor behind the import of a library
    *(page.path for page in pages() if isinstance(getattr(page.handler, "__self__", None), Editor)),
} - {"/practice/rules"}
EXPORTS = {"/audit/export", "/practice/file.{ending}"}
RECORDED = [
    page
    for page in pages()
    if (page.method == "GET" and page.path in READS_OF_PATIENTS | EXPORTS)
    or (page.method == "POST" and page.path not in SILENT_FORMS | CONTINUED | NEEDS_AN_AUTHENTICATOR | OTHER_EDITORS)
]
PIN = {"pin": "2580", "again": "2580", "minutes": "5"}
CLIENT = {"name": "Phone", "grant": "agent", "scopes": "slots:read", "per_minute": "10", "quota": "10"}


@pytest.fixture(scope="module")
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def ids_for(world: World, page: Page, agent: httpx.AsyncClient, own_id: str) -> dict[str, str]:
    """Ids that the page's address needs, each of a record that exists."""
    ids = {"ending": "yaml"}
    if "{appointment_id}" in page.path:
        ids["appointment_id"] = await book(agent)
    if "{absence_id}" in page.path:
        ids["absence_id"] = await absence(world)
    if "{patient_id}" in page.path:
        ids["patient_id"] = await patient_id(agent)
    if page.path.endswith("/notes/remove"):
        insert = "INSERT INTO desk_note VALUES ($1, $2, 'note', NULL, 'other', 'Text', false, 'op_x', $3) RETURNING 1"
        await stored(world, insert, ids["patient_id"], world.clock())
    if "{staff_id}" in page.path:
        ids["staff_id"] = (await staff_member(world, name="Ben")).staff_id
    owner, now = ids.get("staff_id", own_id), world.clock()
    if "{passkey_id}" in page.path:
        ids["passkey_id"] = f"pk_of_{owner}"
        insert = "INSERT INTO staff_passkey VALUES ($1, $2, $3, '', 0, 'Tablet', $4)"
        await world.database.write(insert, ids["passkey_id"], owner, owner.encode(), now)
    if "{number}" in page.path:
        ids["number"] = owner.encode().hex()[:8]
        insert = "INSERT INTO staff_session VALUES ($1, $2, 'link', 'A browser', $3, $3, $4)"
        await world.database.write(insert, owner.encode(), owner, now, now + SESSION_LIFETIME)
    if page.path.startswith("/assistants/"):
        ids["client_id"] = await client_of(world, await connected(world, await signed_in(world)))
    elif "{client_id}" in page.path:
        ids["client_id"] = (await world.client()).headers["X-Test-Client"]
    if "{undo_id}" in page.path:
        ids["undo_id"] = f"undo_{ids['client_id']}"
        insert = "INSERT INTO client_undo VALUES ($1, $2, $3, $4, 'op_x', $4, '') RETURNING 1"
        await stored(world, insert, ids["undo_id"], ids["client_id"], world.clock())
    if "{feed_id}" in page.path:
        added = await (await signed_in(world, role="admin")).post("/console/practice/feeds", data={"provider": "10"})
        ids["feed_id"] = added.text.partition('action="/console/practice/feeds/')[2].partition("/revoke")[0]
    if page.path.startswith("/approvals"):
        ids["approval_id"] = await pending_approval(world)
    if "{endpoint_id}" in page.path:
        ids["endpoint_id"] = await endpoint(world)
    return ids


async def pending_approval(world: World) -> str:
    add = """INSERT INTO intent (practice_id, intent_id, client_id, operation, fingerprint, state, approval, proposal,
    created_at, expires_at, keep_until)
    VALUES ($1, $2, 'fd_x', 'book_appointment', '', 'challenged', 'pending', '{"readBack": {}, "requestId": "0"}',
    $3::timestamptz, $3 + interval '1 hour', $3 + interval '1 hour') RETURNING 1"""
    intent_id = token_bytes(32)
    await stored(world, add, intent_id, world.clock())
    return intent_id.hex()


async def absence(world: World) -> str:
    """Of a provider who has one appointment, which the calendar does not know."""
    start = """INSERT INTO provider_absence VALUES ($1, 'abs_1', 10, $2, $2, NULL, 'op_x', $3)
    ON CONFLICT DO NOTHING RETURNING 1"""
    add = """INSERT INTO absence_appointment (practice_id, absence_id, appointment_id, patient_id, location_id,
    visit_type_id, procedure_id, starts_at, ends_at)
    VALUES ($1, 'abs_1', 'apt', 'pat', 1, 21, 101, $2, $2) ON CONFLICT DO NOTHING RETURNING 1"""
    now = world.clock()
    await stored(world, start, now.replace(tzinfo=None), now)
    await stored(world, add, now)
    return "abs_1"


async def form_for(world: World, page: Page, browser: httpx.AsyncClient, agent: httpx.AsyncClient) -> dict[str, Any]:
    slot = (await slots(agent))[0]["id"]
    forms: dict[str, dict[str, Any]] = {
        "/agent": {"do": "run", "client": agent.headers["X-Test-Client"], "operation": "get_practice"},
        "/appointments/{appointment_id}/move": {"slot": slot},
        "/assistants/distrust": {"host": "assistant.example"},
        "/assistants/trust": {"host": "assistant.example"},
        "/arrivals/{appointment_id}": {"step": "call_in", "key": "another key"},
        "/appointments/{appointment_id}/record": {"status": "arrived", "key": "a key"},
        "/blocks": {"who": "provider-10", "from": "2026-12-01", "anyway": "yes"},
        "/blocks/remove": {"who": "provider-10", "starts": "2026-12-01T00:00", "ends": "2026-12-02T00:00"},
        "/book": {"search": "lovelace"},
        "/book/at": {
            "provider": "10",
            "location": "1",
            "date": "2026-11-16",
            "time": "10:00",
            "search": "lovelace",
        },
        "/override": {
            "provider": "10",
            "location": "1",
            "date": "2026-11-16",
            "time": "07:00",
            "visit": "21-101",
            "patient": await patient_id(agent),
        },
        "/walk-in": {"search": "lovelace"},
        "/book/{patient_id}": {"slot": slot},
        "/clients": {**CLIENT, "once": "one"},
        "/clients/{client_id}": CLIENT,
        "/clients/{client_id}/rotate": {"overlap": "24", "once": "two"},
        "/patients": {"search": "lovelace"},
        "/practice/webhooks": {"url": "https://hooks.example.com/in", "events": "appointment.booked", "once": "three"},
        "/pin": PIN,
        "/patients/new": {"firstName": "Mary", "lastName": "Moe", "dob": "1980-12-26", "phone": "+1 555 010 0180"},
        "/patients/{patient_id}/edit": {"phone": "+1 555 010 0111"},
        "/staff": {"name": "Rosa", "role": "staff"},
        "/staff/{staff_id}/change": {"change": "admin"},
    }
    if page.path == "/practice/apply":
        version = await world.database.fetchval("SELECT version FROM practice WHERE slug = 'harbor'")
        return {"text": (await browser.get("/console/practice/file.yaml")).text, "version": str(version)}
    if page.path == "/practice/rules":
        address = "/console/practice/rules"
        return {**form_of(await browser.get(address), address), "step": "apply"}
    if page.path == "/lock":
        await browser.post("/console/pin", data=PIN)
    if page.path == "/connect":
        return {"request": urlencode((await registered(world)).request()), "decision": "connect"}
    of_features = (audited(feature.name).forms for feature in features())
    return {**dict(forms), **{path: form for each in of_features for path, form in each.items()}}.get(page.path, {})


@pytest.mark.parametrize("page", RECORDED, ids=lambda page: f"{page.method} {page.path}")
async def test_every_record_of_a_page_carries_the_trace_id_of_its_answer(
    world: World, agent: httpx.AsyncClient, page: Page, names: dict[str, str]
) -> None:
    names["hooks.example.com"] = "93.184.216.34"
    browser = await signed_in(world, role="admin")
    address = address_of(page, await ids_for(world, page, agent, browser.headers[TEST_STAFF]))
    if page.path.endswith("/confirm") and page.method == "GET":
        address += "?slot=" + (await slots(agent))[0]["id"]
    form = await form_for(world, page, browser, agent) if page.method == "POST" else None
    before = {record["record_id"] for record in await records(world)}
    answer = await browser.request(page.method, address, data=form)
    assert answer.status_code < 500
    made = [record for record in await records(world) if record["record_id"] not in before]
    assert made, answer.status_code
    assert {record["request_id"] for record in made} == {answer.headers["X-SVC-TRACE-ID"]}
    assert browser.headers[TEST_STAFF] in {record["actor"] for record in made}


async def test_signing_in_is_recorded_under_the_trace_id_of_its_answer(world: World) -> None:
    member = await staff_member(world)
    answer = await use_link(world.anonymous(), await link_token(world, member.staff_id))
    [signed] = await records(world, actor=member.staff_id, operation="console.sign_in")
    assert signed["request_id"] == answer.headers["X-SVC-TRACE-ID"]
    again = await use_link(world.anonymous(), "used up" * 6)
    assert again.status_code == 401


async def test_a_callers_own_trace_id_is_kept(world: World) -> None:
    browser, trace = await signed_in(world), "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = await browser.get("/console/calendar", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert answer.headers["X-SVC-TRACE-ID"] == trace
    [look] = await records(world, actor=browser.headers[TEST_STAFF], operation="console.calendar")
    assert look["request_id"] == trace
