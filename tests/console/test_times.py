"""Dates and times as the practice writes them."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from frontdesk.console.times import TimeFormats
from tests.console.desk import calendar, entries, words
from tests.support.world import PRACTICE, World, book

EARLY, NOON, LATE = (datetime(2026, 11, 23, hour, minute, tzinfo=UTC) for hour, minute in ((0, 5), (12, 0), (16, 30)))
MONDAY = date(2026, 11, 23)
BERLIN = ZoneInfo("Europe/Berlin")
WRITTEN: list[tuple[str, tuple[Any, ...], dict[str, str]]] = [
    ("clock", (EARLY,), {"24h": "00:05", "12h": "12:05 AM"}),
    ("clock", (LATE,), {"24h": "16:30", "12h": "4:30 PM"}),
    ("hour", (0,), {"24h": "00:00", "12h": "12 AM"}),
    ("hour", (24,), {"24h": "00:00", "12h": "12 AM"}),
    ("hour", (13,), {"24h": "13:00", "12h": "1 PM"}),
    ("time_span", (NOON, LATE), {"24h": "12:00–16:30", "12h": "12:00–4:30 PM"}),
    ("time_span", (EARLY, NOON), {"24h": "00:05–12:00", "12h": "12:05 AM–12:00 PM"}),
    ("brief_span", (NOON, LATE), {"24h": "12:00–16:30", "12h": "12–4:30 PM"}),
    ("opening", (540, 1440), {"24h": "09:00–24:00", "12h": "9:00 AM–12:00 AM"}),
    ("long_day", (MONDAY,), {"dayFirst": "Monday, 23 November 2026", "monthFirst": "Monday, November 23, 2026",
                             "yearFirst": "Monday, 2026-11-23"}),
    ("short_day", (MONDAY,), {"dayFirst": "Mon 23 Nov", "monthFirst": "Mon, Nov 23", "yearFirst": "Mon 11-23"}),
    ("dated", (MONDAY,), {"dayFirst": "23 Nov 2026", "monthFirst": "Nov 23, 2026", "yearFirst": "2026-11-23"}),
    ("week_of", (MONDAY, date(2026, 11, 29)),
     {"dayFirst": "23–29 November 2026", "monthFirst": "November 23–29, 2026", "yearFirst": "2026-11-23 – 2026-11-29"}),
    ("week_of", (date(2026, 11, 30), date(2026, 12, 6)),
     {"dayFirst": "30 Nov – 6 Dec 2026", "monthFirst": "Nov 30 – Dec 6, 2026"}),
    ("week_of", (date(2026, 12, 28), date(2027, 1, 3)),
     {"dayFirst": "28 Dec 2026 – 3 Jan 2027", "monthFirst": "Dec 28, 2026 – Jan 3, 2027"}),
    ("block_span", (MONDAY, MONDAY), {"dayFirst": "Mon 23 Nov 2026", "monthFirst": "Mon, Nov 23, 2026"}),
    ("block_span", (NOON, LATE), {"12h": "Mon 23 Nov 2026, 12:00–4:30 PM"}),
    ("when", (LATE, BERLIN), {"24h": "Mon 23 Nov 2026, 17:30", "monthFirst": "Mon, Nov 23, 2026, 17:30"}),
    ("brief_when", (LATE, BERLIN), {"24h": "23 Nov 2026, 17:30", "12h": "23 Nov 2026, 5:30 PM"}),
    ("exact_when", (LATE, BERLIN), {"24h": "23 Nov 2026, 17:30:00", "12h": "23 Nov 2026, 5:30:00 PM"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "wanted"), WRITTEN)
def test_dates_and_times_are_written_as_the_practice_wants_them(
    name: str, arguments: tuple[Any, ...], wanted: dict[str, str]
) -> None:
    for kind, text in wanted.items():
        formats = TimeFormats(times=kind) if kind in ("12h", "24h") else TimeFormats(dates=kind)  # type: ignore[arg-type]
        assert getattr(formats, name)(*arguments) == text


async def test_the_practice_file_decides_how_the_console_writes_them(world: World, staff: httpx.AsyncClient) -> None:
    agent = await world.client()
    booked = await book(agent)
    own = PRACTICE.replace("slug: SLUG", "slug: harbor, timeFormat: 12h, dateFormat: monthFirst")
    await world.import_file(own)
    html = await calendar(staff)
    assert words(entries(html)[booked].text).startswith("9:00 AM–9:15 AM Ada Lovelace")
    assert "Monday, November 16, 2026" in html
    assert 'data-times="12h" data-dates="monthFirst"' in html
    assert "Dec 10, 1985" in (await calendar(staff, "/day-sheet"))
    assert "9:00–9:15 AM" in (await staff.get(f"/console/appointments/{booked}")).text
    chosen = {"provider": 10, "location": 1, "date": "2026-11-16", "time": "16:00"}
    form = (await staff.get("/console/book/at", params=chosen)).text
    assert 'value="16:00"' in form, "what is sent stays the same"
    answer = await agent.get(f"/api/appointments/{booked}")
    assert answer.json()["start"].startswith("2026-11-16T09:00"), "so does the API"
