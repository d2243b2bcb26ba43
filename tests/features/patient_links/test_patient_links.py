"""A patient's own link: what it opens after the date of birth, what it executes, and everything that it refuses."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from frontdesk.access.limits import failed_attempts
from frontdesk.features.patient_links import patients_pages
from frontdesk.features.patient_links.links import MAX_WRONG_DATES
from frontdesk.features.patient_links.patients_pages import PASS_LIFETIME
from frontdesk.outbound.webhooks.events import event_document, newest_events
from tests.console.desk import Document, records, stored, words
from tests.console.filled_forms import form_of, send
from tests.console.signing_in import browser_at, signed_in
from tests.console.test_guard import check_headers
from tests.engine.test_consent import demand
from tests.features.switching import switch
from tests.support.shared_database import world_of_a_module
from tests.support.world import PRACTICE, World, book, confirmed, slots

world = world_of_a_module
BORN = {"day": "10", "month": "12", "year": "1985"}
WRONG = {**BORN, "day": "11"}
OPEN, CONFIRM, REVIEW, CANCEL = (f"/my-appointment{path}" for path in ("", "/confirm", "/cancel/review", "/cancel"))
REFUSED = "does not work with this date of birth"


@pytest.fixture(scope="module")
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


@pytest.fixture(scope="module")
async def staff(world: World) -> httpx.AsyncClient:
    return await signed_in(world)


@pytest.fixture(autouse=True)
async def same_time(world: World) -> AsyncIterator[None]:
    now = world.clock.now
    yield
    world.clock.now = now


@dataclass
class Sent:
    """An appointment of Ada whose link the practice has sent to her, and her browser."""

    appointment: str
    token: str
    browser: httpx.AsyncClient

    async def open(self, born: dict[str, str] | None = None, token: str | None = None) -> httpx.Response:
        return await self.browser.post(OPEN, data={"link": token or self.token, **(born or BORN)})


async def made(staff: httpx.AsyncClient, appointment: str) -> str:
    """The token of a new link."""
    answer = await staff.post(f"/console/appointments/{appointment}/link")
    assert answer.status_code == 200, answer.text
    [token] = re.findall(r"http://[^/<]+/my-appointment#([^<]+)</code>", answer.text)
    return str(token)


@pytest.fixture
async def sent(world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient) -> Sent:
    appointment = await book(agent)
    return Sent(appointment, await made(staff, appointment), world.anonymous())


async def status(agent: httpx.AsyncClient, appointment: str) -> str:
    return str((await agent.get(f"/api/appointments/{appointment}")).json()["status"])


async def test_a_patient_confirms_and_cancels_by_the_link(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient, sent: Sent
) -> None:
    page = await sent.open()
    assert page.status_code == 200, page.text
    check_headers(page)
    shown = words(Document(page.text).tagged("main")[0].text)
    for part in (
        "Harbor Family Medicine",
        "Monday, 16 November 2026",
        "EST",
        "Dr. Robert Chen",
        "Downtown",
        "+1 555 0100",
    ):
        assert part in shown
    text = page.text
    for [hidden] in form_of(page, CONFIRM).values():  # encrypted or random: it may spell a first name
        text = text.replace(hidden, "")
    for part in ("Ada", "Lovelace", "Follow-up", "010 0199", sent.appointment, "1985"):
        assert part not in text, "no more than the patient needs"
    assert "set-cookie" not in page.headers

    confirming = await send(sent.browser, page, CONFIRM)
    assert "knows that you will come" in confirming.text
    assert await status(agent, sent.appointment) == "confirmed"
    review = await send(sent.browser, confirming, REVIEW)
    assert "Cancel this appointment?" in review.text
    assert "Monday, 16 November 2026" in review.text
    assert await status(agent, sent.appointment) == "confirmed", "the second look changes nothing"
    too_long = await send(sent.browser, review, CANCEL, reason="x" * 501)
    assert too_long.status_code == 422
    kept = await send(sent.browser, review, "/my-appointment/show")
    assert "It is confirmed that you will come." in kept.text
    gone = await send(sent.browser, review, CANCEL, reason="<b>away</b>")
    assert "The appointment is cancelled." in gone.text
    assert await status(agent, sent.appointment) == "cancelled"

    for operation in ("confirm_attendance", "cancel_appointment"):
        [record] = [
            each
            for each in await records(world, operation=operation, outcome="executed")
            if sent.appointment in each["subject_ids"]
        ]
        assert record["consent"] == "link"
        assert record["actor"].startswith("link_")
    assert [event_document(row)["data"]["consent"] for row in await newest_events(world.database, 1, 2)] == ["link"] * 2
    history = words(
        Document((await staff.get(f"/console/appointments/{sent.appointment}")).text).of_class("history")[0].text
    )
    assert history.startswith("Cancelled by Patient's link")
    assert history.count("agreed by the patient's link") == 2
    assert "This appointment is cancelled." in (await sent.open()).text
    reads = [
        each for each in await records(world, operation="patient_link.read") if sent.appointment in each["subject_ids"]
    ]
    assert len(reads) > 3, "every page that shows the appointment is recorded"


async def test_a_patient_reads_in_their_language_why_a_reason_is_refused(sent: Sent) -> None:
    review = await send(sent.browser, await sent.open(), REVIEW)
    sent.browser.headers["Accept-Language"] = "de"
    refused = await send(sent.browser, review, CANCEL, reason="x" * 501)
    assert refused.status_code == 422
    assert "Grund darf höchstens 500 Zeichen haben" in refused.text


async def test_pressed_twice_at_once_one_cancellation(world: World, agent: httpx.AsyncClient, sent: Sent) -> None:
    page = await sent.open()
    forms = [form_of(await send(sent.browser, page, REVIEW), CANCEL) for _ in range(2)]
    answers = await asyncio.gather(*(sent.browser.post(CANCEL, data=form) for form in (*forms, forms[0], forms[1])))
    assert all("is cancelled" in each.text for each in answers), [each.text for each in answers]
    assert await status(agent, sent.appointment) == "cancelled"
    executed = await records(world, operation="cancel_appointment", outcome="executed")
    assert len([each for each in executed if sent.appointment in each["subject_ids"]]) == 1


async def test_a_form_that_is_sent_again_after_the_desk_undid_it_changes_nothing(
    world: World, agent: httpx.AsyncClient, sent: Sent
) -> None:
    form = form_of(await send(sent.browser, await sent.open(), REVIEW), CANCEL)
    await sent.browser.post(CANCEL, data=form)
    assert await status(agent, sent.appointment) == "cancelled"
    await stored(
        world,
        "UPDATE appointment SET status = 'booked' WHERE practice_id = $1 AND appointment_id = $2 RETURNING 1",
        sent.appointment,
    )
    await sent.browser.post(CANCEL, data=form)
    assert await status(agent, sent.appointment) == "booked"


async def test_opening_the_address_discloses_and_changes_nothing(agent: httpx.AsyncClient, sent: Sent) -> None:
    page = await sent.open()
    held = form_of(page, CONFIRM)
    for path in (OPEN, CONFIRM, REVIEW, CANCEL, "/my-appointment/show"):
        for method in ("GET", "HEAD"):
            answer = await sent.browser.request(method, path, params={"link": sent.token, **BORN, **held})
            assert answer.status_code == (200 if path == OPEN else 303)
            assert "Harbor" not in answer.text
            assert sent.token not in answer.text
            check_headers(answer)
    assert await status(agent, sent.appointment) == "booked"


async def test_every_link_that_does_not_work_gets_the_same_answer(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient, sent: Sent
) -> None:
    await world.import_file(PRACTICE.replace("SLUG", "other"))
    other = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'other'")
    secret = sent.token.partition("-")[2]
    answers = [
        await sent.open(token=token)
        for token in (f"{other}-{secret}", f"99999-{secret}", f"1-{'A' * 43}", secret, "x", "1-", f"{sent.token}A")
    ]
    answers.append(await sent.open(WRONG))
    assert (await sent.open()).status_code == 200

    before = world.clock.now
    world.clock.advance(days=2)  # the appointment has started
    answers.append(await sent.open())
    world.clock.now = before
    await world.database.write("UPDATE practice SET suspended = true WHERE slug = 'harbor' RETURNING 1")
    answers.append(await sent.open())
    await world.database.write("UPDATE practice SET suspended = false WHERE slug = 'harbor' RETURNING 1")
    replaced, sent.token = sent.token, await made(staff, sent.appointment)
    answers.append(await sent.open(token=replaced))
    held = form_of(await sent.open(), CONFIRM)
    ended = await staff.post(f"/console/appointments/{sent.appointment}/link/end")
    assert ended.headers["Location"].endswith("notice=patient_link_ended")
    answers.append(await sent.open())
    for answer in answers:
        assert answer.status_code == 401
        assert REFUSED in answer.text
        assert "Harbor" not in answer.text
        check_headers(answer)
    assert len({re.sub(r' value="[^"]*"| hidden', "", each.text) for each in answers}) == 1
    stale = await sent.browser.post(CONFIRM, data=held)
    assert (stale.status_code, "Open the link again" in stale.text) == (401, True)
    assert await status(agent, sent.appointment) == "booked"
    assert "Make a link" in (await staff.get(f"/console/appointments/{sent.appointment}")).text


async def test_five_wrong_dates_end_the_link_however_they_are_sent(
    world: World, staff: httpx.AsyncClient, sent: Sent
) -> None:
    for faulty in ({}, {**BORN, "month": "13"}, {**BORN, "day": "ten"}, {**BORN, "year": "99999999999"}):
        answer = await sent.browser.post(OPEN, data={"link": sent.token, **faulty})
        assert answer.status_code == 422, "no date is no guess"
    browsers = [browser_at(world, f"192.0.2.{number}") for number in range(3 * MAX_WRONG_DATES)]
    guesses = [each.post(OPEN, data={"link": sent.token, **WRONG}) for each in browsers]
    assert {each.status_code for each in await asyncio.gather(*guesses)} == {401}
    wrong = await stored(
        world, "SELECT wrong_dates FROM patient_link WHERE practice_id = $1 AND appointment_id = $2", sent.appointment
    )
    assert [each["wrong_dates"] for each in wrong] == [MAX_WRONG_DATES]
    answer = await sent.open()
    assert (answer.status_code, REFUSED in answer.text) == (401, True)
    assert "too many wrong dates of birth" in (await staff.get(f"/console/appointments/{sent.appointment}")).text
    refused = await records(world, operation="patient_link.read", outcome="unauthorized")
    assert len([each for each in refused if sent.appointment in each["subject_ids"]]) == MAX_WRONG_DATES
    sent.token = await made(staff, sent.appointment)
    assert (await sent.open()).status_code == 200


async def test_guesses_and_uses_are_limited(world: World, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_attempts, "PER_ADDRESS", 2)
    elsewhere = browser_at(world, "198.51.100.7")
    codes = [(await elsewhere.post(OPEN, data={"link": f"1-{each * 43}", **BORN})).status_code for each in "ABCD"]
    assert codes == [401, 401, 429, 429]
    monkeypatch.setattr(patients_pages, "USES_PER_MINUTE", 3)
    page = await sent.open()
    answers = [await send(sent.browser, page, REVIEW) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert "Retry-After" in answers[-1].headers
    assert (await sent.open()).status_code == 429


async def test_a_page_acts_on_what_it_showed_and_for_a_quarter_of_an_hour(
    world: World, agent: httpx.AsyncClient, sent: Sent
) -> None:
    page = await sent.open()
    held = form_of(page, CONFIRM)
    forged = held["pass"][0][:-4] + "AAA="
    for changed in ({"pass": forged}, {"pass": ""}, {"pass": "é"}):
        assert (await sent.browser.post(CONFIRM, data={**held, **changed})).status_code == 401
    slot = (await slots(agent))[3]
    moved = await confirmed(agent, "POST", f"/api/appointments/{sent.appointment}/reschedule", {"slotId": slot["id"]})
    assert moved.status_code == 200
    for path in (CONFIRM, CANCEL):
        answer = await sent.browser.post(path, data=held)
        assert answer.status_code == 409
        assert "The appointment has changed. Check it again." in answer.text
    assert await status(agent, sent.appointment) == "booked"
    review = await send(sent.browser, answer, REVIEW)
    world.clock.advance(seconds=PASS_LIFETIME.total_seconds() + 1)
    assert (await send(sent.browser, review, CANCEL)).status_code == 401
    assert await status(agent, sent.appointment) == "booked"


async def test_a_form_of_another_site_is_refused(agent: httpx.AsyncClient, sent: Sent) -> None:
    held = form_of(await sent.open(), CONFIRM)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for path, data in ((OPEN, {"link": sent.token, **BORN}), (CONFIRM, held), (CANCEL, held)):
            answer = await sent.browser.post(path, data=data, headers=headers)
            assert answer.status_code == 403
            assert "Harbor" not in answer.text
            check_headers(answer)
    assert await status(agent, sent.appointment) == "booked"


async def test_the_demand_of_the_practice_holds_for_links_and_sends_agents_to_them(
    world: World, agent: httpx.AsyncClient, sent: Sent
) -> None:
    await demand(world, cancelAppointment="staff", confirmAttendance="link")
    page = await sent.open()
    assert "I cannot come" not in page.text
    held = form_of(page, CONFIRM)
    assert (await sent.browser.post(REVIEW, data=held)).status_code == 409
    refused = await sent.browser.post(CANCEL, data=held)
    assert (refused.status_code, "requires the consent" in refused.text) == (403, True)
    fresh, integration = await world.client(), await world.client(grant="integration")
    for caller in (fresh, integration):
        answer = await caller.post(f"/api/appointments/{sent.appointment}/confirm", json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "consent_required")
        assert "the patient, by their own link, which the practice sends to them" in answer.json()["detail"]
    assert await status(fresh, sent.appointment) == "booked"
    assert "knows that you will come" in (await send(sent.browser, page, CONFIRM)).text
    assert await status(fresh, sent.appointment) == "confirmed"
    await world.import_file(PRACTICE.replace("SLUG", "harbor"))


async def test_links_are_made_for_upcoming_appointments_of_the_own_practice(
    world: World, agent: httpx.AsyncClient, staff: httpx.AsyncClient, sent: Sent
) -> None:
    [row] = await stored(
        world, "SELECT * FROM patient_link WHERE practice_id = $1 AND appointment_id = $2", sent.appointment
    )
    assert sent.token.partition("-")[2] not in str(row), "only the digest is stored"
    stranger = await signed_in(world, practice="other")
    for path in ("link", "link/end"):
        assert (await stranger.post(f"/console/appointments/{sent.appointment}/{path}")).status_code == 404
    assert (await sent.open()).status_code == 200
    await confirmed(agent, "POST", f"/api/appointments/{sent.appointment}/cancel", {})
    answer = await staff.post(f"/console/appointments/{sent.appointment}/link")
    assert answer.status_code == 409
    assert "Patient's link</summary>" not in (await staff.get(f"/console/appointments/{sent.appointment}")).text


async def test_a_practice_that_has_switched_links_off_opens_none(
    world: World, staff: httpx.AsyncClient, sent: Sent
) -> None:
    shown = await sent.open()
    await switch(world, {"patient_links": {"enabled": False}})
    try:
        assert REFUSED in (await sent.open()).text
        assert (await send(sent.browser, shown, CONFIRM)).status_code == 401
        assert "/link" not in (await staff.get(f"/console/appointments/{sent.appointment}")).text
        assert (await staff.post(f"/console/appointments/{sent.appointment}/link")).status_code == 404
    finally:
        await switch(world, {})
    assert (await sent.open()).status_code == 200
