"""Receipts on the page of a patient's link: those of its appointment, to download."""

import re

import httpx

from frontdesk.features.receipts.verifying import verify_receipt
from tests.console.desk import Document, records, words
from tests.console.filled_forms import form_of
from tests.console.test_guard import check_headers
from tests.features.patient_links.test_patient_links import BORN, OPEN, made
from tests.features.receipts.conftest import published
from tests.features.switching import switch
from tests.support.world import World, book, confirmed

FILE = "/my-appointment/file"


async def opened(world: World, staff: httpx.AsyncClient, appointment: str) -> tuple[httpx.AsyncClient, httpx.Response]:
    browser = world.anonymous()
    page = await browser.post(OPEN, data={"link": await made(staff, appointment), **BORN})
    assert page.status_code == 200, page.text
    return browser, page


def receipts_on(page: httpx.Response) -> list[str]:
    return re.findall(r'name="file" value="(rcp_\d+)"', page.text)


async def test_a_patient_sees_who_says_that_they_agreed_and_downloads_the_receipt(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    await confirmed(agent, "POST", f"/api/appointments/{booked}/confirm", {})
    browser, page = await opened(world, staff, booked)
    section = words(Document(page.text).tagged("section")[0].text)
    assert "The appointment was booked. Sun 15 Nov 2026, 03:00 agent of harbor says that you agreed." in section
    assert "It was confirmed that you will come." in section
    assert "http://test/.well-known/jwks.json" in section
    assert "Lovelace" not in page.text
    shown = receipts_on(page)
    assert len(shown) == 2
    held = form_of(page, FILE)
    for name in shown:
        file = await browser.post(FILE, data={"pass": held["pass"], "file": name})
        assert file.status_code == 200, file.text
        check_headers(file)
        assert file.headers["Content-Type"] == "application/jose"
        assert file.headers["Content-Disposition"] == f'attachment; filename="receipt-{name[4:]}.jws"'
        stated = verify_receipt(file.text, await published(world))
        assert booked in stated["record"]["subjectIds"]
    downloads = await records(world, operation="patient_link.receipt")
    assert [each["subject_ids"][0] for each in downloads] == [booked] * 2
    assert all(each["actor"].startswith("link_") for each in downloads)


async def test_a_link_downloads_no_receipt_of_another_appointment(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    first, second = await book(agent), await book(agent)
    graces = await book(agent, "José")
    stranger = await world.client("other")
    await book(stranger)
    browser, page = await opened(world, staff, first)
    _, of_second = await opened(world, staff, second)
    [own] = receipts_on(page)
    others = [
        f"rcp_{each['record_id']}"
        for each in await records(world, operation="book_appointment", outcome="executed")
        if first not in each["subject_ids"]
    ]
    assert receipts_on(of_second)[0] in others
    held = form_of(page, FILE)["pass"]
    for name in (*others, "rcp_0", "rcp_", "rcp_" + "9" * 40, "rcp_x", own.removeprefix("rcp_"), ""):
        answer = await browser.post(FILE, data={"pass": held, "file": name})
        assert answer.status_code == 404, name
        check_headers(answer)
    for passed in ("", "x"):
        assert (await browser.post(FILE, data={"pass": passed, "file": own})).status_code == 401
    assert (await browser.get(FILE)).status_code == 303
    assert graces
    assert await records(world, operation="patient_link.receipt") == []


async def test_without_the_feature_the_page_shows_no_receipts(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    _, before = await opened(world, staff, booked)
    [name] = receipts_on(before)
    await switch(world, {"receipts": {"enabled": False}})
    browser, page = await opened(world, staff, booked)
    assert receipts_on(page) == []
    answer = await browser.post(FILE, data={"pass": form_of(page, "/my-appointment/confirm")["pass"], "file": name})
    assert answer.status_code == 404
