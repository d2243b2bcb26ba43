"""Usage: against cap and quota, and over time, in charts whose every number is also in a table."""

import html
import re
from collections import Counter
from zoneinfo import ZoneInfo

import httpx
import pytest

from frontdesk.console.charts import HEIGHT, WIDTH, Chart, errors_chart, requests_chart, share
from frontdesk.console.times import TimeFormats
from frontdesk.desk.usage import SPANS, UsageBucket, UsageReport
from tests.console.admin_pages import text_of
from tests.support.world import NOW, World, slots

ZONE = ZoneInfo("America/New_York")


def table_of(page: httpx.Response, name: str) -> list[list[str]]:
    """The rows of the table under a chart."""
    found = re.search(rf'aria-label="{name}, as a table".*?<tbody>(.*?)</tbody>', page.text, re.DOTALL)
    assert found is not None, name
    rows = re.findall(r"<tr>(.*?)</tr>", found.group(1), re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


async def call(world: World) -> httpx.AsyncClient:
    """A client that called: found something, missed something, was refused."""
    agent = await world.client(per_minute=50, quota=1000)
    await slots(agent)
    for _ in range(3):
        await agent.get("/api/slots/nothing")
    await agent.get("/api/slots")
    await world.service.usage.flush()
    await world.service.limiter.return_leases()
    return agent


async def test_requests_are_shown_by_how_they_ended(world: World, admin: httpx.AsyncClient) -> None:
    await call(world)
    for span in SPANS:
        page = await admin.get("/console/usage", params={"span": span})
        assert page.status_code == 200
        assert "Succeeded 1 Challenged 0 Refused 4 Failed 0" in text_of(page)
        rows = table_of(page, "Requests over time")
        assert len(rows) == SPANS[span].steps
        assert rows[-1][1:] == ["1", "0", "4", "0"]
        assert all(row[1:] == ["0", "0", "0", "0"] for row in rows[:-1])
        assert table_of(page, "Errors by code over time")[-1][1:] == ["3", "1"]
        assert "404 not_found 3" in text_of(page)
        assert 'href="/errors.html#not_found"' in page.text


async def test_use_is_shown_against_cap_and_quota(world: World, admin: httpx.AsyncClient) -> None:
    agent = await call(world)
    page = await admin.get("/console/usage")
    assert "5 of 50" in text_of(page)
    assert "5 of 1,000" in text_of(page)
    assert 'aria-label="Calls of agent of harbor in these 30 days: 5 of 1,000"' in page.text
    one = await admin.get("/console/clients/" + agent.headers["X-Test-Client"])
    assert "5 of 1,000" in text_of(one)
    assert "Succeeded 1 Challenged 0 Refused 4 Failed 0" in text_of(one)


async def test_one_client_can_be_looked_at_alone(world: World, admin: httpx.AsyncClient) -> None:
    agent = await call(world)
    quiet = await world.client(grant="integration")
    page = await admin.get("/console/usage", params={"client": quiet.headers["X-Test-Client"]})
    assert "No request in the last 24 hours." in text_of(page)
    page = await admin.get("/console/usage", params={"client": agent.headers["X-Test-Client"], "span": "3h"})
    assert "Refused 4" in text_of(page)
    for odd in ({"client": "fd_nobody"}, {"span": "9y"}, {"client": "'; DROP TABLE client", "span": "<script>"}):
        page = await admin.get("/console/usage", params=odd)
        assert page.status_code == 200
        assert "Refused 4" in text_of(page)


async def test_another_practices_requests_are_not_in_it(world: World, admin: httpx.AsyncClient) -> None:
    await world.client()
    other = await world.client("other")
    await other.get("/api/practice")
    await world.service.usage.flush()
    for query in ("", "?client=" + other.headers["X-Test-Client"]):
        page = await admin.get("/console/usage" + query)
        assert "No request in the last 24 hours." in text_of(page)
        assert "agent of other" not in page.text


async def test_a_practice_without_clients_is_told_what_to_do(admin: httpx.AsyncClient) -> None:
    page = await admin.get("/console/usage")
    assert "Nothing to count yet" in page.text
    assert 'href="/console/clients/new"' in page.text


def counted(*steps: dict[str, int], errors: tuple[Counter[tuple[int, str]], ...] = ()) -> UsageReport:
    span = SPANS["3h"]
    moments = []
    for number, step in enumerate(steps):
        failed = errors[number] if errors else Counter()
        moments.append(UsageBucket(NOW + number * span.step, Counter(step), failed))  # type: ignore[arg-type]
    return UsageReport(span, moments)


def check_fits(chart: Chart) -> None:
    """Columns stand beside each other, parts on each other, and all of it inside."""
    right = 0.0
    for column in chart.columns:
        assert column.x >= right
        right = column.x + column.width
        below = HEIGHT
        for part in column.parts:
            assert part.y + part.height == pytest.approx(below, abs=0.02)
            assert part.height > 0
            below = part.y
        assert below >= -0.01
        assert HEIGHT - below == pytest.approx(sum(column.counts) * HEIGHT / chart.top, abs=0.05)
    assert right <= WIDTH


@pytest.mark.parametrize("maximum", [0, 1, 2, 3, 7, 10, 11, 99, 100, 101, 999, 12_345, 10**9])
def test_a_chart_holds_its_highest_column_under_a_round_even_number(maximum: int) -> None:
    chart = requests_chart(
        counted({"succeeded": maximum}, {"succeeded": maximum // 2, "failed": maximum // 3}), ZONE, TimeFormats()
    )
    check_fits(chart)
    assert chart.top >= max(2, maximum)
    assert chart.top % 2 == 0
    assert chart.top <= max(2, maximum * 2)
    assert chart.is_empty == (maximum == 0)


def test_errors_beyond_the_most_frequent_are_shown_together() -> None:
    many = Counter({(400 + number, f"code_{number}"): 10 - number for number in range(7)})
    chart = errors_chart(counted({}, {}, errors=(many, Counter({(404, "x"): 1}))), ZONE, TimeFormats())
    check_fits(chart)
    assert chart.series[0].name == "400 code_0"
    assert chart.series[-1].name == "Others"
    assert sum(series.total for series in chart.series) == many.total() + 1
    assert [sum(column.counts) for column in chart.columns] == [many.total(), 1]


@pytest.mark.parametrize(
    ("used", "of", "shown"), [(0, 10, 0.0), (1, 10**6, 0.75), (5, 10, 50.0), (11, 10, 100.0), (3, 0, 0.0)]
)
def test_a_little_use_can_be_seen_and_too_much_stays_inside(used: int, of: int, shown: float) -> None:
    assert share(used, of) == shown
