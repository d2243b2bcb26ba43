"""What is kept about writes that are on their way: who works on which, and how many at a time."""

from datetime import timedelta
from pathlib import Path

import pytest

from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from frontdesk.systems.fhir.records import Records
from tests.fhir.practice import file_text
from tests.support.world import NOW

PLANS = {
    "as the planner likes": "",
    "a subquery asked again for every row": "enable_hashjoin, enable_mergejoin, enable_hashagg, enable_material",
}


@pytest.fixture
async def waiting(database: Database, tmp_path: Path) -> Database:
    """Writes that nobody works on."""
    practice_id = await import_practice(database, parse(file_text("harbor", "https://ehr.example.com/fhir")), NOW)
    assert practice_id == 1
    async with database.transaction(1) as connection:
        await connection.execute(
            """INSERT INTO upstream_write SELECT 1, 'write-' || n, '\\x00', 'executing', 'book', '{}', 'subject-' || n,
                   true, 'actor', 'book_appointment', 'request', $1::timestamptz, '', $1, 0
               FROM generate_series(1, 40) AS n""",
            NOW,
        )
    return database


@pytest.mark.parametrize("plan", PLANS)
async def test_no_more_writes_are_taken_than_asked_for(waiting: Database, plan: str) -> None:
    async with waiting.transaction(1) as connection:
        for setting in filter(None, PLANS[plan].split(", ")):
            await connection.execute(f"SET LOCAL {setting} = off")
        rows = await connection.fetch(
            "SELECT * FROM lease_upstream_writes(1, $1, 'somebody', $2, 4)", NOW, NOW + timedelta(minutes=5)
        )
    assert len(rows) == 4


async def test_nobody_takes_what_another_works_on_until_its_time_is_over(waiting: Database) -> None:
    records, lease = Records(waiting, 1), timedelta(minutes=5)
    taken = [write.id for _ in range(11) for write in await records.lease_writes(NOW, lease)]
    assert len(taken) == len(set(taken)) == 40
    assert await records.lease_writes(NOW + lease - timedelta(seconds=1), lease) == []
    assert await records.lease_writes(NOW + lease, lease) != []
    assert await records.waiting() == 40
