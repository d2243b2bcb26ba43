"""Prints what practices, bookings and sessions cost the database in bytes, for docs/scaling.md.

    .venv/bin/python bench/scaling.py

It measures an embedded PostgreSQL of its own, in a temporary folder.
"""

import asyncio
import itertools
import json
import re
import secrets
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from practices import office

from frontdesk.practice_file import parse
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from frontdesk.store.migrate import migrate
from frontdesk.store.practices import import_practice

PRACTICES = 20
PATIENTS = 200
PROVIDERS = 10
STORED = 200  # bookings of each practice whose bytes are counted
SEARCHES = 200
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
FIRST_DAY = datetime(2027, 1, 3, tzinfo=UTC)

_BYTES = """
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
WHERE relnamespace = 'frontdesk'::regnamespace AND relkind = 'r'
"""
_PATIENTS = "SELECT patient_id FROM patient WHERE practice_id = $1 ORDER BY number LIMIT $2"
_BOOK = """
SELECT outcome FROM commit_write($1, 'book', $2, 'fd_bench', 'book_appointment', 'r', $3, NULL, false, NULL, $3)
"""
_SEAL = "SELECT seal_audit($1, 500)"
_SEARCH = "SELECT * FROM changed_busy_times($1, $2, '{}', '{}', $3, $4, $5)"


class Subject:
    """A database with practices, through one connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._practices: list[tuple[int, list[str]]] = []
        self._slots = itertools.count()

    async def add_practices(self) -> None:
        people = [
            {"number": n, "firstName": "Ada", "lastName": f"B{secrets.token_hex(5)}", "dob": "1980-01-01",
             "phone": f"+1 555 {1000000 + n}", "seen": True}
            for n in range(1, PATIENTS + 1)
        ]  # fmt: skip
        for number in range(PRACTICES):
            document = office(f"practice-{number}") | {"patients": people}
            practice_id = await import_practice(self._database, parse(json.dumps(document)), NOW)
            async with self._database.transaction(practice_id) as connection:
                rows = await connection.fetch(_PATIENTS, practice_id, PROVIDERS)
            self._practices.append((practice_id, [row["patient_id"] for row in rows]))

    async def book(self) -> None:
        """Each booking is of another slot: a quarter of an hour of one of the providers of one of the practices."""
        number, practice = divmod(next(self._slots), PRACTICES)
        number, provider = divmod(number, PROVIDERS)
        practice_id, patients = self._practices[practice]
        begin = FIRST_DAY + timedelta(minutes=15 * number)
        end = (begin + timedelta(minutes=15)).isoformat()
        change = {
            "appointmentId": f"apt_{secrets.token_hex(11)}", "patientId": patients[provider], "version": 1,
            "providerId": provider + 1, "locationId": 1, "visitTypeId": 20, "procedureId": 100,
            "startsAt": begin.isoformat(), "endsAt": end, "busyUntil": end,
        }  # fmt: skip
        row = await self._database.write(_BOOK, practice_id, json.dumps(change), NOW)
        assert row is not None
        assert row["outcome"] == "executed"

    async def seal(self) -> None:
        for practice_id, _ in self._practices:
            while await self._database.fetchval(_SEAL, practice_id):
                pass

    async def search(self) -> None:
        """Ten calendars for fourteen days: what a search reads that nobody has asked before."""
        practice_id, _ = secrets.choice(self._practices)
        begin = int(FIRST_DAY.timestamp()) // 60
        ends = [begin + 14 * 1440] * PROVIDERS
        providers = [*range(1, PROVIDERS + 1)]
        await self._database.fetch(_SEARCH, practice_id, providers, [begin] * PROVIDERS, ends, NOW)

    async def bytes(self) -> int:
        size: int = await self._database.fetchval(_BYTES)
        return size

    async def session_kibibytes(self) -> int:
        """The memory that the session does not share with others."""
        session = await self._database.fetchval("SELECT pg_backend_pid()")
        found = re.search(r"^Pss_Anon:\s+(\d+) kB", Path(f"/proc/{session}/smaps_rollup").read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])


async def measure(postgres: EmbeddedPostgres) -> None:
    await migrate(postgres.dsn(OWNER_ROLE))
    database = Database(postgres.dsn(SERVICE_ROLE), pool_size=1)
    await database.open()
    subject = Subject(database)
    empty = await subject.bytes()
    await subject.add_practices()
    imported = await subject.bytes()
    for _ in range(PRACTICES * STORED):
        await subject.book()
    await subject.seal()
    booked = await subject.bytes()
    print(
        f"a practice of {PROVIDERS} providers and {PATIENTS} patients: {(imported - empty) / PRACTICES / 1024:,.0f} KiB"
    )
    print(f"a booking, with its audit record and event: {(booked - imported) / PRACTICES / STORED:,.0f} bytes")
    for _ in range(SEARCHES):
        await subject.search()
    print(f"a session after these calls: {await subject.session_kibibytes() / 1024:,.1f} MiB of its own memory")
    await database.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="frontdesk-scaling-") as folder:
        postgres = EmbeddedPostgres(Path(folder, "postgres"))
        postgres.start(timeout=240)
        try:
            asyncio.run(measure(postgres))
        finally:
            postgres.stop_and_await_end()


if __name__ == "__main__":
    main()
