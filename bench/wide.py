"""The wide search: find_first_available over fifty providers, five locations and ninety days, in searches of one."""

import itertools
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import load
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import INSERT_APPOINTMENTS, PROCEDURE, VISIT_TYPE, calendar_sql, group, path_of, patients_sql, unheard
from reads import Requests
from service import Service, exchange

_WARM_CALLS, _OTHER_CALLS, _BOOKED_CALLS = 64, 16, 8
_WARM, _OTHER, _CHANGED = "warm", "another question each time", "after all calendars changed"
_BOOKED = "after one booking"

# An appointment of each provider in the days ahead. It keeps its time, so that every round has the same answer.
_CHANGE = """
UPDATE appointment SET status = 'confirmed'
WHERE practice_id = $1 AND appointment_id IN (
    SELECT DISTINCT ON (provider_id) appointment_id FROM appointment
    WHERE practice_id = $1 AND starts_at > current_date + 1 ORDER BY provider_id, starts_at
)
"""
_BOOKED_ID = f"apt_{'booked':>022}"
_BOOK = f"""{INSERT_APPOINTMENTS}
VALUES ($1, $2, 'pat_' || lpad('1', 22, '0'), $3, $4, {VISIT_TYPE}, {PROCEDURE}, 1, $5, $6, $6, 'booked', 'bench',
    now(), now())
"""
_UNBOOK = "DELETE FROM appointment WHERE practice_id = $1 AND appointment_id = $2"


def first_available(
    service: Service, requests: Requests, sizes: Sizes, generators: Generators, progress: Progress
) -> list[Row]:
    """Fifty providers, at another of five locations every weekday; once with room soon, once with none for 80 days."""
    first = datetime.now(UTC).date()
    queries = [
        {"visitTypeId": VISIT_TYPE, "procedureId": PROCEDURE, "from": first + timedelta(days=ahead), "limit": limit}
        for ahead in range(20)
        for limit in range(3, 9)
    ]
    searches = requests.get(*requests.searches)

    def timed(wanted: Sequence[bytes]) -> float:
        seconds: float = generators.run(load.one_by_one, service.port, wanted, searches[:1])
        return seconds

    ways: dict[str, Callable[[], float]] = {"search": lambda: timed(searches)}
    groups = (
        ("group-with-room", "room this week", "s % 3 = 0", 90),
        ("group-booked-out", "none for 80 days", "true", 80),
    )
    for slug, _, taken_steps, days in groups:
        practice = service.import_practice(group(slug))
        service.execute(patients_sql(practice, 100) + calendar_sql(practice, "09:00", 30, 16, taken_steps, days))
        ways |= _wide_ways(service, timed, slug, practice, queries)
    service.settle()
    taken = interleaved(ways, max(2, sizes.rounds // 2), progress)
    rows = []
    for slug, title, _, _ in groups:
        asked = f"find_first_available, 50 providers, 5 locations, 90 days, {title}, in warm search_slots"
        for how in (_WARM, _OTHER, _CHANGED, _BOOKED):
            value, low, high = ratios(taken[f"{slug}, {how}"], taken["search"])
            rows.append(
                Row(
                    f"{slug}, {how}",
                    f"{asked}: {how}",
                    value,
                    low=low,
                    high=high,
                    figures=f"{median(taken[f'{slug}, {how}']) * 1e3:.2f} of {median(taken['search']) * 1e3:.2f} ms, "
                    "one by one",
                    details={"seconds": taken[f"{slug}, {how}"], "searches": taken["search"]},
                )
            )
    return rows


def _wide_ways(
    service: Service,
    timed: Callable[[Sequence[bytes]], float],
    slug: str,
    practice: int,
    queries: Sequence[dict[str, Any]],
) -> dict[str, Callable[[], float]]:
    """The same question again; another one each time; one after an appointment of every provider has changed; and the
    same question after the first slot of its answer was booked."""
    token = service.tokens([slug])[0]
    path = "/api/slots/first-available"
    never_asked = unheard(queries, path)
    plain = path_of({"visitTypeId": VISIT_TYPE, "procedureId": PROCEDURE}.items(), path)
    again = load.request("GET", plain, token)

    def other(count: int) -> list[bytes]:
        return [load.request("GET", each, token) for each in itertools.islice(never_asked, count)]

    def changed() -> float:
        service.query(_CHANGE, practice)
        return timed(other(1))

    def first_slot() -> dict[str, Any]:
        _, _, body = exchange(service.port, "GET", plain, headers={"Authorization": f"Bearer {token}"})
        found: dict[str, Any] = json.loads(body)["items"][0]
        return found

    def booked() -> float:
        seconds = 0.0
        for _ in range(_BOOKED_CALLS):
            slot = first_slot()
            starts, ends = datetime.fromisoformat(slot["start"]), datetime.fromisoformat(slot["end"])
            service.query(_BOOK, practice, _BOOKED_ID, slot["providerId"], slot["locationId"], starts, ends)
            seconds += timed([again])
            assert first_slot()["id"] != slot["id"], "the slot must be taken"
            service.query(_UNBOOK, practice, _BOOKED_ID)
        return seconds / _BOOKED_CALLS

    return {
        f"{slug}, {_WARM}": lambda: timed([again] * _WARM_CALLS),
        f"{slug}, {_OTHER}": lambda: timed(other(_OTHER_CALLS)),
        f"{slug}, {_CHANGED}": changed,
        f"{slug}, {_BOOKED}": booked,
    }
