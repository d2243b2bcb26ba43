"""A practice that is new in a large database: PostgreSQL's statistics do not know it yet, and it is taken for empty."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.shared_database import as_superuser
from tests.world import NOW

KNOWN, NEW = 7001, 7002  # practices
WANTED = 300  # appointments
_APPOINTMENTS = """
INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id,
    lane, starts_at, ends_at, busy_until, status, booked_by, created_at, updated_at)
SELECT $1, 'apt_' || n, 'pat_' || n, 10, 1, 21, 101, 1, at, at + interval '15 minutes', at + interval '15 minutes',
    'booked', 'staff', at, at
FROM (SELECT n, $3::timestamptz + n * interval '15 minutes' AS at FROM generate_series(1, $2::integer) n) d
"""
_OVERRIDE = "INSERT INTO appointment_override VALUES ($1, 'apt_7', $2, 'stf_1', '{full}', 'In pain')"
_SCANS = """
SELECT sum(idx_scan)::integer FROM pg_stat_xact_user_tables WHERE relname IN ('appointment', 'appointment_override')
"""


@pytest.fixture
async def superuser(database_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    dsn = as_superuser(database_dsn)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
    yield connection
    await connection.close()


async def test_overrides_of_some_appointments_are_not_looked_for_at_each_of_all(superuser: asyncpg.Connection) -> None:
    async with superuser.transaction():
        await superuser.execute("SET LOCAL session_replication_role = replica")  # patients and the like are not needed
        await superuser.execute(_APPOINTMENTS, KNOWN, 2000, NOW)
        await superuser.execute("ANALYZE appointment")
        await superuser.execute(_APPOINTMENTS, NEW, 500, NOW)
        await superuser.execute(_OVERRIDE, NEW, NOW)
    wanted = [f"apt_{number}" for number in range(1, WANTED + 1)]
    async with superuser.transaction():
        before = await superuser.fetchval(_SCANS)
        rows = await superuser.fetch("SELECT appointment_id, stands FROM list_overrides($1, $2)", NEW, wanted)
        scans = await superuser.fetchval(_SCANS) - before
    assert [(row["appointment_id"], row["stands"]) for row in rows] == [("apt_7", False)]
    assert 0 < scans < 10
