"""Searches and exports audit records, in batches, so that a long trail needs little memory and no long statements."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
from asyncpg import Record

from frontdesk.audit.trail import seal
from frontdesk.store.database import Database
from frontdesk.store.rows import Row

BATCH = 5000
_LAST_BATCH_SIZE = 100
_OUT_OF_ORDER = timedelta(hours=1)  # record ids are only roughly in order of time


def readable(time: str) -> str:
    """SQL of a time that Python can hold: tampering may leave 'infinity', or a year after 9999."""
    first, last = "timestamptz '0001-01-02 00:00Z'", "timestamptz '9999-12-30 00:00Z'"
    return f"CASE WHEN {time} < {first} THEN {first} WHEN {time} > {last} THEN {last} ELSE {time} END"


_BATCH_BOUND = f"""
SELECT record_id, {readable("at")} AS at FROM audit_record WHERE practice_id = $1 AND record_id < $2
ORDER BY record_id DESC OFFSET $3 LIMIT 1
"""  # noqa: S608 - columns of ours
_FOUND = f"""
SELECT r.practice_id, r.record_id, {readable("r.at")} AS at, r.actor, r.operation, r.outcome, r.subject_ids,
       r.request_id, r.consent, r.challenge, s.sequence, s.hash
FROM audit_record r LEFT JOIN audit_seal s USING (practice_id, record_id)
WHERE r.practice_id = $1 AND r.record_id < $2 AND r.record_id >= $3
  AND ($4::text IS NULL OR r.actor = $4) AND ($5::text IS NULL OR r.operation = $5)
  AND ($6::text IS NULL OR $6 = ANY (r.subject_ids)) AND ($7::text IS NULL OR r.outcome = $7)
  AND ($8::timestamptz IS NULL OR r.at >= $8) AND ($9::timestamptz IS NULL OR r.at < $9)
  AND ($10::text IS NULL OR r.request_id = $10)
  AND ($11::text[] IS NULL OR r.operation = ANY ($11))
ORDER BY r.record_id DESC LIMIT $12
"""  # noqa: S608 - columns of ours
_ACTORS_OF_REQUEST = """
SELECT DISTINCT actor FROM audit_record
WHERE practice_id = $1 AND record_id < $2 AND record_id >= $3 AND request_id = $4
"""
_CHAIN = f"""
SELECT s.sequence, s.record_id AS sealed_id, s.hash, r.practice_id, r.record_id, {readable("r.at")} AS at, r.actor,
       r.operation, r.outcome, r.subject_ids, r.request_id, r.consent, r.challenge,
       g.hash AS signed_hash, {readable("g.signed_at")} AS signed_at, g.key_id, g.signature
FROM audit_seal s LEFT JOIN audit_record r ON r.practice_id = s.practice_id AND r.record_id = s.record_id
LEFT JOIN audit_signed_head g ON g.practice_id = s.practice_id AND g.sequence = s.sequence
WHERE s.practice_id = $1 AND s.sequence > $2 ORDER BY s.sequence LIMIT $3
"""  # noqa: S608 - columns of ours
AFTER_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter; None matches everything."""

    actor: str | None = None
    operation: str | None = None
    subject: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    request: str | None = None  # callers choose it: records of several actors may have the same
    operations: tuple[str, ...] | None = None  # any of these


@dataclass(frozen=True, slots=True)
class AuditPage:
    records: list[Record]
    before: int | None
    """Where to go on; None where nothing older can fit."""


async def seal_pending(database: Database, practice_id: int) -> None:
    """Seal pending records; later ones may stay pending, and all of them if the head points back into the chain."""
    with contextlib.suppress(asyncpg.UniqueViolationError):
        while await seal(database, practice_id) >= _LAST_BATCH_SIZE:
            pass


async def find_records(
    database: Database,
    practice_id: int,
    wanted: AuditFilter,
    limit: int,
    before: int = AFTER_ALL,
    batches: int | None = None,
) -> AuditPage:
    """The newest matching records, newest first, each with its sequence and hash once it is sealed. `batches` limits
    how much of the trail is searched."""
    found: list[Record] = []
    looked = 0
    while True:
        async with database.transaction(practice_id) as connection:
            oldest = await connection.fetchrow(_BATCH_BOUND, practice_id, before, BATCH - 1)
            first = 0 if oldest is None else oldest["record_id"]
            remaining = limit - len(found)
            found += await connection.fetch(_FOUND, practice_id, before, first, *astuple(wanted), remaining)
        if len(found) >= limit:
            return AuditPage(found, found[-1]["record_id"])
        if oldest is None or (wanted.since is not None and oldest["at"] < wanted.since - _OUT_OF_ORDER):
            return AuditPage(found, None)
        before, looked = first, looked + 1
        if looked == batches:
            return AuditPage(found, before)


async def actors_of_request(database: Database, practice_id: int, request_id: str) -> set[str]:
    """Everybody who has acted under a request id, in the whole trail: nobody hides behind many records of another."""
    actors: set[str] = set()
    before: int | None = AFTER_ALL
    while before is not None:
        async with database.transaction(practice_id) as connection:
            oldest = await connection.fetchrow(_BATCH_BOUND, practice_id, before, BATCH - 1)
            first = None if oldest is None else oldest["record_id"]
            rows = await connection.fetch(_ACTORS_OF_REQUEST, practice_id, before, first or 0, request_id)
        actors.update(row["actor"] for row in rows)
        before = first
    return actors


async def sealed_records(database: Database, practice_id: int) -> AsyncIterator[Record]:
    """The chain in order: a row per seal with its record and its signature, if there is one; `record_id` is None if the
    record was removed."""
    sequence = 0
    while True:
        async with database.transaction(practice_id) as connection:
            rows = await connection.fetch(_CHAIN, practice_id, sequence, BATCH)
        for row in rows:
            yield row
        if len(rows) < BATCH:
            return
        sequence = rows[-1]["sequence"]


async def exported_lines(database: Database, practice_slug: str, practice_id: int) -> AsyncIterator[str]:
    """Every sealed record of a practice as one line of JSON, in the order of the chain."""
    await seal_pending(database, practice_id)
    async for row in sealed_records(database, practice_id):
        known = {**row, "practice_id": practice_id, "record_id": row["sealed_id"]}
        yield json.dumps(record_document(practice_slug, known), ensure_ascii=False)


def record_document(practice_slug: str, row: Row) -> dict[str, object]:
    """A record for export; of a removed record only its place in the chain remains."""
    document = {
        "practice": practice_slug,
        "practiceId": row["practice_id"],
        "sequence": row["sequence"],
        "recordId": row["record_id"],
    }
    if row["at"] is not None:
        document |= {
            "at": exact_time(row["at"]),
            "actor": row["actor"],
            "operation": row["operation"],
            "outcome": row["outcome"],
            "subjectIds": list(row["subject_ids"]),
            "requestId": row["request_id"],
        }
        if row["consent"] is not None:
            document["consent"] = row["consent"]
        if row["challenge"] is not None:
            document["challenge"] = row["challenge"].hex()
    document["hash"] = None if row["hash"] is None else row["hash"].hex()
    return document


def exact_time(moment: datetime) -> str:
    """The time as text, to the microsecond, as the hash of a record contains it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
