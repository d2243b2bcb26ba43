"""Reports: what they count, by whom and where; the same numbers as charts, tables and CSV; who may see them."""

import csv
import io
import re

import httpx
import pytest

from frontdesk.console.csv_files import _cell, csv_file
from tests.console.desk import Document, stored, words
from tests.console.signing_in import signed_in
from tests.console.test_usage import table_of
from tests.support.shared_database import world_of_a_module
from tests.support.world import PRACTICE, World, book, confirmed

world = world_of_a_module

WEEK = {"from": "2026-11-16", "to": "2026-11-22"}


@pytest.fixture(scope="module")
async def admin(world: World) -> httpx.AsyncClient:
    """After a Monday: two visits with Dr. Chen took place, one patient did not come, one cancelled."""
    agent, website = await world.client(), await world.client(grant="integration")
    done = [await book(agent), await book(agent, "Alan", providerId=11)]
    missed = await book(agent, "José")
    cancelled = await book(agent, "Alan")
    await confirmed(agent, "POST", f"/api/appointments/{cancelled}/cancel", {})
    assert (await agent.get("/api/slots/nothing")).status_code == 404
    assert (await website.get("/api/slots/nothing")).status_code == 404
    await world.service.usage.flush()
    world.clock.advance(hours=39)  # six in the evening of Monday
    desk = await signed_in(world)
    for appointment, status in [(done[0], "completed"), (done[1], "completed"), (missed, "noShow")]:
        form = {"status": status, "key": appointment}
        answer = await desk.post(f"/console/appointments/{appointment}/record", data=form)
        assert answer.status_code == 303, answer.text
    return await signed_in(world, role="admin")


async def report(admin: httpx.AsyncClient, **query: str) -> httpx.Response:
    answer = await admin.get("/console/reports", params={**WEEK, **query})
    assert answer.status_code == 200, answer.text
    return answer


async def downloaded(admin: httpx.AsyncClient, table: str, **query: str) -> list[list[str]]:
    answer = await admin.get("/console/reports/csv", params={**WEEK, "table": table, **query})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert f"harbor-{table}-2026-11-16" in answer.headers["Content-Disposition"]
    return list(csv.reader(io.StringIO(answer.text)))


async def test_visits_are_counted_by_outcome_provider_visit_type_and_booker(admin: httpx.AsyncClient) -> None:
    _, monday, *rest = await downloaded(admin, "outcomes")
    assert monday == ["2026-11-16", "2", "1", "1", "0"]
    assert len(rest) == 6
    assert all(row[1:] == ["0", "0", "0", "0"] for row in rest)
    assert (await downloaded(admin, "bookings"))[1] == ["2026-11-16", "4", "0", "0", "0"]
    headings, *providers = await downloaded(admin, "providers")
    chen, nunez, okafor = (dict(zip(headings, row, strict=True)) for row in providers)
    assert (chen["Provider"], chen["Appointments"], chen["No-show %"]) == ("Dr. Robert Chen", "3", "50.0")
    assert (chen["Hours open"], chen["Hours booked"], chen["Median days ahead"]) == ("35.0", "0.5", "1")
    assert (nunez["Hours open"], nunez["Utilisation %"]) == ("18.0", "1.4"), "two at a time, nine hours a week"
    assert (okafor["Appointments"], okafor["No-show %"], okafor["Median days ahead"]) == ("0", "", "")
    assert [row[:2] for row in (await downloaded(admin, "visit-types"))[1:]] == [["Follow-up", "4"]]
    assert (await downloaded(admin, "bookers"))[1] == ["agent of harbor", "Agent", "4", "2", "1", "1", "0"]
    assert (await downloaded(admin, "lead-time"))[2] == ["1–2 days", "4"]
    one = await downloaded(admin, "outcomes", provider="11", visit="21")
    assert one[1] == ["2026-11-16", "1", "0", "0", "0"]


async def test_failed_calls_are_those_of_agents(admin: httpx.AsyncClient) -> None:
    period = {"from": "2026-11-15", "to": "2026-11-16"}
    _, *failed = list(
        csv.reader(io.StringIO((await admin.get("/console/reports/csv", params={**period, "table": "failed"})).text))
    )
    assert failed == [["agent of harbor", "get_slot", "404", "not_found", "1"]]


async def test_charts_tables_and_downloads_have_the_same_numbers(admin: httpx.AsyncClient) -> None:
    page = await report(admin)
    links = re.findall(r'href="(/console/reports/csv\?[^"]+)"', page.text)
    assert len(links) == 6, "three charts and three tables; there was no failed call in this week"
    for title, table in (("Appointments by outcome", "outcomes"), ("By provider", "providers")):
        shown = [[words(re.sub("<[^>]+>", "", cell)) for cell in row][1:] for row in table_of(page, title)]
        assert shown == [row[1:] for row in (await downloaded(admin, table))[1:]]
    for link in links:
        assert (await admin.get(link.replace("&amp;", "&"))).status_code == 200
    quarter = await admin.get("/console/reports", params={"from": "2026-09-01", "to": "2026-11-30"})
    assert len(table_of(quarter, "Appointments by outcome")) == 13, "weeks"


async def test_a_period_that_is_too_long_or_ends_before_it_begins_is_refused_in_words(admin: httpx.AsyncClient) -> None:
    for first, last in (("2026-01-01", "2026-12-31"), ("2026-11-16", "2026-11-15")):
        answer = await admin.get("/console/reports", params={"from": first, "to": last})
        assert answer.status_code == 422
        assert Document(answer.text).having("role", "alert")
        gone = await admin.get("/console/reports/csv", params={"from": first, "to": last, "table": "failed"})
        assert gone.status_code == 422
    assert (
        await admin.get("/console/reports", params={"from": "x", "provider": "99", "visit": "<"})
    ).status_code == 200
    assert (await admin.get("/console/reports/csv", params={"table": "patients"})).status_code == 404


async def test_no_report_names_a_patient_or_counts_another_practice(world: World, admin: httpx.AsyncClient) -> None:
    text = (await report(admin)).text
    for table in ("outcomes", "bookers", "failed", "providers"):
        text += "\n".join(",".join(row) for row in await downloaded(admin, table))
    assert not re.search("Lovelace|Turing|pat_|apt_", text)
    stranger = await signed_in(world, role="admin", practice="other")
    answer = await stranger.get("/console/reports/csv", params={**WEEK, "table": "outcomes"})
    assert all(line.endswith('"0","0","0","0"') for line in answer.text.splitlines()[1:])


async def test_a_name_that_a_spreadsheet_would_compute_is_downloaded_as_text(
    world: World, admin: httpx.AsyncClient
) -> None:
    formula = '=HYPERLINK("http://example.com")'
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace("Dr. Amara Okafor", f"'{formula}'"))
    rows = await downloaded(admin, "providers")
    assert f"'{formula}" in [row[0] for row in rows]
    assert _cell("a;=1+1\t@b;c=d") == "a;'=1+1\t'@b;c=d", "spreadsheets of other countries split at these"
    for text in ("\uff1d1+1", "\uff0b1", "\uff20x", "  =1+1", "\t=1"):
        assert "'" in str(_cell(text)), "read as the narrow character, or after what is trimmed"
        assert str(_cell(f"Dr; {text}")).count("'") >= 1
    assert _cell("Dr. Mary-Ann O'Brien; Sr.") == "Dr. Mary-Ann O'Brien; Sr."
    assert await stored(world, "SELECT FROM provider WHERE practice_id = $1 AND name = $2", formula)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_begins_a_formula_wherever_a_spreadsheet_splits(separator: str) -> None:
    texts = ['x;"=1+1;', ';"=1', '; "" =1', '\t"@x', '"=1', "\xa0=1", "\u3000+1", "\x0b=1", 'Dr. "Bob" Chen; "Sr."']
    file = bytes(csv_file("x.csv", ("Name", "Text"), [("Ada", text) for text in texts]).body).decode()
    cells = [cell for row in csv.reader(io.StringIO(file), delimiter=separator) for cell in row]
    assert [cell for cell in cells if re.match(r'[\s"]*[=+@]', cell)] == []
    assert "'" not in _cell(texts[-1])  # type: ignore[operator]


@pytest.mark.parametrize("page", ["reports", "usage", "arrivals"])
async def test_a_filter_may_choose_everything(admin: httpx.AsyncClient, page: str) -> None:
    """A browser does not send a form whose required field has the empty value."""
    html = (await admin.get(f"/console/{page}")).text
    filters = re.findall(r"<select([^>]*)>\s*<option value=\"\"[^>]*>(Every [^<]*)<", html)
    assert filters
    assert [(name, "required" in attributes) for attributes, name in filters] == [(name, False) for _, name in filters]
