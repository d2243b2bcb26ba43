"""The practices that are measured: their files, and bulk rows for their calendars and patients.

Owns the order in which bookings take slots, in Python and in SQL, so that the service and its floor book alike.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from frontdesk.domain.local_time import minute_of
from frontdesk.domain.slot_ids import SlotIds

VISIT_TYPE, PROCEDURE, LOCATION = 20, 100, 1
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")
EVERY_DAY = (*WEEKDAYS, "sat", "sun")
ZONE = "America/New_York"
MINUTES = 10  # an appointment of the practices that never close
DAYS = 60
GROUP_PROVIDERS = 50
FIRST_BOOKED_MINUTE = 360
UNSEEN_PROCEDURES = range(1000, 1200)
_PER_DAY = (1440 - FIRST_BOOKED_MINUTE) // MINUTES

INSERT_APPOINTMENTS = """INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id,
    visit_type_id, procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)"""


def document(slug: str, zone: str, providers: list[dict[str, Any]], minutes: int, locations: int = 1) -> Any:
    procedure = {"id": PROCEDURE, "name": "Visit", "durationMinutes": minutes}
    return {
        "practice": {"slug": slug, "name": f"Practice {slug}", "timeZone": zone, "slotIntervalMinutes": minutes},
        "locations": [{"id": number, "name": f"Location {number}"} for number in range(1, locations + 1)],
        "providers": providers,
        "visitTypes": [{"id": VISIT_TYPE, "name": "Visit", "patientKind": "any", "procedures": [procedure]}],
    }


def provider(number: int, hours: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": number, "name": f"Dr. Number {number}", "specialty": "Family medicine", "hours": hours}


def office(slug: str) -> Any:
    """Ten providers with the hours of an ordinary office, visits of a quarter and of half an hour."""
    hours = [
        {"location": 1, "days": list(WEEKDAYS), "from": "08:00", "to": "12:00"},
        {"location": 1, "days": list(WEEKDAYS), "from": "13:00", "to": "18:00"},
    ]
    found = document(slug, ZONE, [provider(number, hours) for number in range(1, 11)], 15)
    longer = {"id": PROCEDURE + 1, "name": "Long visit", "durationMinutes": 30}
    found["visitTypes"].append(
        {"id": VISIT_TYPE + 1, "name": "Long visit", "patientKind": "any", "procedures": [longer]}
    )
    return found


def clinic(slug: str, providers: int) -> Any:
    """Providers who see somebody every ten minutes from eight on."""
    hours = [{"location": 1, "days": list(EVERY_DAY), "from": "08:00", "to": "17:00"}]
    return document(slug, ZONE, [provider(number, hours) for number in range(1, providers + 1)], MINUTES)


def full_day_sql(practice_id: int, day: date, visits: int) -> str:
    """So many visits of every provider on the day, each of another patient, with ids and names that do not compress."""
    return f"""
        INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone, phone_digits,
            email, seen, created_at, updated_at)
        SELECT {practice_id}, 'pat_' || substr(md5('{day}' || n), 1, 22), {day.toordinal() * 1000} + n,
            initcap(substr(md5(n::text), 1, 6)), initcap(substr(md5('{day}' || n), 9, 9)), md5('{day}' || n),
            date '1950-01-01' + n * 37, '+1 555 ' || 1000000 + n, '1555' || 1000000 + n, NULL, true, now(), now()
        FROM generate_series(1, {visits} * (SELECT count(*)::int FROM provider WHERE practice_id = {practice_id})) n;
        {INSERT_APPOINTMENTS}
        SELECT {practice_id}, 'apt_' || substr(md5('{day}' || provider_id * 1000 + s), 1, 22),
            'pat_' || substr(md5('{day}' || (provider_id - 1) * {visits} + s + 1), 1, 22), provider_id, {LOCATION},
            {VISIT_TYPE}, {PROCEDURE}, 1, starts, starts + interval '{MINUTES} minutes',
            starts + interval '{MINUTES} minutes', 'booked', 'bench', now(), now()
        FROM provider, generate_series(0, {visits - 1}) s,
            LATERAL (SELECT (date '{day}' + time '08:00' + s * interval '{MINUTES} minutes')
                            AT TIME ZONE '{ZONE}' AS starts) t
        WHERE practice_id = {practice_id};"""


def many_procedures(slug: str) -> Any:
    """The office with so many procedures that a round never shows the same slot twice."""
    document = office(slug)
    document["visitTypes"][0]["procedures"] += [
        {"id": number, "name": f"Procedure {number}", "durationMinutes": 15} for number in UNSEEN_PROCEDURES
    ]
    return document


def group(slug: str) -> Any:
    """Fifty providers who are at another of five locations on each weekday, appointments of half an hour."""
    hours = [
        {"location": place, "days": [day], "from": "09:00", "to": "17:00"} for place, day in enumerate(WEEKDAYS, 1)
    ]
    return document(slug, ZONE, [provider(number, hours) for number in range(1, GROUP_PROVIDERS + 1)], 30, locations=5)


def always_open(slug: str, providers: int) -> Any:
    """Providers who never close: room for as many bookings as a run wants."""
    hours = [{"location": 1, "days": list(EVERY_DAY), "from": "00:00", "to": "24:00"}]
    return document(slug, "UTC", [provider(number, hours) for number in range(1, providers + 1)], MINUTES)


def patients_sql(practice_id: int | str, count: int) -> str:
    return f"""
        INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone, phone_digits,
            email, seen, created_at, updated_at)
        SELECT practice_id, 'pat_' || lpad(n::text, 22, '0'), n, 'Person' || n, 'Bench', 'person' || n || '|bench',
            date '1980-01-01' + n, '+1 555 010 0100', '15550100100', NULL, true, now(), now()
        FROM practice, generate_series(1, {count}) n WHERE practice_id IN ({practice_id});
        INSERT INTO patient_counter SELECT practice_id, {count} FROM practice WHERE practice_id IN ({practice_id})
        ON CONFLICT (practice_id) DO UPDATE SET last_number = {count};
    """


def people(count: int) -> list[dict[str, Any]]:
    """The same patients in a practice file."""
    born = date(1980, 1, 1)
    return [
        {
            "number": number,
            "firstName": f"Person{number}",
            "lastName": "Bench",
            "dob": (born + timedelta(days=number)).isoformat(),
            "phone": "+1 555 010 0100",
            "seen": True,
        }
        for number in range(1, count + 1)
    ]


def calendar_sql(practice_id: int, opens: str, step: int, per_day: int, taken: str, days: int) -> str:
    """Weekday appointments of every provider: those of a day's `per_day` steps from `opens` on for which `taken` holds
    (an expression over d, the day, and s, the step)."""
    return f"""{INSERT_APPOINTMENTS}
        SELECT {practice_id}, 'apt_' || lpad((provider_id * 100000 + d * 100 + s)::text, 22, '0'),
            'pat_' || lpad((1 + (provider_id * 100000 + d * 100 + s) % 100)::text, 22, '0'), provider_id, {LOCATION},
            {VISIT_TYPE}, {PROCEDURE}, 1, starts, starts + interval '{step} minutes',
            starts + interval '{step} minutes', 'booked', 'bench', now(), now()
        FROM provider, generate_series(0, {days}) d, generate_series(0, {per_day - 1}) s,
            LATERAL (SELECT (current_date + d + time '{opens}' + s * interval '{step} minutes')
                            AT TIME ZONE '{ZONE}' AS starts) t
        WHERE practice_id = {practice_id} AND extract(isodow FROM current_date + d) < 6 AND ({taken});"""


def scattered_sql(practices: str, past: int, ahead: int, a_day: int = 9, location: str = str(LOCATION)) -> str:
    """Appointments of half an hour for every provider of these practices: so many in the past, `a_day` each day, and so
    many in the two weeks ahead, early in the day, where no booking of a run goes. `location` is an expression."""
    return f"""{INSERT_APPOINTMENTS}
        SELECT practice_id, 'apt_' || lpad((provider_id * 100000 + n)::text, 22, '0'),
            'pat_' || lpad((1 + (provider_id * 7 + n) % 20)::text, 22, '0'), provider_id, {location}, {VISIT_TYPE},
            {PROCEDURE}, 1, starts, starts + interval '30 minutes', starts + interval '30 minutes', 'booked', 'bench',
            now(), now()
        FROM provider, generate_series(0, {past + ahead - 1}) n,
            LATERAL (SELECT CASE WHEN n < {ahead}
                THEN current_date + 1 + n % 14 + (n / 14) * interval '30 minutes'
                ELSE current_date - 1 - (n - {ahead}) / {a_day} + (n - {ahead}) % {a_day} * interval '30 minutes'
            END AS starts) t
        WHERE practice_id IN ({practices});"""


def search_path(provider: int = 1, visit: int = 0, ahead: int = 1) -> str:
    """Fourteen days, a page of fifty."""
    return path_of(search_query(provider, visit, ahead).items())


def search_query(provider: int, visit: int, ahead: int) -> dict[str, Any]:
    first = datetime.now(UTC).date() + timedelta(days=ahead)
    ids = {"providerId": provider, "locationId": LOCATION, "visitTypeId": VISIT_TYPE + visit}
    dates = {"from": first, "to": first + timedelta(days=14)}
    return {**ids, "procedureId": PROCEDURE + visit, **dates, "limit": 50}


def path_of(query: Iterable[tuple[str, Any]], path: str = "/api/slots") -> str:
    return f"{path}?{urlencode(list(query))}"


def office_queries() -> list[dict[str, Any]]:
    """Eight providers, both visits, four first dates."""
    return [
        search_query(provider, visit, ahead) for provider in range(1, 9) for visit in (0, 1) for ahead in (1, 3, 5, 8)
    ]


def unseen_searches() -> list[str]:
    """Pages that share no slot, and more than a worker remembers."""
    return [
        path_of({**search_query(provider, 0, ahead), "procedureId": procedure}.items())
        for ahead in range(1, 43, 7)
        for procedure in UNSEEN_PROCEDURES
        for provider in range(1, 9)
    ]


def office_searches() -> list[str]:
    return [path_of(query.items()) for query in office_queries()]


def unheard(queries: Sequence[dict[str, Any]], path: str = "/api/slots") -> Iterator[str]:
    """Questions that nobody has asked yet: the same ones with their parameters in ever different orders, so that each
    costs the same to work out and none is answered from memory."""
    for order in itertools.permutations(range(len(queries[0]))):
        for query in queries:
            pairs = list(query.items())
            yield path_of([pairs[at] for at in order], path)


def office_bookings(token: str, ids: SlotIds) -> list[tuple[str, str, str]]:
    """Bookings into the office's open quarters of an hour, later than its searches look, provider by provider."""
    wanted = []
    today = datetime.now(ZoneInfo(ZONE)).replace(hour=8, minute=0, second=0, microsecond=0)
    for day in range(25, 85):
        opens = today + timedelta(days=day)
        if opens.weekday() < 5:
            open_steps = [step for step in range(40) if step % 3 and step not in range(15, 20)]
            starts = [minute_of(opens) + step * 15 for step in open_steps]
            for provider in range(1, 9):
                slots = ids.encode_many(provider, LOCATION, VISIT_TYPE, PROCEDURE, 15, starts)
                wanted += [(token, slot, f"pat_{provider:022}") for slot in slots]
    return wanted


def first_day() -> datetime:
    """The first one that bookings go to."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)


@dataclass(frozen=True)
class Slots:
    """The slots of a practice that never closes, in the order in which runs book them: another provider each time, then
    another day, then the next time of day. Overlapping bookings never share a patient."""

    providers: int
    patients: int

    @property
    def total(self) -> int:
        return self.providers * DAYS * _PER_DAY

    def starts(self, number: int) -> int:
        day, step = number // self.providers % DAYS, number // (self.providers * DAYS)
        return minute_of(first_day()) + day * 1440 + FIRST_BOOKED_MINUTE + step * MINUTES

    def bookings(self, token: str, ids: SlotIds, first: int, count: int) -> list[tuple[str, str, str]]:
        """Token, slot and patient of as many bookings."""
        assert first + count <= self.total, "the practice is too small for this run"
        starts: dict[int, list[int]] = {}
        for number in range(first, first + count):
            starts.setdefault(1 + number % self.providers, []).append(self.starts(number))
        encoded = {
            provider: iter(ids.encode_many(provider, LOCATION, VISIT_TYPE, PROCEDURE, MINUTES, minutes))
            for provider, minutes in starts.items()
        }
        return [
            (token, next(encoded[1 + number % self.providers]), f"pat_{1 + number % self.patients:022}")
            for number in range(first, first + count)
        ]
