"""The page "see what an agent sees": real messages of both doors, writes in sandboxes only, the person recorded."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.features.agent_view.scenarios import SCENARIOS
from frontdesk.features.agent_view.state import ScenarioState, load_state
from frontdesk.operations import OPERATIONS
from tests.console.signing_in import ACCESS_TOKEN, TEST_STAFF, signed_in
from tests.support.world import PRACTICE, World

ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "+1 555 010 0199", "dob": "1985-12-10"}


class FormReader(HTMLParser):
    """The fields of the form that runs the next step, as a browser without scripts would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._inside = False
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._inside = given.get("id") == "agent-form"
        elif self._inside and tag == "input":
            self.fields[given["name"] or ""] = given.get("value") or ""
        elif self._inside and tag == "select":
            self._select = given["name"]
        elif self._inside and tag == "option" and ("selected" in given or self._select not in self.fields):
            self.fields[self._select or ""] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False


def form_of(page: httpx.Response) -> dict[str, str]:
    reader = FormReader()
    reader.feed(page.text)
    return reader.fields


def text_of(page: httpx.Response) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.text))


async def start(browser: httpx.AsyncClient, client: httpx.AsyncClient, scenario: str) -> httpx.Response:
    fields = {"do": "start", "client": client.headers["X-Test-Client"], "scenario": scenario}
    page = await browser.post("/console/agent", data=fields)
    assert page.status_code == 200, page.text
    return page


async def run(browser: httpx.AsyncClient, page: httpx.Response, **changed: str) -> httpx.Response:
    fields = form_of(page)
    assert fields, "there is no step to run"
    return await browser.post("/console/agent", data={**fields, "do": "run", **changed})


@pytest.fixture
async def sandbox(world: World) -> None:
    await world.import_file(PRACTICE.replace("SLUG, name", "harbor, sandbox: true, name"))


def arguments(values: dict[str, str]) -> dict[str, str]:
    return {f"arg.{name}": value for name, value in values.items()}


async def booked_up_to_the_challenge(browser: httpx.AsyncClient, client: httpx.AsyncClient) -> httpx.Response:
    """The short scenario until a booking is proposed; the page that offers to confirm it."""
    page = await run(browser, await start(browser, client, "soonest"), **arguments(ADA))
    page = await run(browser, page, **arguments({"name": "Follow-up"}))
    for _ in range(4):
        assert page.status_code == 200, page.text
        page = await run(browser, page)
    return page


Rows = Callable[[str], Awaitable[list[Any]]]


@pytest.fixture
async def rows(owner_dsn: str) -> AsyncIterator[Rows]:
    """What is stored, whatever practice it belongs to."""
    connection = await asyncpg.connect(owner_dsn, server_settings={"search_path": "frontdesk, public"})

    async def fetch(sql: str) -> list[Any]:
        return list(await connection.fetch(sql))

    yield fetch
    await connection.close()


APPOINTMENTS = "SELECT appointment_id, status FROM appointment"


@pytest.mark.usefixtures("sandbox")
async def test_a_booking_can_be_watched_from_search_to_appointment(
    world: World, admin: httpx.AsyncClient, rows: Rows
) -> None:
    client = await world.client()
    page = await booked_up_to_the_challenge(admin, client)
    text = text_of(page)
    assert "428 Precondition Required" in text
    assert "NOTHING HAS BEEN CHANGED YET" in text, "the other door's own words"
    assert re.search(r"“Follow-up with Dr\. .+ at .+, Monday, November 16 at \d\d:\d\d\. Is that right\?”", text)
    assert await rows(APPOINTMENTS) == []
    assert form_of(page)["arg.confirmationToken"]
    page = await run(admin, page)
    text = text_of(page)
    assert "HTTP/1.1 201 Created" in text
    ids = re.findall(r'"appointmentId": "(apt_\w{22})"', text)
    assert len(ids) == 2
    assert len(set(ids)) == 1, "what was done once is answered twice"
    assert len(await rows(APPOINTMENTS)) == 1
    page = await run(admin, page)  # get_appointment
    assert '"status": "booked"' in text_of(page)
    page = await run(admin, await run(admin, page))  # cancelled again, in two phases
    assert "End of the scenario" in page.text
    assert [tuple(row) for row in await rows(APPOINTMENTS)] == [(ids[0], "cancelled")]


async def test_outside_a_sandbox_the_view_ends_with_the_challenge(
    world: World, admin: httpx.AsyncClient, rows: Rows
) -> None:
    client = await world.client()
    page = await booked_up_to_the_challenge(admin, client)
    assert "428 Precondition Required" in text_of(page)
    assert "sandbox practices only" in page.text
    assert form_of(page) == {}, "no way to confirm is offered"
    assert "agent-simulate" not in page.text
    token = re.findall(r'"confirmationToken": "(\w{32})"', text_of(page))[0]
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    state = load_state(unescape(hidden["state"]))
    assert state.pending is not None
    forced = {f"arg.{name}": str(value) for name, value in state.pending[1].items()}
    refused = await admin.post(
        "/console/agent", data={**hidden, **forced, "do": "run", "scenario": "", "operation": "book_appointment"}
    )
    assert refused.status_code == 409
    assert token in forced["arg.confirmationToken"]
    assert await rows(APPOINTMENTS) == []


async def test_outside_a_sandbox_an_integration_writes_nothing(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client(grant="integration")
    page = await start(admin, client, "new")
    page = await run(admin, page)  # nobody matches
    assert "sandbox practices only" in page.text
    fields = {"do": "run", "client": client.headers["X-Test-Client"], "operation": "create_patient"}
    refused = await admin.post("/console/agent", data={**fields, **arguments(ADA)})
    assert refused.status_code == 409


@pytest.mark.usefixtures("sandbox")
async def test_an_integrations_write_is_sent_twice_with_one_key(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client(grant="integration")
    page = await run(admin, await start(admin, client, "new"))
    page = await run(admin, page)
    text = text_of(page)
    assert text.count("HTTP/1.1 201 Created") == 2
    assert len(set(re.findall(r"Idempotency-Key: (\w+)", text))) == 1
    assert len(set(re.findall(r'"patientId": "(pat_\w{22})"', text))) == 1
    assert form_of(page)["operation"] == "get_patient", "there is nothing to confirm"


@pytest.mark.usefixtures("sandbox")
async def test_a_lost_answer_is_found_again_at_the_other_door(
    world: World, admin: httpx.AsyncClient, rows: Rows
) -> None:
    client = await world.client()
    page = await booked_up_to_the_challenge(admin, client)
    page = await run(admin, page, simulate="internal")
    text = text_of(page)
    assert "HTTP/1.1 500 Internal Server Error" in text
    assert len(re.findall(r'"appointmentId": "apt_\w{22}"', text)) == 1
    assert len(await rows(APPOINTMENTS)) == 1
    assert form_of(page)["operation"] == "get_appointment", "the conversation goes on"


@pytest.mark.usefixtures("sandbox")
async def test_every_operation_can_be_simulated_to_fail_on_both_doors(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client()
    fields = {"do": "run", "client": client.headers["X-Test-Client"], "simulate": "upstream_unavailable"}
    page = await admin.post("/console/agent", data={**fields, "operation": "get_practice"})
    text = text_of(page)
    assert "HTTP/1.1 502 Bad Gateway" in text
    assert '"isError": true' in text
    assert '"frontdesk-simulate": "upstream_unavailable"' in text
    assert "Frontdesk-Simulate: upstream_unavailable" in text


async def test_a_client_without_a_scope_is_refused_as_in_earnest(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client(scopes=["practices:read"])
    page = await run(admin, await start(admin, client, "soonest"), **arguments(ADA))
    assert text_of(page).count('"code": "forbidden_scope"') == 2
    assert form_of(page)["arg.firstName"] == "Ada", "what was typed is kept for another try"


async def test_a_disabled_client_is_refused_as_in_earnest(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client()
    await world.database.write(
        "UPDATE client SET disabled = true WHERE client_id = $1", client.headers["X-Test-Client"]
    )
    world.service.authenticator.on_change("client", client.headers["X-Test-Client"])
    page = await run(admin, await start(admin, client, "book"))
    assert text_of(page).count("HTTP/1.1 401 Unauthorized") == 2


async def test_calls_count_against_the_client(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client(per_minute=3)
    page = await start(admin, client, "book")
    await run(admin, page)
    page = await run(admin, page)
    assert "HTTP/1.1 429 Too Many Requests" in text_of(page)


async def test_the_access_token_is_never_shown(world: World, admin: httpx.AsyncClient) -> None:
    page = await run(admin, await start(admin, await world.client(), "book"))
    assert "Authorization: Bearer $TOKEN" in text_of(page)
    assert not ACCESS_TOKEN.search(page.text)


async def test_the_staff_member_is_recorded_beside_the_client(
    world: World, admin: httpx.AsyncClient, rows: Rows
) -> None:
    client = await world.client()
    await run(admin, await start(admin, client, "soonest"), **arguments(ADA))
    stored = await rows("SELECT actor, operation, request_id, subject_ids FROM audit_record")
    by_operation = {(row["operation"], row["actor"]): row for row in stored}
    staff_id, agent = admin.headers[TEST_STAFF], client.headers["X-Test-Client"]
    looked, read = by_operation["console.agent_view", staff_id], by_operation["match_patient", agent]
    assert looked["request_id"] == read["request_id"]
    assert looked["subject_ids"] == [agent]


async def test_staff_may_not_look_through_a_clients_eyes(world: World, staff: httpx.AsyncClient) -> None:
    client = await world.client()
    assert (await staff.get("/console/agent")).status_code == 403
    fields = {"do": "run", "client": client.headers["X-Test-Client"], "operation": "get_practice"}
    assert (await staff.post("/console/agent", data=fields)).status_code == 403


async def test_a_client_of_another_practice_does_not_exist(world: World, admin: httpx.AsyncClient) -> None:
    client = await world.client(practice="other")
    fields = {"do": "run", "client": client.headers["X-Test-Client"], "operation": "get_practice"}
    assert (await admin.post("/console/agent", data=fields)).status_code == 404
    assert client.headers["X-Test-Client"] not in (await admin.get("/console/agent")).text
    stranger = await signed_in(world, "admin", practice="other")
    assert (await stranger.post("/console/agent", data=fields)).status_code == 200


async def test_a_practice_without_clients_is_told_to_add_one(admin: httpx.AsyncClient) -> None:
    page = await admin.get("/console/agent")
    assert page.status_code == 200
    assert 'href="/console/clients"' in page.text


async def test_what_a_patient_typed_is_shown_and_not_run(world: World, admin: httpx.AsyncClient) -> None:
    page = await run(admin, await start(admin, await world.client(), "new"), **{"arg.lastName": "<script>x</script>"})
    assert "<script>x" not in page.text
    assert "&lt;script&gt;x" in page.text


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", '{"known": [], "pending": 1, "outcomes": [2]}', '{"known": {"a": [[[]], 1, ["x"]]}}'],
)
def test_a_state_that_nobody_wrote_is_dropped(text: str) -> None:
    state = load_state(text)
    assert not any(state.known.values())
    assert state.pending is None
    assert state.outcomes == {}


def test_a_state_survives_the_way_through_the_browser() -> None:
    state = ScenarioState()
    operations = {operation.name: operation for operation in OPERATIONS}
    items = [{"id": 10, "name": "Dr. Chen"}, {"id": 11, "name": "Dr. Núñez"}]
    state.learn(operations["list_providers"], {}, {"items": items})
    state.learn(operations["get_provider"], {"providerId": 11}, {"id": 11})
    state.outcomes[0] = 200
    again = load_state(state.dump())
    assert [choice.value for choice in again.known["providerId"]] == [11, 10], "what was chosen comes first"
    assert again.outcomes == {0: 200}


def test_scenarios_name_operations_and_fields_that_exist() -> None:
    operations = {operation.name: operation for operation in OPERATIONS}
    for scenario in SCENARIOS.values():
        for step in scenario.steps:
            fields = {field.alias or name for name, field in operations[step.operation].input.model_fields.items()}
            assert {*step.given, *step.of_demo} <= fields, step.heading
