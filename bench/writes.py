"""Writes: durable two-phase bookings against pgbench, and many clients who want the same few slots."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import load
from floors import BookingFloor, memory_server
from measuring import Generators, Progress, Row, Sizes, interleaved, median, ratios
from practices import DAYS, LOCATION, MINUTES, PROCEDURE, VISIT_TYPE, Slots, always_open, first_day, patients_sql
from reads import CONNECTIONS as READING
from reads import Requests, measured, scaled_costs
from service import Service, accounted

from frontdesk.domain.local_time import minute_of

CONNECTIONS = 32
FIGHTERS, WANTED = 64, 10
SLOTS = Slots(providers=80, patients=2400)  # more providers than connections: nobody waits for another's commit
_MAX_PER_SECOND = 3000
_REFUSED = ("refused", "refused at the confirmation")


class Booker:
    """Books its way through a practice, never the same slot twice."""

    def __init__(
        self,
        service: Service,
        slug: str,
        slots: Slots,
        generators: Generators,
        *,
        practice: int | None = None,
        grant: str = "agent",
    ) -> None:
        """`practice` is the id of one that has its patients; None makes a new one."""
        self._service, self._slots, self._generators = service, slots, generators
        if practice is None:
            practice = service.import_practice(always_open(slug, slots.providers))
            service.execute(patients_sql(practice, slots.patients))
        self.practice = practice
        self._ids = service.slot_ids([self.practice])[0]
        self._token = service.tokens([slug], grant)[0]
        self._first = 0

    def take(self, count: int) -> list[load.Booking]:
        taken = self._slots.bookings(self._token, self._ids, self._first, count)
        self._first += count
        return taken

    def run(self, seconds: float, connections: int = CONNECTIONS) -> load.Measured:
        limit = int(seconds * _MAX_PER_SECOND)
        bookings = self.take(limit)
        arguments = (self._service.port, bookings, connections, seconds)
        measured: load.Measured = accounted(
            lambda: self._service.processes, lambda: self._generators.run(load.book, *arguments)
        )
        self._first += measured.drained["booked"] - limit
        return measured


def bookings(
    service: Service,
    requests: Requests,
    booker: Booker,
    folder: Path,
    sizes: Sizes,
    generators: Generators,
    progress: Progress,
) -> list[Row]:
    theirs = Booker(service, "bookings-floor", SLOTS, generators)
    floor = BookingFloor(service, theirs.practice, SLOTS)
    single = Booker(service, "one-call", SLOTS, generators, grant="integration")
    seconds = sizes.pgbench_seconds
    searches = requests.get(*requests.searches)
    seen: dict[str, list[load.Measured]] = {}

    def way(name: str, run: Callable[[], load.Measured], counted: str | None = "booked") -> Callable[[], float]:
        def work() -> float:
            seen.setdefault(name, []).append(run())
            return seen[name][-1].rate(counted)

        return work

    with memory_server(service, requests.searches, requests.token, folder) as memory:
        ways = {
            "pgbench": lambda: floor.run(seconds),
            "two phases": way("two phases", lambda: booker.run(float(seconds))),
            "one call": way("one call", lambda: single.run(float(seconds))),
            "search from memory": way(
                "search from memory",
                lambda: measured(generators, memory, load.repeat, searches, READING, sizes.seconds),
                None,
            ),
        }
        for work in ways.values():  # plans for empty tables are others
            work()
        service.settle()
        taken = interleaved(ways, sizes.rounds, progress)
    in_rounds = {name: found[-len(taken[name]) :] for name, found in seen.items()}

    def row(key: str, name: str, title: str, calls: int) -> Row:
        value, low, high = ratios(taken[name], taken["pgbench"])
        costs = {who: median([calls * each.costs[who] for each in in_rounds[name]]) for who in ("service", "database")}
        return Row(
            key,
            title,
            value,
            low=low,
            high=high,
            figures=f"{median(taken[name]):,.0f}/s of {median(taken['pgbench']):,.0f}/s; CPU per booking "
            f"service {costs['service']:,.0f} µs, database {costs['database']:,.0f} µs",
            details={"rates": taken[name], "pgbench": taken["pgbench"], "cpu": costs},
        )

    return [
        row("booking", "two phases", "two-phase booking, durable, against pgbench", 2),
        *scaled_costs(
            "booking",
            "two-phase booking",
            in_rounds["two phases"],
            in_rounds["search from memory"],
            calls=2,
        ),
        row("one call", "one call", "booking of an integration in one call, against the same", 1),
    ]


@dataclass
class _Arena:
    """The slots that everybody wants: one provider's, a batch at a time."""

    service: Service
    practice: int
    token: str
    batches: list[list[str]]
    first: int = 0

    def fight(self, generators: Generators, seconds: float) -> load.Measured:
        patients = [f"pat_{number:022}" for number in range(1, FIGHTERS + 1)]
        arguments = (self.service.port, self.token, self.batches[self.first :], patients, seconds)
        measured = generators.run(load.fight, *arguments)
        self.first += measured.drained["booked"] // WANTED
        return measured


def _arena(service: Service) -> _Arena:
    practice = service.import_practice(always_open("wanted", 1))
    service.execute(patients_sql(practice, FIGHTERS))
    minute = minute_of(first_day())
    starts = list(range(minute, minute + DAYS * 1440, MINUTES))
    ids = service.slot_ids([practice])[0].encode_many(1, LOCATION, VISIT_TYPE, PROCEDURE, MINUTES, starts)
    batches = [ids[at : at + WANTED] for at in range(0, len(ids), WANTED)]
    return _Arena(service, practice, service.tokens(["wanted"])[0], batches)


def contention(service: Service, booker: Booker, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    arena = _arena(service)
    fights: list[load.Measured] = []
    seconds = float(sizes.pgbench_seconds)

    def fight() -> float:
        measured = arena.fight(generators, seconds)
        fights.append(measured)
        return sum(measured.rate(outcome) for outcome in _REFUSED)

    def alone() -> float:
        return booker.run(seconds, FIGHTERS).rate("booked")

    taken = interleaved({"alone": alone, "fight": fight}, max(2, sizes.rounds // 2), progress)
    value, low, high = ratios(taken["fight"], taken["alone"])
    outcomes: Counter[str] = sum((Counter(each.drained) for each in fights), Counter())
    stored = service.query(
        "SELECT count(*), count(DISTINCT starts_at) FROM appointment WHERE practice_id = $1", arena.practice
    )[0]
    odd = {outcome: count for outcome, count in outcomes.items() if outcome not in (*_REFUSED, "booked")}
    # Told and stored agree, no time is stored twice, every wanted slot went to somebody, nobody heard anything else.
    lost = abs(outcomes["booked"] - stored[0]) + (stored[0] - stored[1]) + stored[0] % WANTED + sum(odd.values())
    return [
        Row(
            "refusals",
            f"{FIGHTERS} clients for the same {WANTED} slots: refusals against bookings",
            value,
            low=low,
            high=high,
            figures=f"{median(taken['fight']):,.0f} refusals/s of {median(taken['alone']):,.0f} bookings/s by as many "
            f"clients alone; {outcomes['refused at the confirmation']:,} refused at the confirmation",
            details={**taken, "outcomes": dict(outcomes)},
        ),
        Row(
            "lost",
            "bookings lost, doubled or answered oddly in these fights",
            float(lost),
            figures=f"{outcomes['booked']:,} confirmed, {stored[0]:,} stored {odd or ''}",
        ),
    ]
