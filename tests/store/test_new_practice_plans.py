"""A practice that is new in a large database: PostgreSQL's statistics do not know it yet, and take it for empty.

What is asked about some of its records must not read all of them, nor any of them again and again.
"""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.support.shared_database import as_superuser
from tests.support.world import NOW

KNOWN, NEW = 7001, 7002  # practices
DAY = [(NOW + timedelta(days=days)).isoformat() for days in (10, 11)]
MANY, WANTED = 2000, 300  # records of each practice, and those that are asked for
_LOADED = (
    """INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id,
           procedure_id, lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
       SELECT $1, 'apt_' || n, 'pat_' || n, 10, 1, 21, 101, 1, at, at + interval '15 minutes',
           at + interval '15 minutes', 'booked', 'staff', at, at
       FROM (SELECT n, $3::timestamptz + n * interval '15 minutes' AS at FROM generate_series(1, $2::integer) n) d""",
    """INSERT INTO appointment_override
       SELECT $1, 'apt_' || n, $3, 'stf_1', '{full}', 'In pain' FROM generate_series(1, $2::integer, 20) n""",
    """INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone, phone_digits,
           seen, created_at, updated_at)
       SELECT $1, 'pat_' || n, n, 'F', 'L', 'f l', '1990-01-01', '', '', false, $3, $3
       FROM generate_series(1, $2::integer) n""",
    """WITH appended AS (
           INSERT INTO audit_record (practice_id, at, actor, operation, outcome, subject_ids, request_id)
           SELECT $1, $3, 'staff', 'book_appointment', 'executed', ARRAY['apt_' || n], 'r'
           FROM generate_series(1, $2::integer) n RETURNING *
       )
       INSERT INTO appointment_trail SELECT practice_id, subject_ids[1], record_id FROM appended""",
    """INSERT INTO upstream_record (practice_id, local_id, reference)
       SELECT $1, 'apt_' || n, 'Appointment/' || n FROM generate_series(1, $2::integer) n
       WHERE $3::timestamptz IS NOT NULL""",
)
_COUNTED = """
SELECT sum(seq_tup_read + idx_tup_fetch)::integer, sum(seq_scan + idx_scan)::integer FROM pg_stat_xact_user_tables
WHERE schemaname = 'frontdesk'
"""


@pytest.fixture
async def service(database_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database whose tables have been analyzed before the practice was loaded."""
    settings = {"search_path": "frontdesk, public"}
    superuser = await asyncpg.connect(as_superuser(database_dsn), server_settings=settings)
    try:
        await superuser.execute("SET session_replication_role = replica")  # the practice itself is not needed
        for practice in (KNOWN, NEW):
            for sql in _LOADED:
                await superuser.execute(sql, practice, MANY, NOW)
            if practice == KNOWN:
                await superuser.execute("ANALYZE")
    finally:
        await superuser.close()
    connection = await asyncpg.connect(database_dsn, server_settings=settings)
    yield connection
    await connection.close()


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("sql", "ids", "rows"),
    [
        ("SELECT * FROM list_overrides($1, $2)", "apt_{}", WANTED // 20),
        ("SELECT * FROM appointment_changes($1, $2, NULL)", "apt_{}", WANTED),
        ("SELECT * FROM patient_contacts($1, $2)", "pat_{}", WANTED),
        ("SELECT * FROM upstream_ids($1, $2, $2)", "Appointment/{}", WANTED),
        ("SELECT * FROM upstream_records_of($1, $2)", "apt_{}", WANTED),
    ],
)
async def test_what_is_asked_about_some_records_does_not_read_all(
    service: asyncpg.Connection, sql: str, ids: str, rows: int
) -> None:
    wanted = [ids.format(number) for number in range(1, WANTED + 1)]
    async with service.transaction():
        found = await service.fetch(sql, NEW, wanted)
        read, scans = await service.fetchrow(_COUNTED)
    assert len(found) == rows
    assert rows <= read <= 3 * WANTED
    assert scans <= 3 * WANTED


@pytest.mark.one_server
async def test_a_checksum_of_some_days_does_not_read_all(service: asyncpg.Connection) -> None:
    until = NOW + (WANTED + 1) * timedelta(minutes=15)
    async with service.transaction():
        dates = json.dumps({"earliest": NOW.isoformat(), "latest": until.isoformat()})
        assert await service.fetchval("SELECT calendar_checksum($1, $2, $3)", NEW, dates, NOW)
        read, scans = await service.fetchrow(_COUNTED)
    assert 2 * WANTED <= read <= 3 * WANTED
    assert scans <= 3 * WANTED


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("wanted", "rows"),
    [({"windows": {"1": DAY}, "earliest": DAY[0], "latest": DAY[1]}, 50), ({"patientId": "pat_7"}, 1)],
)
async def test_a_page_of_a_day_or_of_a_patient_does_not_read_all(
    service: asyncpg.Connection, wanted: Any, rows: int
) -> None:
    async with service.transaction():
        page = "SELECT * FROM appointment_page($1, $2, NULL, 50)"
        assert len(await service.fetch(page, KNOWN, json.dumps(wanted))) == rows
        read, scans = await service.fetchrow(_COUNTED)
    assert rows <= read <= 2 * rows
    assert scans < 10
