"""A practice with twelve providers and fifty visits each on one day, written straight into the database."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres

SLUG = "full"
PROVIDERS, VISITS, MINUTES = 12, 50, 10
_FIRST = "Amelia Bruno Clara Dylan Elif Felix Greta Hugo Iris Jonas Keira Leo Maya Nils Olga Pablo Quinn Rosa Sven Tara"
_LAST = (
    "Stone Keller Duarte Frost Kaya Ivanov Lund Marsh Okoye Weber Walsh Tanaka Rahman Berg Petrova Serrano Adeyemi "
    "Bianchi Castillo Dubois Eriksen Fontaine Gallagher Halvorsen Ibrahim Jensen Kowalski Lindqvist Montgomery Nakamura"
)
_DOCTORS = (
    "Abara Becker Cho Diaz Evans Farah Gupta Hansen Imai Jung Khan Lopez Meyer Novak Osei Park Quist Rossi Sato Tran"
)
_VISIT_TYPES = (("Follow-up", 10), ("Check-up", 10), ("Vaccination", 10), ("Blood test", 10), ("Consultation", 20))


def practice_file(providers: int = PROVIDERS) -> dict[str, Any]:
    hours = [{"location": 1, "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "from": "08:00", "to": "17:00"}]
    return {
        "practice": {"slug": SLUG, "name": "Full House", "timeZone": "Europe/Berlin", "slotIntervalMinutes": 5},
        "locations": [{"id": 1, "name": "Main Street"}],
        "providers": [
            {"id": number, "name": f"Dr. {_DOCTORS.split()[number - 1]}", "specialty": "Family medicine",
             "hours": hours, **({"capacity": 2} if number == 3 else {})}
            for number in range(1, providers + 1)
        ],
        "visitTypes": [
            {"id": 20 + number, "name": name, "patientKind": "any",
             "procedures": [{"id": 100 + number, "name": name, "durationMinutes": minutes}]}
            for number, (name, minutes) in enumerate(_VISIT_TYPES)
        ],
    }  # fmt: skip


@cache
def day() -> date:
    """The next Monday, and the same one if it begins meanwhile."""
    today = datetime.now(UTC).date()
    return today + timedelta(days=7 - today.weekday())


def fill(folder: Path, dsn: str | None = None) -> int:
    """Books the day; the practice has been imported. Returns its id."""
    found = dsn or EmbeddedPostgres(folder / "data" / "postgres").dsn(OWNER_ROLE)
    with ThreadPoolExecutor(1) as beside:  # the browser's loop runs in this thread
        return beside.submit(asyncio.run, _fill(found)).result()


async def _fill(dsn: str) -> int:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        practice: int = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", SLUG)
        await connection.execute("SELECT set_config('frontdesk.practice_id', $1, false)", str(practice))
        await connection.execute(
            """
            INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
                phone_digits, email, seen, created_at, updated_at)
            SELECT $1, 'pat_' || substr(md5(n::text), 1, 22), n, first, last, lower(first || '|' || last),
                date '1950-01-01' + n * 37, '+49 30 555 ' || (10000 + n), '4930555' || (10000 + n), NULL, true,
                now(), now()
            FROM generate_series(1, 600) n, LATERAL (SELECT ($2::text[])[1 + n % cardinality($2)] AS first,
                ($3::text[])[1 + n / 20 % cardinality($3)] AS last) named
            """,
            practice, _FIRST.split(), _LAST.split(),
        )  # fmt: skip
        await connection.execute(
            "INSERT INTO patient_counter VALUES ($1, 600) ON CONFLICT (practice_id) DO UPDATE SET last_number = 600",
            practice,
        )
        await connection.execute(
            """
            INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id,
                procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
            SELECT $1, 'apt_' || substr(md5(random()::text), 1, 22),
                'pat_' || substr(md5((1 + p.provider_id * 50 - 50 + s)::text), 1, 22), p.provider_id, 1,
                20 + s % 4, 100 + s % 4, 1, starts, starts + interval '10 minutes',
                starts + interval '10 minutes', ($3::text[])[1 + (s * 7 + p.provider_id) % 6], 'demo', now(), now()
            FROM provider p, generate_series(0, $4::int - 1) s,
                LATERAL (SELECT ($2::date + (480 + s * 10) * interval '1 minute') AT TIME ZONE 'Europe/Berlin'
                    AS starts) t
            WHERE p.practice_id = $1
            """,
            practice, day(), ["booked", "confirmed", "booked", "arrived", "completed", "noShow"], VISITS,
        )  # fmt: skip
        return practice
    finally:
        await connection.close()


def as_text(providers: int = PROVIDERS) -> str:
    return json.dumps(practice_file(providers))  # JSON is YAML, too
