"""The front desk of a practice whose calendar is in another system: the same pages, and what that system cannot do."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from frontdesk.store.database import Database
from frontdesk.systems.fhir.system import FhirSystem
from frontdesk.systems.port import SystemUnavailable
from tests.console.desk import Document, calendar, entries, words
from tests.console.filled_forms import form_of, send
from tests.console.signing_in import signed_in
from tests.features.absences.test_absences import rows
from tests.fhir.practice import Upstream, extend_timeouts, fhir_world, opened
from tests.support.world import World, book, patient_id, stored_directory


@pytest.fixture
async def world(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    extend_timeouts(monkeypatch)
    async with opened("fake") as door:
        await Upstream(door).seed()
        async with fhir_world(database, tmp_path, door) as built:
            yield built


@pytest.fixture
async def staff(world: World) -> httpx.AsyncClient:
    return await signed_in(world)


async def test_the_calendar_shows_names_and_who_booked(world: World, staff: httpx.AsyncClient) -> None:
    booked = await book(await world.client())
    for path in ("/calendar", "/day-sheet"):
        assert "Ada Lovelace" in words(Document(await calendar(staff, path)).tagged("main")[0].text)
    [(shown, entry)] = entries(await calendar(staff)).items()
    assert shown == booked
    assert "booked by agent of harbor" in words(entry.text)
    assert "Block time" not in await calendar(staff)
    assert "Walk-in" not in await calendar(staff)
    refused = await staff.get("/console/walk-in")
    assert refused.status_code == 503
    assert "Walk-ins are booked in the practice&#39;s own system." in refused.text
    full = {"provider": "10", "location": "1", "date": "2026-11-16", "time": "09:00", "visit": "21-101"}
    agreed = {
        **full,
        "patient": await patient_id(await world.client()),
        "reason": "Full",
        "rule": "full",
        "sure": "yes",
    }
    assert (await staff.post("/console/override", data={**agreed, "key": "k"})).status_code == 503


async def test_hours_that_only_the_other_system_knows_are_not_drawn(staff: httpx.AsyncClient) -> None:
    document = Document(await calendar(staff, date="2026-11-19"))
    columns = [each.attributes["data-provider"] for each in document.having("data-provider")]
    assert columns == ["10", "11", "12"]
    assert not document.of_class("shade")
    assert "Not in" not in words(document.of_class("cal")[0].text)


async def test_the_names_of_a_day_are_asked_for_together(world: World, staff: httpx.AsyncClient) -> None:
    agent = await world.client()
    for first in ("Ada", "José", "Alan"):
        await book(agent, first)
    html = await calendar(staff)
    assert len(entries(html)) == 3
    assert "Unknown patient" not in html


async def test_an_appointment_is_confirmed_moved_and_cancelled_but_its_attendance_is_kept_elsewhere(
    world: World, staff: httpx.AsyncClient
) -> None:
    booked = await book(await world.client())
    page = await staff.get(f"/console/appointments/{booked}")
    assert "are recorded in the practice's own system" in page.text
    assert "Booked by agent of harbor" in words(Document(page.text).having("id", "appointment")[0].text)
    assert f"/console/appointments/{booked}/record" not in page.text
    refused = await staff.post(f"/console/appointments/{booked}/record", data={"status": "arrived", "key": "k"})
    assert refused.status_code == 503
    assert (await staff.post(f"/console/appointments/{booked}/confirm", data={"key": "a"})).status_code == 303
    times = Document((await staff.get(f"/console/appointments/{booked}/move?date=2026-11-17")).text).of_class("slot")
    slot = times[0].attributes["href"].partition("slot=")[2]
    moved = await staff.post(f"/console/appointments/{booked}/move", data={"slot": slot, "key": "b"})
    assert moved.status_code == 303, moved.text
    assert (await staff.post(f"/console/appointments/{booked}/cancel", data={"key": "c"})).status_code == 303
    assert "is-cancelled" in entries(await calendar(staff, date="2026-11-17", cancelled="yes"))[booked].classes


async def test_people_are_found_by_all_four_fields(staff: httpx.AsyncClient) -> None:
    assert "all four fields" in (await staff.get("/console/patients")).text
    ada = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    found = await staff.post("/console/patients", data=ada)
    assert found.headers["Location"].startswith("/console/patients/pat_")
    assert (await staff.get(found.headers["Location"])).status_code == 200
    missed = await staff.post("/console/patients", data={**ada, "firstName": "Bea"})
    assert missed.status_code == 404
    assert "No patient matches all four fields." in missed.text
    assert 'value="Bea"' in missed.text


async def test_a_booking_by_hand_reaches_the_other_system(world: World, staff: httpx.AsyncClient) -> None:
    patient = await patient_id(await world.client())
    when = await staff.get(f"/console/book/{patient}?visit=21-101&provider=10&location=1&date=2026-11-16")
    slot = Document(when.text).of_class("slot")[0].attributes["href"].partition("slot=")[2]
    booked = await staff.post(f"/console/book/{patient}", data={"slot": slot, "key": "k"})
    assert booked.status_code == 303, booked.text
    [entry] = entries(await calendar(staff)).values()
    assert "booked by Ana" in words(entry.text)


async def test_time_is_blocked_elsewhere(staff: httpx.AsyncClient) -> None:
    assert "blocked in the practice" in (await staff.get("/console/blocks")).text
    form = {"who": "provider-10", "from": "2026-11-16"}
    assert (await staff.post("/console/blocks", data=form)).status_code == 503


async def test_forms_do_not_edit_what_the_other_system_keeps(world: World) -> None:
    admin = await signed_in(world, role="admin")
    rules = await admin.get("/console/practice/rules")
    assert "slotIntervalMinutes" not in form_of(rules, "/console/practice/rules")
    assert "Free times come from the practice's FHIR server" in words(Document(rules.text).tagged("main")[0].text)
    providers = words(Document((await admin.get("/console/practice/providers")).text).tagged("main")[0].text)
    assert "FHIR server keeps hours and absences" in providers
    assert "Add a provider" not in providers
    edit = "/console/practice/providers/edit"
    before = await stored_directory(world.database, "harbor")
    assert before is not None
    form = await admin.get(f"{edit}?id=10")
    assert not [name for name in form_of(form, edit) if name.startswith(("hours.", "away.", "period.", "capacity"))]
    shown = await send(admin, form, edit, specialty="Surgery")
    assert (await send(admin, shown, edit, step="apply")).status_code == 303
    after = await stored_directory(world.database, "harbor")
    assert after == replace(
        before, providers={**before.providers, 10: replace(before.providers[10], specialty="Surgery")}
    )
    assert (await send(admin, form, edit, remove="yes")).status_code == 503
    assert (await admin.post(edit, data={"name": "Dr. New"})).status_code == 503


async def test_appointments_of_a_provider_who_is_away_are_moved_and_the_page_tells_what_it_cannot_do(
    world: World, staff: httpx.AsyncClient
) -> None:
    agent = await world.client()
    moved, cancelled = await book(agent), await book(agent, "José")
    form = {"who": "provider-10", "from": "2026-11-16", "do": "start"}
    assert "Block the provider's time there first" in (await staff.get("/console/away")).text
    path = (await staff.post("/console/away", data=form)).headers["Location"]
    html = (await staff.get(path)).text
    notice = words(Document(html).of_class("notice-warn")[0].text)
    assert "Time is blocked in the practice's own system." in notice
    assert "A cancellation cannot be undone here." in notice
    found = rows(html)
    assert all("Robert Chen" not in text or "16 Nov" not in text for text in found[moved].options.values())
    chosen = {f"choice-{moved}": found[moved].chosen or "", f"choice-{cancelled}": "cancel"}
    assert (await staff.post(f"{path}/apply", data=chosen)).status_code == 303
    after = rows((await staff.get(path)).text)
    assert (after[moved].state, after[cancelled].state) == ("moved", "cancelled")
    assert (await staff.post(f"{path}/undo", data={"all": "yes"})).status_code == 303
    back = rows((await staff.get(path)).text)
    assert back[moved].state == "left"
    assert back[cancelled].state == "cancelled"
    assert "cannot perform this operation" in back[cancelled].text


async def test_a_patient_cancels_by_a_link_and_an_outage_is_no_wrong_date(
    world: World, staff: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await world.client()
    booked, patient = await book(agent), world.anonymous()
    made = await staff.post(f"/console/appointments/{booked}/link")
    token = made.text.partition("/my-appointment#")[2].partition("<")[0]
    born = {"link": token, "day": "10", "month": "12", "year": "1985"}
    with monkeypatch.context() as patch:
        patch.setattr(FhirSystem, "get_patient", unavailable)
        for _ in range(6):
            assert (await patient.post("/my-appointment", data=born)).status_code == 502
    page = await patient.post("/my-appointment", data=born)
    review = await send(patient, page, "/my-appointment/cancel/review")
    assert "The appointment is cancelled." in (await send(patient, review, "/my-appointment/cancel")).text
    assert (await agent.get(f"/api/appointments/{booked}")).json()["status"] == "cancelled"


async def unavailable(*_: object) -> None:
    raise SystemUnavailable
