"""The audit trail: a record per write attempt and per read of protected data, sealed into a chain per practice.

Records commit with their write and are sealed a moment later, so that writers never wait for each other.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from frontdesk.background import Step
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database, PartUnavailable, set_practice
from frontdesk.store.practice_work import for_each_practice, practices_with
from frontdesk.store.rows import Row

_SEAL_BATCH_SIZE = 500
_SEAL_PAUSE_SECONDS = 0.5
_POLL_INTERVAL_SECONDS = 60.0

COMMAND_LINE = "command-line"  # the actor of changes made by commands
_MAX_SUBJECTS = 200  # of one record of a bulk disclosure

AuditRecorder = Callable[[Connection, int, str], Awaitable[None]]
"""What commits together with a change: it is given the connection, the practice's id and the subject's."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    practice_id: int
    at: datetime
    actor: str
    operation: str
    outcome: str
    subjects: Sequence[str]
    request_id: str

    def values(self) -> tuple[object, ...]:
        """The parameters of append_audit."""
        return (
            self.practice_id, self.at, self.actor, self.operation, self.outcome, list(self.subjects), self.request_id
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditContext:
    """What the audit records of one request or command have in common."""

    actor: str
    now: datetime
    request_id: str

    def entry(
        self, practice_id: int, operation: str, subjects: Sequence[str] = (), outcome: str = "executed"
    ) -> AuditEntry:
        return AuditEntry(practice_id, self.now, self.actor, operation, outcome, subjects, self.request_id)

    def recorder(self, operation: str) -> AuditRecorder:
        """Adds an audit record to the transaction of a change."""

        async def record(connection: Connection, practice_id: int, subject: str) -> None:
            await append_audit(connection, self.entry(practice_id, operation, [subject]))

        return record


class AuditTrail:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._to_seal: set[int] = set()
        self._failed: set[int] = set()  # practices not tried again before the next look
        self._poll_at = 0.0
        self._wake = asyncio.Event()
        self._wake.set()
        self.step = Step(
            "audit sealing", self.seal_due, every=_POLL_INTERVAL_SECONDS, wake=self._wake, pause=_SEAL_PAUSE_SECONDS
        )

    def seal_soon(self, practice_id: int) -> None:
        if practice_id not in self._failed:
            self._to_seal.add(practice_id)
            self._wake.set()

    async def append(self, entry: AuditEntry, *, read: bool) -> None:
        """Writes a record that belongs to no other write."""
        function = "append_read_audit" if read else "append_audit"
        await self.database.write(f"SELECT {function}($1, $2, $3, $4, $5, $6, $7)", *entry.values())
        self.seal_soon(entry.practice_id)

    async def seal_due(self) -> None:
        if time.monotonic() >= self._poll_at:
            with suppress(PartUnavailable):  # a worker is lost; what others wrote is sealed all the same
                await self.find_unsealed()
            self._poll_at = time.monotonic() + _POLL_INTERVAL_SECONDS
        await self.seal_pending()

    async def find_unsealed(self) -> None:
        """Finds records that a worker left unsealed when it ended, and those of practices that failed."""
        self._failed.clear()
        self._to_seal.update(await practices_with(self.database, "unsealed records", datetime.now(UTC)))

    async def seal_pending(self) -> None:
        pending, self._to_seal = self._to_seal, set()
        try:
            self._failed |= await for_each_practice("audit sealing", pending, self._seal)
        except BaseException:
            self._to_seal |= pending
            raise

    async def _seal(self, practice_id: int) -> None:
        if await seal(self.database, practice_id) == _SEAL_BATCH_SIZE:
            self.seal_soon(practice_id)


async def append_audit(connection: Connection, entry: AuditEntry) -> None:
    """Adds a record to the transaction of the change that it is about."""
    await set_practice(connection, entry.practice_id)
    await connection.execute("SELECT append_audit($1, $2, $3, $4, $5, $6, $7)", *entry.values())


async def append_disclosure(connection: Connection, entry: AuditEntry) -> None:
    """Records the disclosure of any number of subjects, in as many records as it takes."""
    for first in range(0, max(len(entry.subjects), 1), _MAX_SUBJECTS):
        await append_audit(connection, replace(entry, subjects=entry.subjects[first : first + _MAX_SUBJECTS]))


async def seal(database: Database, practice_id: int) -> int:
    sealed: int = await database.fetchval("SELECT seal_audit($1, $2)", practice_id, _SEAL_BATCH_SIZE)
    return sealed


def chain_hash(previous: bytes, record: Row) -> bytes:
    """The link of a record to the one before it."""
    return link_hash(previous, record_digest(record))


def link_hash(previous: bytes, digest: bytes) -> bytes:
    return hashlib.sha256(previous + digest).digest()


def record_digest(record: Row) -> bytes:
    """What of a record enters the chain; the database's audit_hash builds the same bytes.

    Raises ValueError for a subject with a comma: no id has one, and two subjects joined by it have the same hash.
    """
    if any("," in subject for subject in record["subject_ids"]):
        raise ValueError
    at = record["at"]
    microseconds = int(at.timestamp()) * 1_000_000 + at.microsecond
    fields = (
        str(record["practice_id"]),
        str(record["record_id"]),
        str(microseconds),
        record["actor"],
        record["operation"],
        record["outcome"],
        ",".join(record["subject_ids"]),
        record["request_id"],
        *(() if record["consent"] is None else (record["consent"],)),
        *(() if record["challenge"] is None else (record["challenge"].hex(),)),
    )
    text = "".join(f"{len(value.encode())}:{value}" for value in fields)
    return hashlib.sha256(text.encode()).digest()
