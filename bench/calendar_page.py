"""The console's calendar on a full day: bytes on the wire, CPU of live updates, and the first paint in a browser where
there is one."""

import gzip
import http.client
import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from console_pages import known_columns
from measuring import Progress, Row, Sizes, interleaved, median, ratios
from practices import clinic, full_day_sql
from service import SESSION_COOKIE, Service, exchange

PROVIDERS, VISITS, FEW = 12, 50, 5
_UPDATES = 50
_PAINT = """() => new Promise((done) => {
  const look = () => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    if (paint) done(paint.startTime); else requestAnimationFrame(look);
  };
  look();
})"""


def full_day(service: Service, sizes: Sizes, progress: Progress) -> list[Row]:
    practice = service.import_practice(clinic("clinic", PROVIDERS))
    monday = datetime.now(UTC).date() + timedelta(days=7 - datetime.now(UTC).weekday())
    service.execute(full_day_sql(practice, monday, VISITS) + full_day_sql(practice, monday + timedelta(days=1), FEW))
    session = service.staff_session("clinic")
    page = _fetch(service, session, f"/console/calendar?date={monday}")
    rows = [
        _wire("a day of 600 appointments", len(page)),
        _quiet(service, session, monday, page),
        _change(service, session, practice, monday, page),
    ]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    return [*rows, _paint(service, session, monday, chromium, sizes, progress)] if chromium else rows


def _wire(title: str, size: int) -> Row:
    return Row(f"calendar, {title}", f"calendar page, {title}, compressed", size / 1000, unit=" kB")


def _quiet(service: Service, session: str, day: date, page: bytes) -> Row:
    """What it costs that an open page asks whether its day has changed."""
    before = service.spent_seconds()
    for _ in range(_UPDATES):
        _fetch(service, session, f"/console/calendar/grid?date={day}", _known(page), http.client.NOT_MODIFIED)
    costs = {who: (spent - before[who]) / _UPDATES * 1000 for who, spent in service.spent_seconds().items()}
    return Row(
        "calendar, no change",
        "live update of that page if only other days have changed: CPU",
        sum(costs.values()),
        unit=" ms",
        figures=f"service {costs['service']:.1f} ms, database {costs['database']:.1f} ms",
    )


def _change(service: Service, session: str, practice: int, day: date, page: bytes) -> Row:
    """What a page that is open gets when one appointment changes."""
    service.execute(
        f"UPDATE appointment SET status = 'arrived' WHERE practice_id = {practice} AND provider_id = 1 AND lane = 1"
    )
    return _wire("one change", len(_fetch(service, session, f"/console/calendar/grid?date={day}", _known(page))))


def _known(page: bytes) -> dict[str, str]:
    html = gzip.decompress(page).decode()
    [tag] = re.findall(r'data-calendar .*data-tag="([\w.]+)"', html)
    return {**known_columns(html), "If-None-Match": f'"{tag}"'}


def _fetch(
    service: Service,
    session: str,
    path: str,
    headers: dict[str, str] | None = None,
    expected: int = http.client.OK,
) -> bytes:
    asked = {"Cookie": f"{SESSION_COOKIE}={session}", "Accept-Encoding": "gzip", **(headers or {})}
    status, _, body = exchange(service.port, "GET", path, headers=asked)
    assert status == expected, status
    return body


def _paint(service: Service, session: str, day: date, chromium: str, sizes: Sizes, progress: Progress) -> Row:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        url = f"http://127.0.0.1:{service.port}"
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": SESSION_COOKIE, "value": session, "url": f"{url}/console"}])
        page = context.new_page()

        def way(shown: date) -> Callable[[], float]:
            def opened() -> float:
                page.goto(f"{url}/console/calendar?date={shown}", wait_until="commit")
                found: float = page.evaluate(_PAINT)
                return found

            return opened

        ways = {"full": way(day), "few": way(day + timedelta(days=1))}
        taken = interleaved(ways, sizes.rounds, progress)
        browser.close()
    value, low, high = ratios(taken["full"], taken["few"])
    figures = f"{median(taken['full']):.0f} ms against {median(taken['few']):.0f} ms"
    title = "first paint of a day of 600 appointments, against one of 60"
    return Row("calendar, paint", title, value, low=low, high=high, figures=figures)
