"""A busy practice: searches that were never asked before, and searches between bookings, against floor (a)."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import load
from floors import Floor
from measuring import Generators, Progress, Row, Sizes
from practices import (
    calendar_sql,
    many_procedures,
    office_bookings,
    office_queries,
    office_searches,
    patients_sql,
    unheard,
    unseen_searches,
)
from reads import CONNECTIONS, THIRD, against, measured, on_several_processes, scaled_costs
from service import Service, exchange

_SEARCHES_PER_BOOKING = 20
_MAX_COLD_SEARCHES = 8000  # searches a second
_FLOOR, _ASKED, _SHOWN = "search from memory", "search never asked", "slots never shown"
_BOOKING, _ONE_PROVIDER = "search while booking", "search while booking, one provider"


def busy_day(service: Service, folder: Path, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    """Everything in one practice: another that was active a moment ago would slow it down."""
    practice = service.import_practice(many_procedures("busy"))
    service.execute(patients_sql(practice, 100) + calendar_sql(practice, "08:00", 15, 40, THIRD, 60))
    service.settle()
    token = service.tokens(["busy"])[0]
    status, _, body = exchange(service.port, "GET", unseen_searches()[-1], headers={"Authorization": f"Bearer {token}"})
    assert (status, len(json.loads(body)["items"])) == (200, 50), "every search must fill its page"
    searches = [load.request("GET", path, token) for path in office_searches()]
    of_one = [load.request("GET", path, token) for path in office_searches() if "providerId=1&" in path]
    never_asked = (load.request("GET", path, token) for path in unheard(office_queries()))
    never_shown = [load.request("GET", path, token) for path in unseen_searches()]
    bookings = office_bookings(token, service.slot_ids([practice])[0])
    own = [booking for booking in bookings if booking[2] == f"pat_{1:022}"]
    spread = [booking for booking in bookings if booking[2] != f"pat_{1:022}"]

    def asked() -> load.Measured:
        wanted = list(itertools.islice(never_asked, int(_MAX_COLD_SEARCHES * sizes.seconds)))
        return measured(generators, service, load.each_once, wanted, CONNECTIONS, sizes.seconds)

    def shown() -> load.Measured:
        found = measured(generators, service, load.each_once, never_shown, CONNECTIONS, sizes.seconds)
        used = found.answers + CONNECTIONS  # they come again when the worker has forgotten them
        never_shown[:] = never_shown[used:] + never_shown[:used]
        return found

    def booking(
        asked: Sequence[bytes], wanted: list[tuple[str, str, str]], connections: int
    ) -> Callable[[], load.Measured]:
        def way() -> load.Measured:
            arguments = (asked, wanted, connections, sizes.seconds, _SEARCHES_PER_BOOKING)
            found = measured(generators, service, load.read_and_book, *arguments)
            # Every round finds the days equally full, however many bookings a fast machine makes.
            service.execute(f"DELETE FROM appointment WHERE practice_id = {practice} AND booked_by <> 'bench'")
            return found

        return way

    def ways(floor: Floor) -> dict[str, Callable[[], load.Measured]]:
        return {
            _FLOOR: lambda: measured(generators, floor, load.repeat, searches, CONNECTIONS, sizes.seconds),
            _ASKED: asked,
            _SHOWN: shown,
            _BOOKING: booking(searches, spread, CONNECTIONS),
            _ONE_PROVIDER: booking(of_one, own, CONNECTIONS // 4),  # one provider has few open slots,
        }

    taken = on_several_processes(service, office_searches(), token, folder, ways, sizes, progress)
    after = f"search_slots, a booking after every {_SEARCHES_PER_BOOKING}"
    return [
        *_rows(taken, _ASKED, "search_slots, never asked before"),
        *_rows(taken, _SHOWN, "search_slots, slots never shown before"),
        *_rows(taken, _BOOKING, f"{after}, spread over the providers", "read"),
        *_rows(taken, _ONE_PROVIDER, f"{after}, one provider asked and booked alike", "read"),
    ]


def _rows(
    taken: dict[str, list[load.Measured]],
    name: str,
    title: str,
    counted: str | None = None,
) -> list[Row]:
    """The rate against the floor, and the CPU time of a call."""
    return [
        against(taken, name, _FLOOR, title, counted),
        *scaled_costs(name, title, taken[name], taken[_FLOOR]),
    ]
