"""Stores the ids of a FHIR server's records, and writes that are not settled yet.

Each method is one database function and one transaction, so none is open during a request to the server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

import orjson
from asyncpg import Record

from frontdesk.domain.ids import new_appointment_id, new_patient_id
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.rows import from_row
from frontdesk.systems.challenges import issue_challenge
from frontdesk.systems.changes import RecordChange
from frontdesk.systems.fhir.resources.appointments import Facts
from frontdesk.systems.fhir.write_data import Release, WriteData
from frontdesk.systems.port import ChallengeRecord, ListingStart, SystemUnavailable, WriteRecord

_BATCH_SIZE = 4


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A record of the server and our id of it."""

    local_id: str
    reference: str
    number: int | None
    facts: Facts


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that is not settled. `intent` identifies its outcome on the server, `id` marks the slots it holds."""

    id: str
    intent: str
    holder: str
    phase: str
    change: str
    data: WriteData
    began_at: datetime
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """How a write ended, as it is stored. `record`: our id, the reference and what changed."""

    outcome: str
    subjects: Sequence[str] = ()
    result: Mapping[str, object] = field(default_factory=dict)
    event: str | None = None
    event_subject: Mapping[str, object] = field(default_factory=dict)
    record: Mapping[str, object] | None = None
    reason: str | None = None
    unavailable: SystemUnavailable = field(default_factory=SystemUnavailable)  # what a caller is told, not stored


class Records:
    """The records of one practice."""

    def __init__(self, database: Database, practice_id: int) -> None:
        self._database = database
        self.practice_id = practice_id

    async def known(self, references: Sequence[str]) -> dict[str, KnownRecord]:
        """The ids of records by reference; a record seen for the first time gets one."""
        wanted = list(dict.fromkeys(references))
        if not wanted:
            return {}
        candidates = [new_patient_id() if each.startswith("Patient/") else new_appointment_id() for each in wanted]
        # Safe to repeat: existing ids stay.
        rows = await self._fetch("SELECT * FROM upstream_ids($1, $2, $3)", wanted, candidates)
        return {row["reference"]: _record(row) for row in rows}

    async def issue_challenge(self, record: ChallengeRecord) -> Any:
        return await issue_challenge(self._database, self.practice_id, record)

    async def find(self, local: str | int) -> KnownRecord | None:
        """A record by our id, or by a patient's number."""
        by_id = isinstance(local, str)
        sql = "SELECT * FROM upstream_record_of($1, $2, $3)"
        rows = await self._fetch(sql, local if by_id else None, None if by_id else local)
        return _record(rows[0]) if rows else None

    async def find_all(self, local_ids: Sequence[str]) -> list[KnownRecord]:
        rows = await self._fetch("SELECT * FROM upstream_records_of($1, $2)", list(local_ids))
        return [_record(row) for row in rows]

    async def known_to(self, client_id: str, patient_ids: Sequence[str]) -> set[str]:
        """The patients among these that the client has matched, created or booked."""
        [row] = await self._fetch("SELECT known_to($1, $2, $3) AS known", client_id, list(patient_ids))
        return set(row["known"])

    async def begin_listing(self) -> ListingStart:
        [row] = await self._fetch("SELECT * FROM begin_listing($1)")
        return from_row(ListingStart, row)

    async def moves_since(self, listing: ListingStart) -> dict[str, datetime]:
        """The appointments that were moved through us since a listing began, with the starts that they had then."""
        sql = "SELECT * FROM appointment_moves_since($1, $2, $3)"
        rows = await self._fetch(sql, listing.snapshot, listing.began_at)
        return {row["appointment_id"]: row["starts_at"] for row in rows}

    async def directory(self, given: Sequence[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        """Stores kind, reference and id of the directory's records; returns all that were ever stored."""
        sql = "SELECT * FROM upstream_directory_of($1, $2, $3, $4)"
        columns = [list(column) for column in zip(*given, strict=True)] or [[], [], []]
        return [(row["kind"], row["reference"], row["local_id"]) for row in await self._fetch(sql, *columns)]

    async def _fetch(self, sql: str, *args: object) -> list[Record]:
        try:
            return await self._database.fetch(sql, self.practice_id, *args)
        except DatabaseUnavailable as error:
            raise SystemUnavailable from error

    async def begin(
        self, write: PendingWrite, change: RecordChange, record: WriteRecord, until: datetime
    ) -> tuple[str, Mapping[str, object] | None]:
        """Stores a write. Returns `begun` or `begun again` if it may be sent, else its outcome and result."""
        intent = record.intent
        sql = (
            "SELECT * FROM begin_upstream_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        )
        try:
            row = await self._database.write(
                sql,
                self.practice_id,
                change.version,
                write.id,
                write.holder,
                write.change,
                _json(write.data),
                write.data["subject"],
                record.actor,
                record.operation,
                record.request_id,
                record.now,
                until,
                bytes.fromhex(write.intent),
                "none" if intent is None else "key" if intent.is_key else "token",
                b"" if intent is None else intent.fingerprint,
                record.keep_until,
            )
        except (DatabaseUnavailable, OutcomeUnknown) as error:
            # If it did commit, nothing was sent: the reconciler settles it as not executed.
            raise SystemUnavailable from error
        assert row is not None
        return row["outcome"], None if row["result"] is None else orjson.loads(row["result"])

    async def finish(
        self,
        write: PendingWrite,
        ending: WriteOutcome,
        releases: Sequence[Release],
        now: datetime,
        keep_until: datetime,
        due: datetime,
    ) -> Mapping[str, object] | None:
        """The stored result, or None if another node has taken the write over."""
        sql = "SELECT * FROM finish_upstream_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        try:
            row = await self._database.write(
                sql,
                self.practice_id,
                write.id,
                write.holder,
                ending.outcome,
                _json(ending.result),
                list(dict.fromkeys(ending.subjects)),
                ending.event,
                _json(ending.event_subject),
                None if ending.record is None else _json(ending.record),
                _json(list(releases)),
                now,
                keep_until,
                due,
            )
        except DatabaseUnavailable as error:
            raise OutcomeUnknown from error  # the server has executed it
        assert row is not None
        return orjson.loads(row["result"]) if row["done"] else None

    async def defer(
        self,
        write: PendingWrite,
        now: datetime,
        due: datetime,
        subjects: Sequence[str] | None = None,
        *,
        wrong: bool = False,
    ) -> None:
        """Leaves the write for a retry. With subjects its unknown outcome is audited; `wrong`: it has to be undone."""
        sql = "SELECT defer_upstream_write($1, $2, $3, $4, $5, $6, $7)"
        noted = None if subjects is None else list(subjects)
        await self._database.write(sql, self.practice_id, write.id, write.holder, now, due, noted, wrong)

    async def lease_writes(self, now: datetime, lease: timedelta) -> list[PendingWrite]:
        """Leases writes that no node holds."""
        sql = "SELECT * FROM lease_upstream_writes($1, $2, $3, $4, $5)"
        rows = await self._database.fetch(sql, self.practice_id, now, token_hex(8), now + lease, _BATCH_SIZE)
        return [
            from_row(
                PendingWrite, row, id=row["write_id"], intent=row["intent_id"].hex(), data=orjson.loads(row["data"])
            )
            for row in rows
        ]

    async def postpone(self, holder: str, due: datetime) -> None:
        """Lets all writes wait, also those leased by this holder."""
        sql = "SELECT postpone_upstream_writes($1, $2, $3)"
        await self._database.write(sql, self.practice_id, holder, due)

    async def retry_now(self, now: datetime) -> None:
        """Makes all writes due that nobody holds."""
        await self._database.write("SELECT retry_upstream_writes_now($1, $2)", self.practice_id, now)

    async def note_misconfiguration(self, request: str, reason: str | None, now: datetime) -> None:
        """Stores what an operator has to correct, None once the request works."""
        await self._database.write(
            "SELECT note_upstream_misconfiguration($1, $2, $3, $4)", self.practice_id, request, reason, now
        )

    async def abandoned_claims(self) -> dict[str, set[str]]:
        """The claims by slot of writes that have ended and did not free the slot yet: the slot is ours to take."""
        claims: dict[str, set[str]] = {}
        for row in await self._fetch("SELECT * FROM abandoned_upstream_claims($1)"):
            claims.setdefault(row["slot"], set()).update(row["claims"])
        return claims

    async def waiting(self) -> int:
        """How many writes are not settled yet."""
        count: int = await self._database.fetchval("SELECT waiting_upstream_writes($1)", self.practice_id)
        return count

    async def released(self, write: PendingWrite, left: Sequence[Release], due: datetime) -> None:
        sql = "SELECT release_upstream_write($1, $2, $3, $4, $5)"
        await self._database.write(sql, self.practice_id, write.id, write.holder, _json(list(left)), due)


def _record(row: Record) -> KnownRecord:
    return from_row(KnownRecord, row, facts=from_row(Facts, row))


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
