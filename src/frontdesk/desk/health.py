"""The state of a practice's scheduling system and of its records, for its administrators."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.desk.context import ActionContext
from frontdesk.operations import NEEDS
from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory
from frontdesk.systems.check import SystemCheck as SystemCheck
from frontdesk.systems.check import check_system
from frontdesk.systems.findings import Condition

CHECK_SECONDS = 20.0  # the page waits for it

_RECORDS = """
SELECT coalesce(h.sequence, 0) AS sealed,
       (SELECT r.at FROM audit_seal s JOIN audit_record r ON r.practice_id = s.practice_id AND r.record_id = s.record_id
        WHERE s.practice_id = $1 AND s.sequence = h.sequence) AS sealed_at,
       (SELECT count(*) FROM audit_unsealed u WHERE u.practice_id = $1) AS waiting,
       (SELECT min(r.at) FROM audit_unsealed u
        JOIN audit_record r ON r.practice_id = u.practice_id AND r.record_id = u.record_id
        WHERE u.practice_id = $1) AS waiting_since,
       (SELECT count(*) FROM upstream_write w WHERE w.practice_id = $1) AS open_writes,
       (SELECT min(w.began_at) FROM upstream_write w WHERE w.practice_id = $1) AS open_since
FROM (SELECT 1) AS one LEFT JOIN audit_head h ON h.practice_id = $1
"""

_MISCONFIGURATIONS = """
SELECT reason, since FROM upstream_misconfiguration WHERE practice_id = $1 AND seen_at > $2 ORDER BY since, reason
"""
_SHOWN_FOR = timedelta(hours=1)  # after they were last seen


@dataclass(frozen=True, slots=True)
class Misconfiguration:
    """What an operator has to correct about the practice's own server."""

    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Health:
    base_url: str | None  # of the practice's own server, None where the calendar is in this database
    database_milliseconds: float
    condition: Condition | None  # of the way to a FHIR server, as the process that answers knows it
    sealed: int
    sealed_at: datetime | None  # when the newest sealed record was made
    waiting: int  # records that no seal covers yet
    waiting_since: datetime | None
    open_writes: int  # writes that left for a FHIR server and are not settled
    open_since: datetime | None
    misconfigurations: Sequence[Misconfiguration]  # seen by any process


@dataclass(frozen=True, slots=True)
class SystemHealth:
    database: Database
    condition: Callable[[int], Condition | None]
    environment: Mapping[str, str]

    async def now(self, context: ActionContext) -> Health:
        context.require("admin")
        config = (await load_directory(self.database, context.practice_id)).directory.practice.scheduling_system
        began = time.perf_counter()
        await self.database.fetchval("SELECT 1")
        milliseconds = (time.perf_counter() - began) * 1000
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(_RECORDS, context.practice_id)
            rows = await connection.fetch(_MISCONFIGURATIONS, context.practice_id, context.now - _SHOWN_FOR)
        assert row is not None
        return Health(
            config.get("baseUrl"),
            milliseconds,
            self.condition(context.practice_id),
            **row,
            misconfigurations=[Misconfiguration(**each) for each in rows],
        )

    async def check(self, context: ActionContext) -> SystemCheck:
        """Checks every part of the scheduling system, within `CHECK_SECONDS`."""
        context.require("admin")
        await context.record("console.check_system")
        return await check_system(
            self.database, context.practice_id, NEEDS, self.environment, context.now, seconds=CHECK_SECONDS
        )
