"""What a client did since a time is listed and undone together: once, audited, never against a change of others."""

import asyncio
import csv
import io
from dataclasses import dataclass

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits, show_client
from frontdesk.engine.execute import Call, Engine
from frontdesk.features.client_undo import client_undo
from frontdesk.features.client_undo.store import ClientUndoStore
from frontdesk.store.database import DatabaseUnavailable
from tests.console.desk import Document, records, words
from tests.console.filled_forms import form_of
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.security.test_patient_budget import second_node
from tests.support.world import UNLIMITED, World, book, confirmed, patient_id, slots

SHOT = {"visitTypeId": 22, "procedureId": 103}
TODAY = {"from": "2026-11-15", "from_time": "04:30"}  # at the practice: half past nine UTC


@dataclass
class Gone:
    """What a client left: Ada's appointment is cancelled, José's moved, Alan's confirmed, and Grace has a new one."""

    agent: httpx.AsyncClient
    ada: str
    jose: str
    alan: str
    booked: str  # at the time that was Ada's

    @property
    def path(self) -> str:
        return f"/console/clients/{self.agent.headers['X-Test-Client']}/undo"


@pytest.fixture
async def gone(world: World) -> Gone:
    receptionist = await world.client(grant="integration")
    patients = {first: await patient_id(receptionist, first) for first in ("Ada", "José", "Alan")}
    ids = []
    for first, slot in zip(patients, await slots(receptionist), strict=False):
        body = {"patientId": patients[first], "slotId": slot["id"]}
        ids.append((await receptionist.post("/api/appointments", json=body)).json()["appointmentId"])
    ada, jose, alan = ids
    world.clock.advance(hours=2)
    agent = await world.client(access_limits=UNLIMITED)
    await confirmed(agent, "POST", f"/api/appointments/{ada}/cancel", {})
    await move(agent, jose, "11:00")
    await confirmed(agent, "POST", f"/api/appointments/{alan}/confirm", {})
    return Gone(agent, ada, jose, alan, await book(agent, "Grace", **SHOT))


@pytest.fixture
async def admin(world: World, gone: Gone) -> httpx.AsyncClient:
    """Signed in afterwards: a session ends without use."""
    assert gone.booked
    return await signed_in(world, role="admin")


async def move(agent: httpx.AsyncClient, appointment: str, clock: str, **query: object) -> None:
    slot = next(each for each in await slots(agent, **query) if each["start"][11:16] == clock)
    answer = await confirmed(agent, "POST", f"/api/appointments/{appointment}/reschedule", {"slotId": slot["id"]})
    assert answer.status_code == 200, answer.text


async def place(agent: httpx.AsyncClient, appointment: str) -> tuple[int, str, str]:
    found = (await agent.get(f"/api/appointments/{appointment}")).json()
    return found["providerId"], found["start"][11:16], found["status"]


def listed(html: str, attribute: str = "data-undo") -> dict[str, str]:
    """The rows of a list by appointment."""
    return {each.attributes[attribute]: words(each.text) for each in Document(html).having(attribute)}


async def start(admin: httpx.AsyncClient, path: str) -> httpx.Response:
    """Agrees to the list as it is shown. Answers with the page of the undo."""
    shown = await admin.get(path, params=TODAY)
    answer = await admin.post(path, data={**form_of(shown, path, having="shown"), "do": "start"})
    assert answer.status_code == 303, answer.text
    return answer


async def continued(admin: httpx.AsyncClient, path: str) -> str:
    """The page after its script has gone on as long as there is something to do."""
    while "data-continue" in (html := (await admin.get(path)).text):
        assert (await admin.post(path)).status_code == 303
    return html


async def undone(admin: httpx.AsyncClient, path: str) -> str:
    return await continued(admin, (await start(admin, path)).headers["Location"])


async def test_everything_is_listed_first_and_undone_together(
    world: World, admin: httpx.AsyncClient, gone: Gone
) -> None:
    person = {"firstName": "Made", "lastName": "Up", "dob": "1990-01-01", "phone": "555 010 9999"}
    made_up = (await confirmed(gone.agent, "POST", "/api/patients", person)).json()["patientId"]
    page = (await admin.get(gone.path.removesuffix("/undo"))).text
    assert "Undo what this client did" in page
    before = [await place(gone.agent, each) for each in (gone.ada, gone.jose, gone.alan, gone.booked)]

    shown = await admin.get(gone.path, params=TODAY)
    assert list(listed(shown.text).items()) == [
        (
            gone.booked,
            "Grace Hopper Mon 16 Nov 09:00, Dr. Robert Chen, Vaccination Booked The booking will be cancelled.",
        ),
        (
            gone.alan,
            "Alan Turing Mon 16 Nov 09:30, Dr. Robert Chen, Follow-up Confirmed The confirmation will be undone.",
        ),
        (
            gone.jose,
            "José Núñez-O'Brien Mon 16 Nov 09:15, Dr. Robert Chen, Follow-up Moved The appointment will be moved back.",
        ),
        (
            gone.ada,
            "Ada Lovelace Mon 16 Nov 09:00, Dr. Robert Chen, Follow-up Cancelled The cancellation will be undone.",
        ),
    ]
    assert made_up in shown.text
    assert [await place(gone.agent, each) for each in (gone.ada, gone.jose, gone.alan, gone.booked)] == before

    answer = await start(admin, gone.path)
    html = await continued(admin, answer.headers["Location"])
    assert "4 of 4 appointments undone" in html
    assert await place(gone.agent, gone.ada) == (10, "09:00", "booked")
    assert await place(gone.agent, gone.jose) == (10, "09:15", "booked")
    assert await place(gone.agent, gone.alan) == (10, "09:30", "booked")
    assert (await place(gone.agent, gone.booked))[2] == "cancelled"
    assert (await gone.agent.get(f"/api/patients/{made_up}")).status_code == 200
    assert made_up in html

    act = [each for each in await records(world) if each["request_id"] == answer.headers["X-SVC-TRACE-ID"]]
    assert {(each["actor"], each["outcome"]) for each in act} == {(admin.headers[TEST_STAFF], "executed")}
    assert [each["operation"] for each in act] == [
        "console.undo_client", "cancel_appointment", "console.restore_appointment", "console.move_back",
        "console.restore_appointment",
    ]  # fmt: skip
    told = words(Document((await admin.get("/console/audit")).text).tagged("main")[0].text)
    assert "Ana undid what agent of harbor did" in told
    assert await records(world, operation="console.preview_client_undo") != []


async def test_the_patients_to_call_are_listed_and_downloaded(admin: httpx.AsyncClient, gone: Gone) -> None:
    path = (await start(admin, gone.path)).headers["Location"]
    html = await continued(admin, path)
    assert list(listed(html, "data-call").values()) == [
        "Grace Hopper +1 555 010 0142 Mon 16 Nov 09:00, Dr. Robert Chen, Vaccination The booking was cancelled.",
        "Ada Lovelace +1 555 010 0199 Mon 16 Nov 09:00, Dr. Robert Chen, Follow-up The cancellation was undone.",
        "José Núñez-O'Brien +1 555 010 0177 Mon 16 Nov 09:15, Dr. Robert Chen, Follow-up"
        " The appointment was moved back.",
    ]
    file = await admin.get(f"{path}/calls")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    heading, *rows = csv.reader(io.StringIO(file.text))
    assert heading == ["Patient", "Phone", "Appointment", "Provider", "What was undone", "Not undone"]
    assert rows[1] == [
        "Ada Lovelace", "'+1 555 010 0199", "2026-11-16 09:00", "Dr. Robert Chen", "The cancellation was undone.", "",
    ]  # fmt: skip
    assert len(rows) == 3
    page = (await admin.get(gone.path.removesuffix("/undo"))).text
    assert f'href="{path}"' in page


async def test_nothing_happens_unless_the_list_that_was_shown_is_agreed_to(
    world: World, admin: httpx.AsyncClient, gone: Gone
) -> None:
    shown = await admin.get(gone.path, params=TODAY)
    form = {**form_of(shown, gone.path, having="shown"), "do": "start"}
    another = await book(gone.agent, **SHOT, providerId=11)
    answer = await admin.post(gone.path, data=form)
    assert answer.status_code == 409
    assert "Nothing was undone: look at the list again." in answer.text
    assert another in listed(answer.text)
    for tampered in ({**form, "shown": ""}, {**form, "from": "2026-11-14"}):
        assert (await admin.post(gone.path, data=tampered)).status_code == 409
    assert (await place(gone.agent, another))[2] == "booked"
    assert await records(world, operation="console.undo_client") == []


async def test_the_client_is_disabled_first(world: World, admin: httpx.AsyncClient, gone: Gone) -> None:
    shown = await admin.get(gone.path, params=TODAY)
    form = {**form_of(shown, gone.path), "do": "disable"}
    answer = await admin.post(gone.path, data=form)
    assert answer.status_code == 303
    assert (await show_client(world.database, gone.agent.headers["X-Test-Client"])).disabled
    again = await admin.get(answer.headers["Location"])
    assert "Disable it first" not in again.text
    assert listed(again.text) == listed(shown.text)
    assert "4 of 4 appointments undone" in await undone(admin, gone.path)


async def test_what_somebody_else_has_changed_since_is_left_alone(
    world: World, admin: httpx.AsyncClient, gone: Gone
) -> None:
    other = await world.client()
    await move(other, gone.booked, "14:00", **SHOT)
    await confirmed(other, "POST", f"/api/appointments/{gone.jose}/cancel", {})
    shown = (await admin.get(gone.path, params=TODAY)).text
    rows = listed(shown)
    for each in (gone.booked, gone.jose):
        assert "Somebody else has changed the appointment since." in rows[each]
    html = await undone(admin, gone.path)
    assert "2 of 4 appointments undone" in html
    assert set(listed(html, "data-kept")) == {gone.booked, gone.jose}
    assert await place(gone.agent, gone.booked) == (10, "14:00", "booked")
    assert (await place(gone.agent, gone.jose))[2] == "cancelled"
    assert await place(gone.agent, gone.ada) == (10, "09:00", "booked")


async def test_only_what_the_client_did_after_the_last_change_of_others_is_undone(
    world: World, admin: httpx.AsyncClient, gone: Gone
) -> None:
    await move(await world.client(), gone.booked, "14:00", **SHOT)
    await confirmed(gone.agent, "POST", f"/api/appointments/{gone.booked}/cancel", {})
    assert "The cancellation will be undone." in listed((await admin.get(gone.path, params=TODAY)).text)[gone.booked]
    await undone(admin, gone.path)
    assert await place(gone.agent, gone.booked) == (10, "14:00", "booked"), "somebody has seen to it"


async def test_a_change_by_somebody_else_while_it_is_undone_wins(
    world: World, admin: httpx.AsyncClient, gone: Gone, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await world.client()
    execute, calls = Engine.execute, list[str]()

    async def after_others(engine: Engine, call: Call) -> object:
        """Somebody confirms the booking, and moves José's appointment, between its check and its change."""
        if call.unchanged_since is not None:
            calls.append(call.operation.name)
            monkeypatch.setattr(Engine, "execute", execute)
            world.clock.advance(seconds=1)
            if call.operation.name == "cancel_appointment":
                await confirmed(other, "POST", f"/api/appointments/{gone.booked}/confirm", {})
                monkeypatch.setattr(Engine, "execute", after_others)
            elif call.operation.name == "console.move_back":
                await move(other, gone.jose, "15:00")
            else:
                monkeypatch.setattr(Engine, "execute", after_others)
        return await execute(engine, call)

    monkeypatch.setattr(Engine, "execute", after_others)
    html = await undone(admin, gone.path)
    assert calls[:3] == ["cancel_appointment", "console.restore_appointment", "console.move_back"]
    kept = listed(html, "data-kept")
    assert set(kept) == {gone.booked, gone.jose, gone.ada}
    assert "Somebody else has changed the appointment since." in kept[gone.booked]
    assert "Somebody else has changed the appointment since." in kept[gone.jose]
    assert await place(gone.agent, gone.booked) == (10, "09:00", "confirmed")
    assert await place(gone.agent, gone.jose) == (10, "15:00", "booked")
    assert "The earlier time is no longer free." in kept[gone.ada], "the booking that stays has it"


async def test_what_cannot_be_undone_says_why(world: World, admin: httpx.AsyncClient, gone: Gone) -> None:
    own = await book(gone.agent, "Alan", providerId=12)
    await confirmed(gone.agent, "POST", f"/api/appointments/{own}/cancel", {})
    other = await world.client()
    await book(other, "Alan", **SHOT)  # at José's time before: the first that is free
    await book(other, "Ada", providerId=11)  # at nine
    rows = listed((await admin.get(gone.path, params=TODAY)).text)
    assert "The client has cancelled it itself" in rows[own]
    assert "The earlier time is no longer free." in rows[gone.jose]
    assert "The patient already has an appointment that overlaps this time." in rows[gone.ada]
    world.clock.advance(hours=28.5)
    admin = await signed_in(world, role="admin")
    rows = listed((await admin.get(gone.path, params=TODAY)).text)
    for each in (gone.booked, gone.ada):
        assert "The appointment has begun or is over." in rows[each]
    assert "The earlier time has passed." in rows[gone.jose]
    nothing = await admin.get(gone.path, params={"from": "2026-11-16", "from_time": "08:00"})
    assert "Nothing to undo" in nothing.text


async def test_appointments_that_swapped_places_or_follow_each_other_find_back(
    world: World, admin: httpx.AsyncClient, gone: Gone
) -> None:
    """José's is moved into Alan's place, and Alan's is changed last: its undo has to wait for that of José's."""
    await move(gone.agent, gone.alan, "10:00")
    await move(gone.agent, gone.jose, "09:30")
    await move(gone.agent, gone.alan, "10:15")
    await confirmed(gone.agent, "POST", f"/api/appointments/{gone.alan}/cancel", {})
    html = await undone(admin, gone.path)
    assert "4 of 4 appointments undone" in html
    assert await place(gone.agent, gone.jose) == (10, "09:15", "booked")
    assert await place(gone.agent, gone.alan) == (10, "09:30", "booked")
    assert "The cancellation was undone, and the appointment moved back." in listed(html, "data-call")[gone.alan]


async def test_an_undo_that_was_cut_off_is_finished_exactly_once(
    world: World, admin: httpx.AsyncClient, gone: Gone, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(*_: object, **__: object) -> None:
        raise DatabaseUnavailable

    shown = await admin.get(gone.path, params=TODAY)
    form = {**form_of(shown, gone.path, having="shown"), "do": "start"}
    with monkeypatch.context() as patched:  # after the first change, before what became of it is stored
        patched.setattr(ClientUndoStore, "finish", cut_off)
        assert (await admin.post(gone.path, data=form)).status_code == 502
    world.clock.advance(hours=25)  # what the idempotency keys have stored is gone
    admin = await signed_in(world, role="admin")
    answer = await admin.post(gone.path, data={**form, "key": "another"})
    assert answer.status_code == 409, "the list has changed"
    [path] = [
        each.attributes["href"]
        for each in Document((await admin.get(gone.path.removesuffix("/undo"))).text).tagged("a")
        if "/undo/" in each.attributes.get("href", "")
    ]
    assert "0 of 4 appointments undone" in (await admin.get(path)).text
    monkeypatch.setattr(client_undo, "BATCH_SIZE", 1)
    colleague = await signed_in(world, role="admin", name="Ben")
    async with second_node(world) as other:
        twin = other.anonymous()
        twin.cookies, twin.headers["X-CSRF-Token"] = colleague.cookies, colleague.headers["X-CSRF-Token"]
        await asyncio.gather(*(each.post(path) for each in (admin, colleague, twin, admin, twin)))
        html = await continued(twin, path)
    assert "4 of 4 appointments undone" in html
    for operation, times in (("cancel_appointment", 1), ("console.move_back", 1), ("console.restore_appointment", 2)):
        done = [
            each
            for each in await records(world, operation=operation, outcome="executed")
            if each["actor"].startswith("op_")
        ]
        assert len(done) == times, operation
        assert len({each["request_id"] for each in done}) == 1
    await world.renew(gone.agent)
    assert await place(gone.agent, gone.ada) == (10, "09:00", "booked")


async def test_two_people_who_go_on_with_an_undo_make_each_change_once(
    world: World, admin: httpx.AsyncClient, gone: Gone, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(client_undo, "BATCH_SIZE", 0)
        path = (await start(admin, gone.path)).headers["Location"]
    colleague = await signed_in(world, role="admin", name="Ben")
    execute = Engine.execute

    async def after_the_colleague(engine: Engine, call: Call) -> object:
        if call.unchanged_since is not None:
            monkeypatch.setattr(Engine, "execute", execute)
            world.clock.advance(seconds=1)
            assert (await colleague.post(path)).status_code == 303
        return await execute(engine, call)

    monkeypatch.setattr(Engine, "execute", after_the_colleague)
    assert "4 of 4 appointments undone" in await continued(admin, path)
    made = [each for each in await records(world, outcome="executed") if each["actor"].startswith("op_")]
    assert sorted(each["operation"] for each in made if "apt_" in str(each["subject_ids"])) == [
        "cancel_appointment", "console.move_back", "console.restore_appointment", "console.restore_appointment",
    ]  # fmt: skip


async def test_the_same_form_starts_one_undo(world: World, admin: httpx.AsyncClient, gone: Gone) -> None:
    shown = await admin.get(gone.path, params=TODAY)
    form = {**form_of(shown, gone.path, having="shown"), "do": "start"}
    answers = await asyncio.gather(*(admin.post(gone.path, data=form) for _ in range(3)))
    assert len({each.headers["Location"] for each in answers}) == 1
    assert len(await records(world, operation="console.undo_client")) == 1


async def test_a_flood_of_bookings_is_undone_in_steps(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client(access_limits=AccessLimits(upcoming_per_patient=0))
    booked = []
    for slot in (await slots(agent))[:12]:
        body = {"patientId": await patient_id(agent), "slotId": slot["id"]}
        booked.append((await confirmed(agent, "POST", "/api/appointments", body)).json()["appointmentId"])
    html = await undone(admin, f"/console/clients/{agent.headers['X-Test-Client']}/undo")
    assert "12 of 12 appointments undone" in html
    assert len(await slots(agent)) > 12
    assert {(await place(agent, each))[2] for each in booked} == {"cancelled"}


async def test_only_admins_of_the_practice_undo(world: World, admin: httpx.AsyncClient, gone: Gone) -> None:
    path = (await start(admin, gone.path)).headers["Location"]
    staff = await signed_in(world)
    stranger = await signed_in(world, role="admin", practice="other")
    another = f"/console/clients/{(await world.client()).headers['X-Test-Client']}/undo/{path.rpartition('/')[2]}"
    for browser, status in ((staff, 403), (stranger, 404)):
        for address in (gone.path, path, f"{path}/calls"):
            assert (await browser.get(address)).status_code == status
        assert (await browser.post(path)).status_code == status
    for address in (another, f"{another}/calls"):
        assert (await admin.get(address)).status_code == 404
    for wrong in ({"from": "tomorrow"}, {"from": "2026-11-15", "from_time": "noon"}, {"from": "2026-12-01"}):
        assert (await admin.get(gone.path, params=wrong)).status_code == 422
