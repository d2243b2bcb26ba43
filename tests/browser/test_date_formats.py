"""A practice that writes 2:30 PM and Nov 23, 2026, in the page and in inputs."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser import full_day
from tests.browser.accessibility import open_with_axe, require_accessible
from tests.browser.browsing import DESKTOP, Office, Window, command, sign_in, type_in

pytestmark = pytest.mark.heavy

_SLUG = "twelve"


@pytest.fixture(scope="module")
def desk(place: Office) -> Iterator[Window]:
    file = full_day.practice_file(2)
    file["practice"] |= {"slug": _SLUG, "timeFormat": "12h", "dateFormat": "monthFirst"}
    path = place.folder / "twelve.yaml"
    path.write_text(json.dumps(file))
    command(place.desk, "practice", "import", str(path))
    opened = open_with_axe(place, None)
    sign_in(opened.page, place.new_link("staff", "Ann at the desk", _SLUG))
    yield opened
    opened.context.close()
    opened.errors.check()


def test_dates_are_typed_in_any_usual_form_and_shown_in_the_practices(desk: Window) -> None:
    page = desk.go(f"/calendar?date={full_day.day()}")
    page.wait_for_load_state()
    expect(page.get_by_text("9 AM", exact=True)).to_be_visible()
    expect(page.get_by_text("8 AM–5 PM").first).to_be_visible()
    day = page.get_by_label("Date", exact=True)
    for each in (day, page.locator("input[name=date][data-typed]")):
        expect(each).to_have_attribute("autocomplete", "off")  # no browser restores one without the other
    for typed, shown, iso in (
        ("12/1/2026", "Dec 1, 2026", "2026-12-01"),
        ("1.12.2026", "Dec 1, 2026", "2026-12-01"),
        ("Feb 29th, 28", "Feb 29, 2028", "2028-02-29"),
        ("3 march 2027", "Mar 3, 2027", "2027-03-03"),
        ("2027-05-06", "May 6, 2027", "2027-05-06"),
        ("31/12/2026", "Dec 31, 2026", "2026-12-31"),
        ("02152027", "Feb 15, 2027", "2027-02-15"),
    ):
        type_in(day, typed)
        with page.expect_navigation():  # also where the next date is the same
            day.press("Enter")
        page.wait_for_url(f"**date={iso}*")
        expect(day).to_have_value(shown)
    type_in(day, "soon")
    day.blur()
    assert day.evaluate("(field) => field.validationMessage") == "Write the date like Nov 23, 2026."
    require_accessible(page)


def test_times_are_typed_in_any_usual_form_and_shown_in_the_practices(desk: Window) -> None:
    desk.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    day = full_day.day() + timedelta(days=1)
    page = desk.go(f"/calendar?date={day}")
    page.wait_for_load_state()
    body = page.locator(".cal-body").first
    body.click(position={"x": 40, "y": 30})
    chosen = page.get_by_role("dialog", name="Chosen time")
    time = chosen.get_by_label("Time")
    expect(time).to_have_value("8:15 AM")
    sent = chosen.locator("[name=time]")
    for typed, shown, value in (("2:30", "2:30 PM", "14:30"), ("7", "7:00 AM", "07:00"), ("1015", "10:15 AM", "10:15"),
                                ("12 a.m.", "12:00 AM", "00:00"), ("16:45", "4:45 PM", "16:45")):  # fmt: skip
        type_in(time, typed)
        time.blur()
        expect(time).to_have_value(shown)
        expect(sent).to_have_value(value)
    type_in(time, "25:00")
    time.blur()
    assert time.evaluate("(field) => field.validationMessage") == "Write the time like 2:30 PM."
    require_accessible(page)
