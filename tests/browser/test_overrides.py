"""Booking against the rules in a browser: at a full time by mouse, a walk-in by keyboard alone."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import Office, Window, tab_to, type_in
from tests.browser.callers import CHEN
from tests.browser.test_front_desk import calendar, entry, panel
from tests.browser.test_grid_work import chosen, free_times, point

pytestmark = pytest.mark.heavy


def test_a_full_time_is_overbooked_by_mouse_and_looks_like_it(place: Office) -> None:
    agent = place.agent
    full, *_, free = free_times(agent)
    agent.book(agent.patient("Seated"), full)
    agent.patient("Squeezed")
    window = open_with_axe(place, "staff")
    window.errors.expected.append("Failed to load resource.*409")
    page = calendar(window, full, provider=str(CHEN))
    page.wait_for_load_state()
    page.mouse.click(*point(page, free))
    expect(chosen(page).get_by_label("Patient")).to_be_focused()
    page.keyboard.type("squee")
    expect(chosen(page).get_by_role("radio", name=re.compile("Squeezed, Mina"))).to_be_checked()
    type_in(chosen(page).get_by_label("Time"), full.time)
    chosen(page).get_by_label("Visit").select_option(label="Introductory consultation, 30 min")
    chosen(page).get_by_role("button", name="Book", exact=True).click()
    expect(chosen(page).get_by_text("places taken at")).to_be_visible()
    require_accessible(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    chosen(page).get_by_label("Reason").fill("In pain")
    chosen(page).get_by_role("button", name="Continue").click()
    anyway = chosen(page).get_by_role("button", name="Book anyway")
    expect(anyway).to_be_focused()
    expect(chosen(page).get_by_text("In pain")).to_be_visible()
    require_accessible(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    anyway.click()
    expect(chosen(page)).to_be_hidden()
    booked = entry(page, "Squeezed")
    expect(booked).to_have_accessible_name(re.compile("Override · "))
    expect(booked.locator("xpath=ancestor::li[1]")).to_have_class(re.compile("is-override"))
    booked.click()
    expect(panel(page).get_by_text("Against the rules", exact=True)).to_be_visible()
    expect(panel(page).locator(".badge-override")).to_be_visible()
    window.context.close()
    window.errors.check()


def test_an_override_is_of_the_fields_that_were_refused_and_midnight_of_the_next_day(
    place: Office, window: Callable[..., Window]
) -> None:
    *_, free = free_times(place.agent)
    place.agent.patient("Nightly")
    opened = window("staff")
    opened.errors.expected.append("Failed to load resource.*409")
    page = calendar(opened, free, provider=str(CHEN))
    page.wait_for_load_state()
    page.mouse.click(*point(page, free))
    chosen(page).get_by_label("Patient").fill("nightl")
    expect(chosen(page).get_by_role("radio", name=re.compile("Nightly, Mina"))).to_be_checked()
    chosen(page).get_by_label("Visit").select_option(label="Introductory consultation, 30 min")
    for time in ("23:00", "23:30"):
        type_in(chosen(page).get_by_label("Time", exact=True), time)
        expect(chosen(page).get_by_text("Book it anyway?")).to_be_hidden()
        chosen(page).get_by_role("button", name="Book", exact=True).click()
        expect(chosen(page).get_by_text("Book it anyway?")).to_be_visible()
    chosen(page).get_by_label("Reason").fill("On call")
    chosen(page).get_by_role("button", name="Continue").click()
    chosen(page).get_by_role("button", name="Book anyway").click()
    expect(chosen(page)).to_be_hidden()
    booked = entry(page, "Nightly")
    expect(booked).to_contain_text("23:30–00:00")
    booked.focus()
    page.keyboard.press("b")
    expect(chosen(page).get_by_label("Time")).to_have_value("00:00")
    expect(chosen(page).locator("input[name=date]")).to_have_value((free.start.date() + timedelta(days=1)).isoformat())


def test_a_closed_time_says_why_when_it_is_pressed(place: Office, window: Callable[..., Window]) -> None:
    later = place.agent.slots(limit=50)[-1]  # more than a day has: nobody has walked in then
    page = calendar(window("staff"), later, provider=str(CHEN))
    page.wait_for_load_state()
    page.locator(f'.cal-body[data-provider="{CHEN}"] .shade-closed').last.click()
    expect(chosen(page).get_by_text("This is outside the hours of Dr. Robert Chen")).to_be_visible()
    expect(chosen(page).get_by_text("You can still book it")).to_be_visible()
    expect(chosen(page).get_by_label("Patient")).to_be_focused()


def test_a_walk_in_is_booked_by_keyboard_alone(place: Office, window: Callable[..., Window]) -> None:
    place.agent.patient("Strolling")
    page = window("staff").go("/arrivals")
    tab_to(page, page.get_by_role("link", name="Walk-in"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Patient")).to_be_focused()
    page.keyboard.type("stroll")
    page.keyboard.press("Enter")
    found = page.get_by_role("radio", name=re.compile("Strolling, Mina"))
    expect(found).to_be_focused()
    expect(found).to_be_checked()
    tab_to(page, page.get_by_label("Reason"))
    page.keyboard.press("End")
    page.keyboard.type(" with a cut")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Walk-in with a cut")).to_be_visible()
    expect(page.get_by_text("Recorded as arrived")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Book"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The walk-in is booked and has arrived.")).to_be_visible()
