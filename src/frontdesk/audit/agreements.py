"""Reads the writes that were executed after a read-back, with their places in the chain."""

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Record

from frontdesk.audit.reading import readable
from frontdesk.domain.consent import Consent
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row

_OF_PATIENT = """
SELECT r.record_id, r.at, r.actor, r.operation, r.outcome, r.consent, r.subject_ids, c.patient_id
FROM agreed_challenge c JOIN audit_record r ON r.practice_id = c.practice_id AND r.record_id = c.record_id
WHERE c.practice_id = $1 AND c.patient_id = $2 AND c.record_id < $3
  AND ($4::text IS NULL OR r.actor = $4) AND ($5::text IS NULL OR $5 = ANY (r.subject_ids))
ORDER BY c.record_id DESC LIMIT $6
"""
_ONE = """
SELECT r.record_id, r.at, r.actor, r.operation, r.outcome, r.consent, r.subject_ids, c.patient_id
FROM agreed_challenge c JOIN audit_record r ON r.practice_id = c.practice_id AND r.record_id = c.record_id
WHERE c.practice_id = $1 AND c.record_id = $2
"""
_BY_REQUEST = """
SELECT c.record_id FROM agreed_challenge c
JOIN audit_record r ON r.practice_id = c.practice_id AND r.record_id = c.record_id
WHERE c.practice_id = $1 AND r.request_id = $2 ORDER BY c.record_id
"""
_IN_CHAIN = f"""
SELECT p.slug, p.name, c.intent_id, c.challenge AS challenge_text, r.practice_id, r.record_id,
       {readable("r.at")} AS at, r.actor, r.operation, r.outcome, r.subject_ids, r.request_id, r.consent, r.challenge,
       s.sequence, s.hash, b.hash AS previous
FROM agreed_challenge c JOIN audit_record r ON r.practice_id = c.practice_id AND r.record_id = c.record_id
JOIN practice p ON p.practice_id = c.practice_id
LEFT JOIN audit_seal s ON s.practice_id = c.practice_id AND s.record_id = c.record_id
LEFT JOIN audit_seal b ON b.practice_id = s.practice_id AND b.sequence = s.sequence - 1
WHERE c.practice_id = $1 AND c.record_id = $2
"""  # noqa: S608 - columns of ours
_HEAD = """
SELECT sequence, hash, signed_at, key_id, signature FROM audit_signed_head
WHERE practice_id = $1 AND sequence >= $2 ORDER BY sequence LIMIT 1
"""
_BETWEEN = f"""
SELECT r.practice_id, r.record_id, {readable("r.at")} AS at, r.actor, r.operation, r.outcome, r.subject_ids,
       r.request_id, r.consent, r.challenge
FROM audit_seal s JOIN audit_record r ON r.practice_id = s.practice_id AND r.record_id = s.record_id
WHERE s.practice_id = $1 AND s.sequence > $2 AND s.sequence <= $3 ORDER BY s.sequence
"""  # noqa: S608 - columns of ours


@dataclass(frozen=True, slots=True)
class AgreedWrite:
    record_id: int
    at: datetime
    actor: str
    operation: str
    outcome: str
    consent: Consent
    subject_ids: tuple[str, ...]
    patient_id: str | None  # None: it is about no patient

    @property
    def appointment_id(self) -> str | None:
        return next((each for each in self.subject_ids if each.startswith("apt_")), None)


async def agreed_writes(
    database: Database,
    practice_id: int,
    patient_id: str,
    *,
    before: int,
    limit: int,
    actor: str | None = None,
    appointment_id: str | None = None,
) -> list[AgreedWrite]:
    """Those about a patient, newest first."""
    async with database.transaction(practice_id) as connection:
        rows = await connection.fetch(_OF_PATIENT, practice_id, patient_id, before, actor, appointment_id, limit)
    return [_write(row) for row in rows]


async def agreed_write(database: Database, practice_id: int, record_id: int) -> AgreedWrite | None:
    async with database.transaction(practice_id) as connection:
        row = await connection.fetchrow(_ONE, practice_id, record_id)
    return None if row is None else _write(row)


async def agreed_in_request(database: Database, practice_id: int, request_id: str) -> list[int]:
    """The ids of the records; a caller may use a request id again."""
    async with database.transaction(practice_id) as connection:
        return [row["record_id"] for row in await connection.fetch(_BY_REQUEST, practice_id, request_id)]


async def place_in_chain(database: Database, practice_id: int, record_id: int) -> tuple[Record | None, Record | None]:
    """The record with its seal, if it has one, and the first signed head at or after it."""
    async with database.transaction(practice_id) as connection:
        record = await connection.fetchrow(_IN_CHAIN, practice_id, record_id)
        if record is None or record["sequence"] is None:
            return record, None
        return record, await connection.fetchrow(_HEAD, practice_id, record["sequence"])


async def records_between(database: Database, practice_id: int, after: int, last: int) -> list[Record]:
    """The sealed records after a sequence up to another one."""
    async with database.transaction(practice_id) as connection:
        return await connection.fetch(_BETWEEN, practice_id, after, last)


def _write(row: Record) -> AgreedWrite:
    return from_row(AgreedWrite, row, subject_ids=tuple(row["subject_ids"]))
