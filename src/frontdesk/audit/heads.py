"""Signs the heads of audit trails with a key that the database does not have, and publishes them outside of it."""

import asyncio
import logging
import os
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import orjson

from frontdesk.audit.reading import exact_time
from frontdesk.audit.trail import AuditTrail
from frontdesk.background import Step
from frontdesk.store.database import Database
from frontdesk.store.practice_work import for_each_practice, practices_with

SIGN_SECONDS = 60.0
_log = logging.getLogger(__name__)

_HEAD = """
SELECT p.slug, h.sequence, h.hash FROM audit_head h JOIN practice p ON p.practice_id = h.practice_id
WHERE h.practice_id = $1
"""
_LAST_SIGNED = "SELECT sequence, hash FROM audit_signed_head WHERE practice_id = $1 ORDER BY sequence DESC LIMIT 1"
_SEAL = "SELECT hash FROM audit_seal WHERE practice_id = $1 AND sequence = $2"
_ADD = """
INSERT INTO audit_signed_head (practice_id, sequence, hash, signed_at, key_id, signature)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING true
"""


class HeadKeys(Protocol):
    """The keys that sign and verify heads."""

    def sign_audit_head(self, message: bytes) -> tuple[str, bytes]: ...

    def verify_audit_head(self, key_id: str, message: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Head:
    sequence: int
    hash: bytes


class TrailAlteredError(Exception):
    """The chain no longer contains a head that was signed before."""


class AuditHeads:
    def __init__(
        self,
        database: Database,
        trail: AuditTrail,
        keys: HeadKeys,
        clock: Callable[[], datetime],
        file: Path | None = None,
    ) -> None:
        self._database = database
        self._trail = trail
        self._keys = keys
        self._clock = clock
        self._file = file
        self.altered: set[int] = set()  # practices whose trail was found altered
        self._signed: dict[int, Head] = {}  # the newest one of each practice that this process knows
        self.step = Step("audit signing", self.sign_due, every=SIGN_SECONDS, close=self._close)

    async def sign_due(self) -> None:
        """Signs and publishes every head that has moved since the last signature."""
        due = await practices_with(self._database, "unsigned heads", self._clock())
        await for_each_practice("audit signing", due, self.sign)

    async def _close(self) -> None:
        await self._trail.seal_pending()
        await self.sign_due()

    async def sign(self, practice_id: int) -> None:
        """Signs the head of one practice, if it has moved."""
        async with self._database.transaction(practice_id) as connection:
            row = await connection.fetchrow(_HEAD, practice_id)
            assert row is not None
            head = Head(row["sequence"], row["hash"])
            stored = await connection.fetchrow(_LAST_SIGNED, practice_id)
            last = None if stored is None else Head(**stored)
            for known in (head, last, self._signed.get(practice_id)):
                if known and await connection.fetchval(_SEAL, practice_id, known.sequence) != known.hash:
                    self.altered.add(practice_id)
                    raise TrailAlteredError
            self.altered.discard(practice_id)
            if last is not None and head.sequence <= last.sequence:  # another process was faster
                self._signed[practice_id] = last
                return
            signed_at = self._clock()
            key_id, signature = self._keys.sign_audit_head(head_message(practice_id, head, signed_at))
            values = (practice_id, head.sequence, head.hash, signed_at, key_id, signature)
            added = await connection.fetchval(_ADD, *values)
        self._signed[practice_id] = head
        if added:
            await self._publish(
                {
                    "practice": row["slug"],
                    "practiceId": practice_id,
                    "sequence": head.sequence,
                    "hash": head.hash.hex(),
                    "signedAt": exact_time(signed_at),
                    "keyId": key_id,
                    "signature": b64encode(signature).decode(),
                }
            )

    async def _publish(self, document: dict[str, object]) -> None:
        _log.info("audit head", extra=document)
        if self._file is not None:
            await asyncio.to_thread(_append, self._file, orjson.dumps(document) + b"\n")


def head_message(practice_id: int, head: Head, signed_at: datetime) -> bytes:
    """What is signed."""
    return f"frontdesk audit head\n{practice_id}\n{head.sequence}\n{head.hash.hex()}\n{exact_time(signed_at)}".encode()


def _append(file: Path, line: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)  # in one piece: other processes append to the same file
    finally:
        os.close(descriptor)
