"""A patient's own link: made at the desk, opened on a phone, confirmed and cancelled, without an account."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import PHONE, Office, Window, press, write

pytestmark = pytest.mark.heavy


def born(page: Page, day: str) -> None:
    for label, value in (("Day", day), ("Month", "5"), ("Year", "1990")):
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Show the appointment").click()


def test_a_patient_confirms_and_cancels_on_a_phone(place: Office) -> None:
    booked = place.agent.book(place.agent.patient("Linked"), place.agent.slots(limit=1, weeks_ahead=3)[0])
    desk, phone = open_with_axe(place, "staff"), open_with_axe(place, None)
    at_desk, page = desk.go(f"/appointments/{booked}"), phone.page
    at_desk.get_by_text("Patient's link", exact=True).click()
    require_accessible(at_desk)
    at_desk.get_by_role("button", name="Make a link").click()
    expect(at_desk.locator("#link")).to_contain_text("/my-appointment#")
    require_accessible(at_desk)

    phone.errors.expected.append("status of 401")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    link = at_desk.locator("#link").inner_text()
    secret = link.partition("#")[2]
    page.goto(link)
    expect(page.get_by_label("Your link")).to_be_hidden()
    require_accessible(page)
    born(page, "18")
    expect(page.get_by_role("alert")).to_contain_text("does not work with this date of birth")
    require_accessible(page)
    born(page, "17")
    expect(page.get_by_text("Dr. Robert Chen")).to_be_visible()
    expect(page.get_by_text("Mina")).to_have_count(0)
    require_accessible(page)
    page.get_by_role("button", name="I will come").click()
    expect(page.get_by_role("status")).to_contain_text("knows that you will come")
    assert place.agent.status(booked) == "confirmed"
    page.get_by_role("button", name="I cannot come").click()
    expect(page.get_by_role("heading", name="Cancel this appointment?")).to_be_visible()
    require_accessible(page)
    page.get_by_label("Reason").fill("Travelling")
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.get_by_role("status")).to_contain_text("The appointment is cancelled.")
    require_accessible(page)
    assert place.agent.status(booked) == "cancelled"
    assert not [url for url in asked if secret in url.partition("#")[0]], "the secret is in no address that is sent"
    desk.go(f"/appointments/{booked}")
    expect(at_desk.get_by_role("list").filter(has_text="agreed by the patient's link")).to_be_visible()
    for each in (desk, phone):
        each.context.close()
        each.errors.check()


def test_a_link_is_made_and_used_by_keyboard(place: Office, window: Callable[..., Window]) -> None:
    booked = place.agent.book(place.agent.patient("Keyed"), place.agent.slots(limit=1, weeks_ahead=3)[0])
    at_desk = window("staff").go(f"/appointments/{booked}")
    press(at_desk, at_desk.get_by_text("Patient's link", exact=True))
    press(at_desk, at_desk.get_by_role("button", name="Make a link"))
    link = at_desk.locator("#link").inner_text()

    opened = window(None)
    opened.errors.expected.append("status of 401")
    page = opened.page
    page.goto(link)
    for day in ("18", "17"):
        write(page, {"Day": day, "Month": "5", "Year": "1990"})
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert" if day == "18" else "term").first).to_be_visible()
    press(page, page.get_by_role("button", name="I will come"))
    expect(page.get_by_role("status")).to_contain_text("knows that you will come")
    press(page, page.get_by_role("button", name="I cannot come"))
    press(page, page.get_by_role("button", name="No, keep it"))
    press(page, page.get_by_role("button", name="I cannot come"))
    write(page, {"Reason": "Travelling"})
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The appointment is cancelled.")
    assert place.agent.status(booked) == "cancelled"
