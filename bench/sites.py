"""A service whose database grows, and the load that goes to the practices in it."""

import itertools
import math
from collections.abc import Callable

import load
from measuring import Generators, Progress, Sizes
from practices import Slots, always_open, path_of, patients_sql, scattered_sql, search_path, search_query, unheard
from service import Service, accounted

SLOTS = Slots(providers=9, patients=20)
_SEARCHED = SLOTS.providers + 1  # a provider whom nobody books, so that searches cost the same from first to last
_AHEAD, _PAST = 100, 900  # appointments of a provider
_CONNECTIONS = 16
_BOOKERS = 8  # fewer than a practice has providers: nobody waits for another's commit, however few practices there are
_CLIENTS = 64  # of as many practices where there are
_WARM_CLIENTS = 16
_FIRST_DATES, _LIMITS = (
    range(1, 10),
    range(44, 51),
)  # 63 searches: no divisor in common with the clients, so each asks all
_STRANGERS = 50  # practices that are asked for the first time
_AT_ONCE = 100  # practices loaded by one statement
_MANY = 300  # practices from which on it is quicker to build indexes afterwards
_MAX_SEARCHES, _MAX_BOOKINGS = 8000, 2000

_CLONE = """
INSERT INTO practice OVERRIDING SYSTEM VALUE
SELECT (jsonb_populate_record(p, jsonb_build_object('practice_id', n, 'slug', 'practice-' || n))).*
FROM practice p, generate_series({first}, {last}) n WHERE p.practice_id = 1;
"""
_CLONE_PART = """
INSERT INTO {table}
SELECT (jsonb_populate_record(t, jsonb_build_object('practice_id', p.practice_id))).*
FROM {table} t, practice p WHERE t.practice_id = 1 AND p.practice_id BETWEEN {first} AND {last};
"""
_PARTS = ("location", "provider", "visit_type", "procedure")


_LATER = """
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index i
WHERE indrelid = 'appointment'::regclass AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""
_TRIGGERS = ("calendar_insert", "calendar_update", "calendar_delete")
_COUNT_CALENDARS = """
INSERT INTO calendar_version SELECT practice_id, provider_id, 1 FROM provider ON CONFLICT DO NOTHING;
"""


class Site:
    """A service, and the practices that its load goes to."""

    def __init__(self, service: Service, generators: Generators, sizes: Sizes) -> None:
        self.service, self._generators, self._seconds = service, generators, sizes.seconds
        assert service.import_practice(always_open("practice-1", _SEARCHED)) == 1
        service.execute(patients_sql(1, SLOTS.patients) + scattered_sql("1", _PAST, _AHEAD))
        service.settle()
        self._booked: dict[int, int] = {}
        # Few dates: the slots that the clients are shown have to fit into the worker's memory of slots.
        self._queries = [
            {**search_query(_SEARCHED, 0, ahead), "limit": limit} for ahead in _FIRST_DATES for limit in _LIMITS
        ]
        self._never_asked = unheard(self._queries)
        self.aim(1)

    def aim(self, practices: int) -> None:
        """Spreads the load over the practices there are: always as many clients, one practice's or many practices'."""
        aims = list(range(1, practices + 1, max(1, practices // _CLIENTS)))[:_CLIENTS]
        clients = list(itertools.islice(itertools.cycle(aims), _CLIENTS))
        self._tokens = self.service.tokens([f"practice-{number}" for number in clients])
        self._clients = {aim: self._tokens[at :: len(aims)] for at, aim in enumerate(aims)}
        self._ids = dict(zip(aims, self.service.slot_ids(aims), strict=True))

    def grow(self, before: int, practices: int, progress: Progress) -> None:
        many = practices - before >= _MANY
        later = self.service.query(_LATER) if many else []
        # Unique and exclusion constraints stay: building them afterwards would check every row once more.
        for index in later:
            self.service.execute(f"DROP INDEX {index['name']}")
        for trigger in _TRIGGERS:
            self.service.execute(f"ALTER TABLE appointment DISABLE TRIGGER {trigger}")
        for first in range(before + 1, practices + 1, 2 * _AT_ONCE):
            progress.at(f"loading practice {first:,} of {practices:,}")
            halves = ((first, first + _AT_ONCE - 1), (first + _AT_ONCE, first + 2 * _AT_ONCE - 1))
            self.service.execute(
                *(_load(start, min(end, practices)) for start, end in halves if start <= min(end, practices))
            )
        progress.at("building indexes")
        self.service.execute(*(f"SET maintenance_work_mem = '512MB'; {index['definition']}" for index in later))
        for trigger in _TRIGGERS:
            self.service.execute(f"ALTER TABLE appointment ENABLE ALWAYS TRIGGER {trigger}")
        self.service.execute(
            _COUNT_CALENDARS
            + "SELECT setval(pg_get_serial_sequence('practice', 'practice_id'), max(practice_id)) FROM practice"
        )
        progress.at("vacuuming")
        self.service.settle()
        self.aim(practices)

    def get_known(self) -> None:
        """Asks in every practice for all slots that its searches find, so that the service remembers them."""
        paths = [search_path(_SEARCHED, 0, ahead) for ahead in reversed(_FIRST_DATES)]
        requests = [load.request("GET", path, token) for path in paths for token in self._tokens]
        self._generators.run(load.one_by_one, self.service.port, requests)

    def first_searches(self, practices: int) -> float | None:
        """Seconds per search, each in a practice that the service has not met yet; None where there is none."""
        others = sorted({*range(2, practices + 1, max(1, practices // _STRANGERS))} - {*self._clients})[:_STRANGERS]
        if not others:
            return None
        tokens = self.service.tokens([f"practice-{number}" for number in others])
        requests = [load.request("GET", search_path(_SEARCHED), token) for token in tokens]
        seconds: float = self._generators.run(load.one_by_one, self.service.port, requests)
        return seconds

    def warm_search(self) -> load.Measured:
        few = itertools.cycle(self._tokens[:: _CLIENTS // _WARM_CLIENTS])
        requests = [load.request("GET", path_of(query.items()), next(few)) for query in self._queries]
        self._generators.run(load.one_by_one, self.service.port, requests)  # what was booked has made them cold
        return self._accounted(load.repeat, self.service.port, requests, _CONNECTIONS, self._seconds)

    def search(self) -> load.Measured:
        paths = itertools.islice(self._never_asked, int(_MAX_SEARCHES * self._seconds))
        requests = [load.request("GET", *each) for each in zip(paths, itertools.cycle(self._tokens), strict=False)]
        return self._accounted(load.each_once, self.service.port, requests, _CONNECTIONS, self._seconds)

    def book(self) -> load.Measured:
        wanted = []
        for practice, tokens in self._clients.items():
            first, count = self._booked.get(practice, 0), math.ceil(_MAX_BOOKINGS / len(self._clients))
            bookings = SLOTS.bookings("", self._ids[practice], first, count)
            wanted.append(
                [(token, *rest) for token, (_, *rest) in zip(itertools.cycle(tokens), bookings, strict=False)]
            )
        in_turn = list(itertools.chain.from_iterable(zip(*wanted, strict=True)))
        measured = self._accounted(load.book, self.service.port, in_turn, _BOOKERS, self._seconds)
        used = math.ceil(measured.drained["booked"] / len(self._clients))
        for practice in self._clients:
            self._booked[practice] = self._booked.get(practice, 0) + used
        return measured

    def book_and_forget(self) -> load.Measured:
        """Bookings that are removed again: all go to one practice, whose days would otherwise fill up faster than those
        of many."""
        measured = self.book()
        self.service.execute("DELETE FROM appointment WHERE booked_by <> 'bench'")
        self.service.execute("VACUUM appointment")
        self._booked.clear()
        return measured

    def _accounted(self, work: Callable[..., load.Measured], *arguments: object) -> load.Measured:
        measured: load.Measured = accounted(
            lambda: self.service.processes, lambda: self._generators.run(work, *arguments)
        )
        return measured

    def appointments(self) -> int:
        found: int = self.service.query("SELECT count(*) FROM appointment WHERE booked_by = 'bench'")[0][0]
        return found


def _load(first: int, last: int) -> str:
    cloned = [_CLONE, *(_CLONE_PART.replace("{table}", table) for table in _PARTS)]
    numbers = ", ".join(map(str, range(first, last + 1)))
    return "".join(sql.format(first=first, last=last) for sql in cloned) + (
        patients_sql(numbers, SLOTS.patients) + scattered_sql(numbers, 0, _AHEAD)
    )
