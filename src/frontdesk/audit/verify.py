"""Verifies a practice's audit trail and reports records that are unsealed, changed, removed or reordered.

The owner of the database can remove the newest records with their signed heads; only a head stored elsewhere reveals
that.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from asyncpg import Record

from frontdesk.audit.heads import Head, HeadKeys, head_message
from frontdesk.audit.reading import BATCH, exact_time, readable, seal_pending, sealed_records
from frontdesk.audit.trail import chain_hash
from frontdesk.store.database import Database

MAX_VIOLATIONS = 100
_MAX_UNSEALED_AGE = timedelta(minutes=1)
_PROGRESS_INTERVAL = 200

_HEAD = """
SELECT (SELECT sequence FROM audit_head WHERE practice_id = $1) AS sequence,
       (SELECT hash FROM audit_head WHERE practice_id = $1) AS hash,
       (SELECT max(sequence) FROM audit_seal WHERE practice_id = $1) AS last_seal,
       (SELECT max(sequence) FROM audit_signed_head WHERE practice_id = $1) AS last_signed
"""
_RECORDS = f"""
SELECT r.record_id, {readable("r.at")} AS at, s.sequence, u.record_id IS NOT NULL AS waiting
FROM audit_record r
LEFT JOIN audit_seal s ON s.practice_id = r.practice_id AND s.record_id = r.record_id
LEFT JOIN audit_unsealed u ON u.practice_id = r.practice_id AND u.record_id = r.record_id
WHERE r.practice_id = $1 AND r.record_id > $2 ORDER BY r.record_id LIMIT $3
"""  # noqa: S608 - columns of ours
_REMOVED_BEFORE_SEALING = """
SELECT u.record_id FROM audit_unsealed u
LEFT JOIN audit_record r ON r.practice_id = u.practice_id AND r.record_id = u.record_id
WHERE u.practice_id = $1 AND r.record_id IS NULL ORDER BY u.record_id LIMIT $2
"""

_MISMATCHES = {
    "reordered": "does not follow the record before it: the order was changed.",
    "changed": "does not match its seal: it was changed, or the seal before it was.",
}

Progress = Callable[[int, int], Awaitable[None]]
ViolationKind = Literal[
    "changed", "reordered", "removed", "sealMissing", "headMismatch", "unsealed", "signedHeadMismatch",
    "signatureInvalid", "keptHeadMissing",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChainViolation:
    kind: ViolationKind
    message: str
    sequence: int | None = None
    record_id: int | None = None


@dataclass(frozen=True, slots=True)
class SignedHeads:
    """The first and the last signed head. What stands before the first one was not signed when it was written."""

    first_sequence: int
    first_signed_at: datetime
    last_sequence: int
    last_signed_at: datetime
    checked: bool
    """False: without the key, the signatures were only compared with the chain."""

    def document(self) -> dict[str, object]:
        return {
            "first": {"sequence": self.first_sequence, "signedAt": exact_time(self.first_signed_at)},
            "last": {"sequence": self.last_sequence, "signedAt": exact_time(self.last_signed_at)},
            "signaturesChecked": self.checked,
        }


@dataclass(frozen=True, slots=True)
class ChainReport:
    sequence: int
    """Of the head: how many records are sealed."""
    hash: bytes
    signed: SignedHeads | None
    violations: tuple[ChainViolation, ...]
    """At most MAX_VIOLATIONS of them."""

    def document(self) -> dict[str, object]:
        return {
            "head": {"sequence": self.sequence, "hash": self.hash.hex()},
            "signed": None if self.signed is None else self.signed.document(),
            "violations": [
                {
                    "kind": violation.kind,
                    "sequence": violation.sequence,
                    "recordId": violation.record_id,
                    "message": violation.message,
                }
                for violation in self.violations
            ],
        }


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """A seal that does not follow from the previous seal and its record."""

    previous: bytes
    row: Record


async def verify_chain(
    database: Database,
    practice_id: int,
    now: datetime,
    progress: Progress | None = None,
    *,
    keys: HeadKeys | None = None,
    kept: Collection[Head] = (),
) -> ChainReport:
    """Seal pending records, then check everything. `progress(checked, expected)` is awaited from time to time.

    `keys` verify the signatures of heads; `kept` are heads stored elsewhere, which the chain must contain.
    """
    await seal_pending(database, practice_id)
    async with database.transaction(practice_id) as connection:
        head = await connection.fetchrow(_HEAD, practice_id)
    assert head is not None
    signatures = _Signatures(practice_id, keys)
    violations = await _broken_links(database, practice_id, head, progress, signatures, kept)
    violations += await _unsealed_records(database, practice_id, now)
    return ChainReport(
        head["sequence"] or 0, head["hash"] or b"", signatures.report(), tuple(violations[:MAX_VIOLATIONS])
    )


class _Signatures:
    """Checks the signed heads of one chain as they come by."""

    def __init__(self, practice_id: int, keys: HeadKeys | None) -> None:
        self._practice_id = practice_id
        self._keys = keys
        self._first: Record | None = None
        self._last: Record | None = None
        self._differs = False

    def violations(self, row: Record) -> Iterable[ChainViolation]:
        if row["signature"] is None:
            return
        self._first, self._last = self._first or row, row
        sequence = row["sequence"]
        signed = Head(sequence, row["signed_hash"])
        message = head_message(self._practice_id, signed, row["signed_at"])
        if self._keys is not None and not self._keys.verify_audit_head(row["key_id"], message, row["signature"]):
            text = f"The signature of the head with sequence {sequence} is not valid."
            yield ChainViolation("signatureInvalid", text, sequence)
        if signed.hash != row["hash"] and not self._differs:  # those that follow differ as well
            self._differs = True
            text = f"The trail differs from its signed head with sequence {sequence}: records before it were rewritten."
            yield ChainViolation("signedHeadMismatch", text, sequence)

    def report(self) -> SignedHeads | None:
        if self._first is None or self._last is None:
            return None
        return SignedHeads(
            self._first["sequence"],
            self._first["signed_at"],
            self._last["sequence"],
            self._last["signed_at"],
            checked=self._keys is not None,
        )


async def _broken_links(
    database: Database,
    practice_id: int,
    head: Record,
    progress: Progress | None,
    signatures: _Signatures,
    kept: Collection[Head],
) -> list[ChainViolation]:
    violations: list[ChainViolation] = []
    mismatches: list[_Mismatch] = []
    sequence, previous, head_hash = 0, b"", b""
    followed = 0
    missing = set(kept)
    async for row in sealed_records(database, practice_id):
        if progress is not None and followed % _PROGRESS_INTERVAL == 0:
            await progress(followed, head["sequence"] or 0)
        followed += 1
        if len(violations) + len(mismatches) >= MAX_VIOLATIONS:
            break
        linked = row["sequence"] == sequence + 1
        if not linked:
            violations.append(_missing_seals(sequence + 1, row["sequence"] - 1))
        if row["record_id"] is None:
            message = f"Record {row['sealed_id']} (sequence {row['sequence']}) was removed."
            violations.append(ChainViolation("removed", message, row["sequence"], row["sealed_id"]))
        elif linked and not _fits(previous, row, row["hash"]):
            mismatches.append(_Mismatch(previous, row))
        violations += signatures.violations(row)
        sequence, previous = row["sequence"], row["hash"]
        missing.discard(Head(sequence, previous))
        if sequence == head["sequence"]:
            head_hash = previous
    else:
        violations += _head_violations(head, sequence, head_hash)
        violations += [_kept_head_missing(each, sequence) for each in missing]
    return sorted([*violations, *_named(mismatches)], key=lambda violation: violation.sequence or 0)


def _head_violations(head: Record, last_seen: int, hash_seen: bytes) -> list[ChainViolation]:
    """`last_seen` may be beyond the head that was read before, because sealing continues."""
    head_sequence, last_seal, signed = head["sequence"] or 0, head["last_seal"] or 0, head["last_signed"] or 0
    if head_sequence > last_seen:
        return [_missing_seals(last_seen + 1, head_sequence)]
    if signed > last_seen:
        message = f"The trail ends at sequence {last_seen}, and a head with sequence {signed} was signed."
        return [ChainViolation("signedHeadMismatch", message, signed)]
    if head_sequence != last_seal:
        message = f"The head of the chain is at sequence {head_sequence}, and its last seal at {last_seal}."
        return [ChainViolation("headMismatch", message, head_sequence)]
    if (head["hash"] or b"") != hash_seen:
        return [
            ChainViolation(
                "headMismatch", f"The head of the chain differs from its last seal, {head_sequence}.", head_sequence
            )
        ]
    return []


def _kept_head_missing(head: Head, last_seen: int) -> ChainViolation:
    what = "has another hash there" if head.sequence <= last_seen else f"ends at sequence {last_seen}"
    message = f"The trail does not contain the head with sequence {head.sequence} that was kept elsewhere: it {what}."
    return ChainViolation("keptHeadMissing", message, head.sequence)


def _missing_seals(first: int, last: int) -> ChainViolation:
    which = f"seal with sequence {first} is" if first == last else f"seals with sequence {first} to {last} are"
    return ChainViolation("sealMissing", f"The {which} missing.", first)


def _named(mismatches: list[_Mismatch]) -> Iterable[ChainViolation]:
    """A seal that matches another record or predecessor was moved; one that matches nothing covers a changed record."""
    for mismatch in mismatches:
        row = mismatch.row
        place = f"Record {row['record_id']} (sequence {row['sequence']})"
        kind: ViolationKind = "reordered" if _belongs_elsewhere(mismatch, mismatches) else "changed"
        yield ChainViolation(kind, f"{place} {_MISMATCHES[kind]}", row["sequence"], row["record_id"])


def _belongs_elsewhere(mismatch: _Mismatch, mismatches: list[_Mismatch]) -> bool:
    return any(
        _fits(mismatch.previous, other.row, mismatch.row["hash"])
        or _fits(other.previous, mismatch.row, mismatch.row["hash"])
        or _fits(other.row["hash"], mismatch.row, mismatch.row["hash"])
        for other in mismatches
        if other is not mismatch
    )


def _fits(previous: bytes, record: Record, sealed: bytes) -> bool:
    try:
        return chain_hash(previous, record) == sealed
    except (TypeError, ValueError, OverflowError):
        return False  # values that the service never writes


async def _unsealed_records(database: Database, practice_id: int, now: datetime) -> list[ChainViolation]:
    async with database.transaction(practice_id) as connection:
        gone = await connection.fetch(_REMOVED_BEFORE_SEALING, practice_id, MAX_VIOLATIONS)
    violations = [
        ChainViolation(
            "removed", f"Record {row['record_id']} was removed before it was sealed.", None, row["record_id"]
        )
        for row in gone
    ]
    last = 0
    while len(violations) < MAX_VIOLATIONS:
        async with database.transaction(practice_id) as connection:
            rows = await connection.fetch(_RECORDS, practice_id, last, BATCH)
        for row in rows:
            number = row["record_id"]
            if row["sequence"] is None and not row["waiting"]:
                violations.append(ChainViolation("sealMissing", f"Record {number} has no seal.", None, number))
            elif row["sequence"] is None and row["at"] < now - _MAX_UNSEALED_AGE:
                message = f"Record {number} has waited for its seal for over a minute."
                violations.append(ChainViolation("unsealed", message, None, number))
        if len(rows) < BATCH:
            break
        last = rows[-1]["record_id"]
    return violations
