"""What clients read of patients: their use of the budgets, alarms, and failed matches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from frontdesk.access.clients.authentication import EFFECTIVE_LIMITS
from frontdesk.access.limits.match_attempts import forget_misses
from frontdesk.desk.context import ActionContext
from frontdesk.domain.patients import PhoneMatch
from frontdesk.engine.patient_guard import ASKED_PERSON
from frontdesk.store.database import Database

_MAX_PERSONS = 20

_READS = f"""
SELECT c.client_id, c.name,{EFFECTIVE_LIMITS},
       (SELECT count(*) FROM patient_read r WHERE r.practice_id = $1 AND r.client_id = c.client_id
          AND r.read_at > $2::timestamptz - interval '1 hour') AS hour_used,
       (SELECT count(*) FROM patient_read r WHERE r.practice_id = $1 AND r.client_id = c.client_id
          AND r.read_at > $2 - interval '1 day') AS day_used,
       CASE WHEN b.hour_alarm_at > $2 - interval '1 day' THEN b.hour_alarm_at END AS hour_alarm_at,
       CASE WHEN b.day_alarm_at > $2 - interval '1 day' THEN b.day_alarm_at END AS day_alarm_at,
       CASE WHEN w.hour_alarm_at > $2 - interval '1 day' THEN w.hour_alarm_at END AS writes_alarm_at,
       CASE WHEN w.upcoming_alarm_at > $2 - interval '1 day' THEN w.upcoming_alarm_at END AS upcoming_alarm_at,
       coalesce((SELECT sum(m.misses) FROM match_miss m WHERE m.practice_id = $1 AND m.client_id = c.client_id
          AND m.person <> '' AND m.last_at > $2 - interval '7 days'), 0)::bigint AS misses,
       (SELECT max(m.paused_until) FROM match_miss m WHERE m.practice_id = $1 AND m.client_id = c.client_id
          AND m.paused_until > $2 AND m.misses >= coalesce(c.match_misses, p.match_misses)) AS locked_until
FROM client c JOIN practice p ON p.practice_id = c.practice_id
LEFT JOIN patient_budget b ON b.practice_id = $1 AND b.client_id = c.client_id
LEFT JOIN write_limit w ON w.practice_id = $1 AND w.client_id = c.client_id
WHERE c.practice_id = $1
"""  # noqa: S608 - columns of ours
_PERSONS = """
SELECT encode(person, 'hex') AS person, misses, last_at, paused_until FROM match_miss
WHERE practice_id = $1 AND client_id = $2 AND person <> '' AND misses > 0
  AND last_at > $3::timestamptz - interval '7 days'
ORDER BY misses DESC, last_at DESC LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class AskedPerson:
    """Failed matches of one person; `subject` is how audit records name the person."""

    subject: str
    misses: int
    last_at: datetime
    paused_until: datetime | None


@dataclass(frozen=True, slots=True)
class ClientReads:
    """What a client read of patients. Budgets of 0 are unlimited; alarms are those of the last day."""

    client_id: str
    name: str
    patients_per_hour: int
    patients_per_day: int
    match_misses: int
    known_patients_only: bool
    writes_per_hour: int
    upcoming_per_patient: int
    phone_match: PhoneMatch
    hour_used: int
    day_used: int
    hour_alarm_at: datetime | None
    day_alarm_at: datetime | None
    writes_alarm_at: datetime | None
    upcoming_alarm_at: datetime | None
    misses: int  # in the last week
    locked_until: datetime | None
    persons: Sequence[AskedPerson] = field(default=())

    @property
    def is_alarming(self) -> bool:
        alarms = (
            self.hour_alarm_at,
            self.day_alarm_at,
            self.writes_alarm_at,
            self.upcoming_alarm_at,
            self.locked_until,
        )
        return any(alarms)


@dataclass(frozen=True, slots=True)
class PatientReads:
    database: Database

    async def of_clients(self, context: ActionContext) -> dict[str, ClientReads]:
        """What each client read of patients, by client id."""
        context.require("admin")
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_READS + " ORDER BY c.name", context.practice_id, context.now)
        return {row["client_id"]: ClientReads(**row) for row in rows}

    async def of_client(self, context: ActionContext, client_id: str) -> ClientReads:
        """What one client read of patients, with the persons that it failed to match most often."""
        context.require("admin")
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow(
                _READS + " AND c.client_id = $3", context.practice_id, context.now, client_id
            )
            persons = await connection.fetch(_PERSONS, context.practice_id, client_id, context.now, _MAX_PERSONS)
        assert row is not None
        asked = [AskedPerson(ASKED_PERSON + each["person"], *list(each.values())[1:]) for each in persons]
        return ClientReads(**row, persons=asked)

    async def alarms(self, context: ActionContext) -> list[ClientReads]:
        return [each for each in (await self.of_clients(context)).values() if each.is_alarming]

    async def forget_misses(self, context: ActionContext, client_id: str) -> None:
        """Ends the client's pauses and locks."""
        context.require("admin")
        async with self.database.transaction(context.practice_id) as connection:
            await forget_misses(connection, context.practice_id, client_id)
            await context.record_in(connection, "console.forget_client_misses", client_id)
        context.seal_soon()
