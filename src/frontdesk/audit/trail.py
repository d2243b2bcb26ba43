"""The audit trail as the engine sees it: a record per write attempt and per read of protected data, ids only.

Records commit with their write. A sealer links committed records into a chain per practice a moment later.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from frontdesk.store.chores import practices_with
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

_SEAL_AT_ONCE = 500
_SEAL_PAUSE_SECONDS = 0.5
_log = logging.getLogger(__name__)

COMMAND_LINE = "command-line"  # the actor of changes made by commands


@dataclass(frozen=True, slots=True)
class AuditEntry:
    practice_id: int
    at: datetime
    actor: str
    operation: str
    outcome: str
    subjects: Sequence[str]
    request_id: str

    def values(self) -> tuple[Any, ...]:
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


class AuditTrail:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._to_seal: set[int] = set()
        self._wake = asyncio.Event()

    def seal_soon(self, practice_id: int) -> None:
        self._to_seal.add(practice_id)
        self._wake.set()

    async def append(self, entry: AuditEntry, *, read: bool) -> None:
        """Persists a record of its own, for what commits nothing else."""
        function = "append_read_audit" if read else "append_audit"
        await self._database.write(f"SELECT {function}($1, $2, $3, $4, $5, $6, $7)", *entry.values())
        self.seal_soon(entry.practice_id)

    async def keep_sealing(self) -> None:
        """Runs for as long as the service does. What a crash or another node left unsealed is picked up first."""
        with contextlib.suppress(DatabaseUnavailable):  # housekeeping looks again
            await self.find_unsealed()
        while True:
            await self.seal_pending()
            self._wake.clear()
            if not self._to_seal:
                await self._wake.wait()
            await asyncio.sleep(_SEAL_PAUSE_SECONDS)

    async def find_unsealed(self) -> None:
        """What nobody seals: a worker ended before it came to it."""
        self._to_seal.update(await practices_with(self._database, "unsealed records", datetime.now(UTC)))
        self._wake.set()

    async def seal_pending(self) -> None:
        for practice_id in list(self._to_seal):
            self._to_seal.discard(practice_id)
            try:
                if await seal(self._database, practice_id) == _SEAL_AT_ONCE:
                    self._to_seal.add(practice_id)
            except (DatabaseUnavailable, OutcomeUnknown):
                self._to_seal.add(practice_id)
                _log.warning("audit records could not be sealed; trying again")
                return


async def append_audit(connection: Any, entry: AuditEntry) -> None:
    """Adds a record to the transaction of the change that it is about."""
    await connection.execute("SELECT append_audit($1, $2, $3, $4, $5, $6, $7)", *entry.values())


async def seal(database: Database, practice_id: int) -> int:
    row = await database.write("SELECT seal_audit($1, $2) AS sealed", practice_id, _SEAL_AT_ONCE)
    assert row is not None
    sealed: int = row["sealed"]
    return sealed


def chain_hash(previous: bytes, record: Any) -> bytes:
    """The link of a record to the one before it; the database's audit_hash builds the same bytes."""
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
    )
    text = "".join(f"{len(value.encode())}:{value}" for value in fields)
    return hashlib.sha256(previous + text.encode()).digest()
