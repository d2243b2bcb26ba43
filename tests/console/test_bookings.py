"""Booking by hand: from a patient to a booked time, once, and what stands in its way."""

import asyncio

import httpx
import pytest

from tests.console.desk import Document, calendar, entries, key_in, records, stored, words
from tests.console.signing_in import TEST_STAFF
from tests.support.world import World, confirmed, patient_id, slots


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


async def summary(staff: httpx.AsyncClient, patient: str, query: str = "visit=21-101&provider=10&location=1") -> str:
    """The last page before a booking, for the first open time on Monday."""
    when = await staff.get(f"/console/book/{patient}?date=2026-11-16&{query}")
    assert when.status_code == 200, when.text
    first = Document(when.text).of_class("slot")[0]
    answer = await staff.get(first.attributes["href"])
    assert answer.status_code == 200, answer.text
    return answer.text


def form_of(html: str) -> dict[str, str]:
    return {
        each.attributes["name"]: each.attributes["value"]
        for each in Document(html).tagged("input")
        if each.attributes.get("name") in ("slot", "key")
    }


async def test_a_booking_goes_from_a_patient_to_the_calendar(world: World, staff: httpx.AsyncClient) -> None:
    who = await staff.post("/console/book?date=2026-11-16&provider=10", data={"search": "love"})
    link = next(
        each.attributes["href"] for each in Document(who.text).having("href") if "/console/book/pat_" in str(each)
    )
    assert link.endswith("?provider=10&date=2026-11-16")
    what = await staff.get(link)
    visits = [
        each.attributes["value"] for each in Document(what.text).tagged("option") if "-" in each.attributes["value"]
    ]
    assert visits == ["21-101", "21-102", "22-103"]  # nothing for new patients: Ada is known
    html = await summary(staff, link.split("/")[-1].split("?")[0])
    text = words(Document(html).tagged("section")[-1].text)
    for part in (
        "Ada Lovelace",
        "Monday, 16 November 2026, 09:00–09:15",
        "Dr. Robert Chen",
        "Follow-up visit",
        "Downtown",
    ):
        assert part in text
    patient = link.split("/")[-1].split("?")[0]
    booked = await staff.post(f"/console/book/{patient}", data=form_of(html))
    assert booked.status_code == 303, booked.text
    there = booked.headers["Location"]
    assert there.startswith("/console/calendar?date=2026-11-16&location=1&show=apt_")
    shown = entries((await staff.get(there)).text)
    [(appointment, entry)] = shown.items()
    assert "is-new" in entry.classes
    assert "booked by Ana" in words(entry.text)
    [made] = await records(world, operation="book_appointment", outcome="executed")
    assert made["actor"] == staff.headers[TEST_STAFF]
    assert made["subject_ids"] == [appointment, patient]


async def test_a_form_that_is_sent_twice_at_once_books_once(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    form = form_of(await summary(staff, patient))
    answers = await asyncio.gather(*(staff.post(f"/console/book/{patient}", data=form) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {303}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(await stored(world, "SELECT 1 FROM appointment WHERE practice_id = $1")) == 1


async def test_a_time_that_was_taken_meanwhile_is_told_and_nothing_is_booked(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    form = form_of(await summary(staff, patient))
    other = {"patientId": await patient_id(agent, "Alan"), "slotId": form["slot"]}
    await confirmed(agent, "POST", "/api/appointments", other)
    answer = await staff.post(f"/console/book/{patient}", data=form)
    assert answer.status_code == 409
    assert "The slot was booked, or is no longer offered, since the search." in answer.text
    assert "Another time" in answer.text
    again = Document(answer.text)
    assert not [each for each in again.tagged("button") if words(each.text) == "Book appointment"]
    assert len(await stored(world, "SELECT 1 FROM appointment WHERE practice_id = $1")) == 1


async def test_what_the_rules_decline_is_said_in_words(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    grace = await patient_id(agent, "Grace")  # new here
    ada_form = form_of(await summary(staff, await patient_id(agent)))
    answer = await staff.post(f"/console/book/{grace}", data=ada_form)
    assert answer.status_code == 422
    assert "This visit type is for existing patients" in answer.text


async def test_every_time_of_a_week_is_offered_at_one_place(staff: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    where = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101, "limit": 200}
    found = await agent.get("/api/slots", params={**where, "from": "2026-11-16", "to": "2026-11-22"})
    patient = await patient_id(agent)
    when = await staff.get(f"/console/book/{patient}?date=2026-11-16&visit=21-101&provider=10&location=1")
    assert len(Document(when.text).of_class("slot")) == len(found.json()["items"]) > 50


async def test_with_anyone_every_provider_and_location_that_fits_is_offered(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    when = await staff.get(f"/console/book/{patient}?visit=22-103&date=2026-11-16")
    headings = {words(each.text) for each in Document(when.text).tagged("h4")}
    assert {"Dr. Robert Chen Downtown", "Dr. María Núñez Downtown"} <= headings
    late = await staff.get(f"/console/book/{patient}?visit=22-103&date=2026-11-18&provider=11&location=")
    assert "Dr. María Núñez Westside" in {words(each.text) for each in Document(late.text).tagged("h4")}


async def test_a_visit_that_the_patient_cannot_have_is_not_offered(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    grace = await patient_id(agent, "Grace")
    answer = await staff.get(f"/console/book/{grace}?visit=21-101")
    assert answer.status_code == 200
    assert not Document(answer.text).of_class("slot")
    assert "New patient exam" in answer.text
    assert "Follow-up visit" not in answer.text


async def test_a_person_put_on_file_for_a_booking_is_booked_next(staff: httpx.AsyncClient) -> None:
    path = "/console/patients/new?then=book&date=2026-11-16&provider=10"
    form = {"firstName": "Mary", "lastName": "Shelley", "dob": "1997-08-30", "phone": "+1 555 010 0111"}
    html = (await staff.get(path)).text
    answer = await staff.post(path, data={**form, "key": key_in(html, path.replace("&", "&amp;"))})
    assert answer.status_code == 303, answer.text
    there = answer.headers["Location"]
    assert there.startswith("/console/book/pat_")
    assert "provider=10&date=2026-11-16" in there


async def test_a_forged_or_foreign_slot_is_not_found(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    foreign = (await slots(await world.client("other")))[0]["id"]
    for slot in ("", "slt_nonsense", foreign):
        assert (await staff.get(f"/console/book/{patient}/confirm", params={"slot": slot})).status_code in (404, 422)
        assert (await staff.post(f"/console/book/{patient}", data={"slot": slot, "key": "k"})).status_code in (404, 422)
    assert not entries(await calendar(staff))


async def test_a_write_without_the_sessions_proof_is_refused(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    form = form_of(await summary(staff, patient))
    del staff.headers["X-CSRF-Token"]
    assert (await staff.post(f"/console/book/{patient}", data=form)).status_code == 403
    assert not entries(await calendar(staff))
