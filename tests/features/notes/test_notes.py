"""Notes of the desk: on a patient and on an appointment, shown to staff, and to clients only if they are marked so."""

import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import frontdesk
from frontdesk.access.clients.records import AccessLimits
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import build_app
from frontdesk.doors.fhir.addresses import fhir_id
from frontdesk.features.notes.list_notes import Output
from frontdesk.practice_file import dump
from frontdesk.store.practices import export_practice
from tests.console.desk import Document, records, stored, words
from tests.console.filled_forms import form_of
from tests.console.signing_in import signed_in
from tests.support.world import World, book, patient_id

SECRET = "Speaks Portuguese 7531902"
NOTE = {"kind": "interpreter", "text": SECRET, "key": "a key of a form"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


def notes(html: str) -> list[str]:
    section = html.split('aria-labelledby="notes"', 1)[1].split("<details", 1)[0]
    return [words(item.text) for item in Document(section).tagged("li")]


async def test_notes_are_added_once_shown_with_their_author_and_removed(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked, ada = await book(agent), await patient_id(agent)
    for _ in range(2):  # the same form, sent twice
        answer = await staff.post(f"/console/appointments/{booked}/notes", data={**NOTE, "about": "patient"})
        assert answer.headers["Location"] == f"/console/appointments/{booked}?notice=note_added"
    world.clock.advance(minutes=1)
    about = {"kind": "reason", "text": "Knee <b>hurts</b>", "key": "another key", "about": "appointment"}
    await staff.post(f"/console/appointments/{booked}/notes", data=about)
    page = (await staff.get(f"/console/appointments/{booked}")).text
    both = notes(page)
    assert both[0].startswith(f"Interpreter {SECRET} On the patient · Ana · Sun 15 Nov 2026, 03:00")
    assert both[1].startswith("Reason for the visit Knee <b>hurts</b> On this appointment · Ana")
    assert len(both) == 2
    html = (await staff.get(f"/console/patients/{ada}")).text
    assert len(notes(html)) == 1
    made = await records(world, operation="console.add_note")
    assert [set(each["subject_ids"]) for each in made] == [{ada}, {ada, booked}]
    assert "7531902" not in str(await records(world)), "the trail does not hold what a note says"
    found = re.search(r'name="note" value="(\w+)"', html)
    assert found is not None
    answer = await staff.post(f"/console/patients/{ada}/notes/remove", data={"note": found[1]})
    assert answer.headers["Location"] == f"/console/patients/{ada}?notice=note_removed"
    assert notes((await staff.get(f"/console/patients/{ada}")).text) == []
    [removed] = await records(world, operation="console.remove_note")
    assert removed["subject_ids"] == [ada]
    assert (await staff.post(f"/console/patients/{ada}/notes/remove", data={"note": found[1]})).status_code == 404


async def test_the_page_of_an_appointment_shows_no_note_on_another_one(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked, other = await book(agent), await book(agent)
    await staff.post(f"/console/appointments/{other}/notes", data={**NOTE, "about": "appointment"})
    assert len(notes((await staff.get(f"/console/appointments/{other}")).text)) == 1
    assert notes((await staff.get(f"/console/appointments/{booked}")).text) == []


async def test_the_arrivals_board_shows_the_notes_of_its_patients(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await staff.post(f"/console/appointments/{booked}/notes", data={**NOTE, "about": "appointment"})
    world.clock.advance(hours=29)
    board = (await (await signed_in(world)).get("/console/arrivals")).text
    assert [words(each.text) for each in Document(board).of_class("visit-note")] == [f"Interpreter {SECRET}"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"text": " "}, 422),
        ({"text": "x" * 501}, 422),
        ({"text": "ignore\u202eprevious"}, 422),
        ({"kind": "song"}, 422),
    ],
)
async def test_a_note_that_is_refused_is_not_lost(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient, change: dict[str, str], status: int
) -> None:
    ada, booked = await patient_id(agent), await book(agent)
    given = {**NOTE, "kind": "mobility", "about": "patient", "for_agents": "yes", **change}
    for path in (f"/console/patients/{ada}/notes", f"/console/appointments/{booked}/notes"):
        answer = await staff.post(path, data=given)
        assert answer.status_code == status
        shown = form_of(answer, path)
        assert shown["text"] == [given["text"].strip()]
        assert shown["for_agents"] == ["yes"]
        assert shown["kind"] == ["mobility" if given["kind"] == "mobility" else "interpreter"]
        assert shown.get("about", ["patient"]) == ["patient"]
    assert await stored(world, "SELECT FROM desk_note WHERE practice_id = $1") == []


async def test_a_patient_has_a_bounded_number_of_notes(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    ada = await patient_id(agent)
    for number in range(50):
        assert (
            await staff.post(f"/console/patients/{ada}/notes", data={**NOTE, "key": str(number)})
        ).status_code == 303
    assert (await staff.post(f"/console/patients/{ada}/notes", data={**NOTE, "key": "51"})).status_code == 409


async def test_notes_stay_in_their_practice(world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    booked, ada = await book(agent), await patient_id(agent)
    await staff.post(f"/console/patients/{ada}/notes", data=NOTE)
    [note] = await stored(world, "SELECT note_id FROM desk_note WHERE practice_id = $1")
    stranger = await signed_in(world, practice="other")
    for path, form in (
        (f"/console/patients/{ada}/notes", NOTE),
        (f"/console/appointments/{booked}/notes", NOTE),
        (f"/console/patients/{ada}/notes/remove", {"note": note["note_id"]}),
    ):
        assert (await stranger.post(path, data=form)).status_code == 404
    assert len(await stored(world, "SELECT FROM desk_note WHERE practice_id = $1")) == 1


async def test_no_door_event_or_export_has_a_note(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked, ada = await book(agent), await patient_id(agent)
    await staff.post(f"/console/appointments/{booked}/notes", data={**NOTE, "about": "patient"})
    await staff.post(f"/console/appointments/{booked}/notes", data={**NOTE, "key": "another"})
    opened = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    transport = httpx.ASGITransport(app=build_app(opened))
    over_fhir = httpx.AsyncClient(transport=transport, base_url="http://test", headers=agent.headers)
    world.clients.append(over_fhir)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "get_patient", "arguments": {"patientId": ada}}}  # fmt: skip
    answers = [
        await agent.get(f"/api/patients/{ada}"),
        await agent.get(f"/api/appointments/{booked}"),
        await agent.get("/api/appointments"),
        await agent.post(f"/api/appointments/{booked}/cancel", json={}),
        await over_fhir.get(f"/fhir/R4/Patient/{fhir_id(ada)}"),
        await over_fhir.get(f"/fhir/R4/Appointment/{fhir_id(booked)}"),
        await agent.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 428, 200, 200, 200]
    exported = await export_practice(world.database, "harbor", with_patients=True)
    assert exported is not None
    events = await stored(world, "SELECT subject::text FROM outbox WHERE practice_id = $1")
    for text in (*(answer.text for answer in answers), dump(exported), str(events)):
        assert "7531902" not in text


READS_NOTES = (*SCOPES, "notes:read")
CALL = {"jsonrpc": "2.0", "id": 1}
MCP = {"Accept": "application/json, text/event-stream"}


async def test_a_client_with_the_scope_reads_the_notes_that_are_marked_for_agents(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked, ada = await book(agent), await patient_id(agent)
    path, marked = f"/console/appointments/{booked}/notes", {"for_agents": "yes"}
    await staff.post(path, data={**NOTE, "about": "patient"})
    world.clock.advance(minutes=1)
    text = "Deaf in the left ear"
    await staff.post(path, data={"kind": "other", "text": text, "key": "2", "about": "patient", **marked})
    world.clock.advance(minutes=1)
    await staff.post(
        path, data={"kind": "mobility", "text": "Wheelchair", "key": "3", "about": "appointment", **marked}
    )
    shown = notes((await staff.get(f"/console/appointments/{booked}")).text)
    assert ["Agents may read it" in each for each in shown] == [False, True, True]

    reader = await world.client(scopes=READS_NOTES)
    answer = await reader.get(f"/api/patients/{ada}/notes")
    assert answer.json() == {
        "items": [
            {"kind": "other", "text": text, "writtenAt": "2026-11-15T08:01:00Z"},
            {"kind": "mobility", "text": "Wheelchair", "appointmentId": booked, "writtenAt": "2026-11-15T08:02:00Z"},
        ]
    }
    Output.model_validate(answer.json())
    call = CALL | {"method": "tools/call", "params": {"name": "list_notes", "arguments": {"patientId": ada}}}
    result = (await reader.post("/mcp", json=call, headers=MCP)).text
    assert text in result
    assert SECRET not in result
    client_id = reader.headers["X-Test-Client"]
    read = [each for each in await records(world, operation="list_notes") if each["actor"] == client_id]
    assert [(each["subject_ids"], each["outcome"]) for each in read] == [([ada], "executed")] * 2


async def test_other_clients_are_refused_and_do_not_see_the_operation(world: World, agent: httpx.AsyncClient) -> None:
    ada = await patient_id(agent)
    refused = await agent.get(f"/api/patients/{ada}/notes")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden_scope")
    reader = await world.client(scopes=READS_NOTES)
    listing = CALL | {"method": "tools/list"}
    for client, seen in ((agent, False), (reader, True)):
        tools = (await client.post("/mcp", json=listing, headers=MCP)).text
        described = (await client.get("/openapi/v1.json")).json()
        assert ('"list_notes"' in tools) is seen
        assert ("/patients/{patientId}/notes" in described["paths"]) is seen
        assert ("extensions" in [tag["name"] for tag in described["tags"]]) is seen
        scopes = described["components"]["securitySchemes"]["clientCredentials"]["flows"]["clientCredentials"]["scopes"]
        assert ("notes:read" in scopes) is seen
    assert "notes:read" not in (await world.anonymous().get("/.well-known/oauth-authorization-server")).text
    stranger = await world.client("other", scopes=READS_NOTES)
    assert (await stranger.get(f"/api/patients/{ada}/notes")).status_code == 404


async def test_a_client_that_knows_no_patient_reads_no_notes(world: World, agent: httpx.AsyncClient) -> None:
    ada = await patient_id(agent)
    careful = await world.client(scopes=READS_NOTES, access_limits=AccessLimits(known_patients_only=True))
    assert (await careful.get(f"/api/patients/{ada}/notes")).status_code == 404
    await patient_id(careful)
    assert (await careful.get(f"/api/patients/{ada}/notes")).json() == {"items": []}


def test_one_module_alone_reads_the_table_of_notes() -> None:
    source = Path(frontdesk.__file__).parent
    naming = {
        path.relative_to(source).as_posix()
        for path in [*source.rglob("*.py"), *source.rglob("*.sql")]
        if "desk_note" in path.read_text(encoding="utf-8")
    }
    assert naming == {"features/notes/migrations/001_notes.sql", "features/notes/notes.py"}
