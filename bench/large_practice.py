"""One large practice beside a small one in the same database: a search, and the console's day at one location.

Providers of both work at one location each, ten to a location, and their coming weeks are equally full. The large
practice has twenty locations and ten times as long a past.
"""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import console_pages
import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import EVERY_DAY, MINUTES, document, patients_sql, provider, scattered_sql, search_query, unheard
from service import SESSION_COOKIE, Service, running

_AT_A_LOCATION = 10  # providers
_LOCATIONS = {"small": 1, "large": 20}
_PAST = {"small": 1_000, "large": 10_000}  # appointments of a provider, a tenth of them in a short run
_AHEAD = 500
_A_DAY = 24
_PATIENTS = 20
_SEARCHED = 8  # providers
_CONNECTIONS = 16
_MAX_SEARCHES = 8000  # a second
_PAGES = 4


def beside_small(folder: Path, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    with running(folder) as service:
        past = {slug: count if sizes.max_seconds is None else count // 10 for slug, count in _PAST.items()}
        ways: dict[str, Callable[[], float]] = {}
        for slug in _LOCATIONS:
            progress.at(f"loading the {slug} practice")
            _load(service, slug, past[slug])
            ways[f"search, {slug}"] = _search(service, generators, slug, sizes.seconds)
            ways[f"day, {slug}"] = _day(service, generators, slug)
        service.settle()
        taken = interleaved(ways, max(2, sizes.rounds // 2), progress)
    providers = _LOCATIONS["large"] * _AT_A_LOCATION
    large = (
        f"{providers} providers, {_LOCATIONS['large']} locations, {providers * past['large']:,} past and "
        f"{providers * _AHEAD:,} coming appointments"
    )
    return [
        _row(taken, "search", f"search_slots, never asked before, with {large}, in that of a small practice"),
        _row(taken, "day", "the console's day at one location of that practice, in that of the small one"),
    ]


def _load(service: Service, slug: str, past: int) -> None:
    open_at = {"days": list(EVERY_DAY), "from": "00:00", "to": "24:00"}
    providers = [
        provider(number, [{"location": 1 + (number - 1) // _AT_A_LOCATION, **open_at}])
        for number in range(1, _LOCATIONS[slug] * _AT_A_LOCATION + 1)
    ]
    practice = service.import_practice(document(slug, "UTC", providers, MINUTES, _LOCATIONS[slug]))
    location = f"1 + (provider_id - 1) / {_AT_A_LOCATION}"
    appointments = scattered_sql(str(practice), past, _AHEAD, _A_DAY, location)
    service.execute(patients_sql(practice, _PATIENTS) + appointments)


def _search(service: Service, generators: Generators, slug: str, seconds: float) -> Callable[[], float]:
    token = service.tokens([slug])[0]
    queries = [search_query(provider, 0, ahead) for provider in range(1, _SEARCHED + 1) for ahead in (1, 3, 5, 8)]
    never_asked = (load.request("GET", path, token) for path in unheard(queries))

    def work() -> float:
        wanted = list(itertools.islice(never_asked, int(_MAX_SEARCHES * seconds)))
        return 1 / generators.run(load.each_once, service.port, wanted, _CONNECTIONS, seconds).rate()

    return work


def _day(service: Service, generators: Generators, slug: str) -> Callable[[], float]:
    cookie = f"{SESSION_COOKIE}={service.staff_session(slug)}"
    path = f"/console/calendar?date={datetime.now(UTC).date() + timedelta(days=3)}&location=1"
    return lambda: generators.run(console_pages.open_page, service.port, cookie, path, _PAGES)


def _row(taken: dict[str, list[float]], what: str, title: str) -> Row:
    large, small = taken[f"{what}, large"], taken[f"{what}, small"]
    value, low, high = ratios(large, small)
    figures = f"{median(large) * 1e3:.2f} of {median(small) * 1e3:.2f} ms"
    return Row(f"large practice, {what}", title, value, low=low, high=high, figures=figures)
