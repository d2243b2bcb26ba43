"""The key ring: the keys of the service, stored encrypted in the database and rotated without downtime.

Processes read new keys every `REFRESH_SECONDS`, and a key is used only `SETTLING` after its creation. A replaced key
verifies until everything made with it has expired.
"""

import asyncio
import secrets
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from asyncpg import Record
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from jwt.utils import base64url_encode

from frontdesk.access.keys.encryption import KeyCipher, load_secret_key, read_secrets
from frontdesk.background import Step
from frontdesk.settings import Settings
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database

TOKEN_SIGNING = "token-signing"  # noqa: S105 - a purpose, not a secret
SLOT_IDS = "slot-ids"
CURSORS = "cursors"
CLIENT_SECRETS = "client-secrets"
AUDIT_HEADS = "audit-heads"
MATCHES = "matches"
PURPOSES = (TOKEN_SIGNING, SLOT_IDS, CURSORS, CLIENT_SECRETS, AUDIT_HEADS, MATCHES)

REFRESH_SECONDS = 5.0
SETTLING = timedelta(seconds=10)

_ID_LIFETIME = timedelta(days=7)  # slot ids and cursors that callers may still hold
_MIN_REFRESH_INTERVAL = 1.0
_LOCK = 0x6B657973  # an arbitrary lock id: "keys"
_RETIRE = "UPDATE sealed_key SET retired_at = $2 WHERE purpose = $1 AND retired_at IS NULL"
_DELETE = "DELETE FROM sealed_key WHERE purpose = $1 AND retired_at <= $2"
_INSERT = "INSERT INTO sealed_key (key_id, purpose, sealed, created_at) VALUES ($1, $2, $3, $4)"
_SELECT = """
SELECT key_id, purpose, sealed, created_at, retired_at FROM sealed_key
ORDER BY retired_at DESC NULLS FIRST, created_at DESC
"""


@dataclass(frozen=True, slots=True)
class SigningKey:
    kid: str
    private: Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The public facts about a key."""

    key_id: str
    purpose: str
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Key:
    record: KeyRecord
    secret: bytes


class KeyRing:
    def __init__(
        self,
        database: Database,
        cipher: KeyCipher,
        *,
        token_lifetime_seconds: int = 3600,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._cipher = cipher
        self._clock = clock
        self._monotonic = monotonic
        # How long a replaced key still verifies. None: forever.
        self._lifetimes: dict[str, timedelta | None] = {
            TOKEN_SIGNING: timedelta(seconds=token_lifetime_seconds),
            SLOT_IDS: _ID_LIFETIME,
            CURSORS: _ID_LIFETIME,
            CLIENT_SECRETS: None,
            AUDIT_HEADS: None,
            MATCHES: timedelta(0),  # with a new key, the misses counted so far are forgotten
        }
        self._keys: dict[str, list[_Key]] = {}  # by purpose, newest first
        self._generation = 0
        self._moments: list[float] = []  # times at which a key becomes usable or expires
        self._refreshed_at = float("-inf")
        self._refreshing = asyncio.Lock()
        self.step = Step("key refresh", self.refresh, every=REFRESH_SECONDS)

    @property
    def signing_key(self) -> SigningKey:
        key = self._usable(TOKEN_SIGNING)[0]
        return SigningKey(key.record.key_id, _key_pair(key.secret)[0])

    @property
    def verification_keys(self) -> dict[str, Ed25519PublicKey]:
        return self._public_keys(TOKEN_SIGNING)

    def secrets(self, purpose: str) -> list[bytes]:
        """The first one signs, all of them verify."""
        return [key.secret for key in self._usable(purpose)]

    @property
    def audit_key(self) -> SigningKey:
        """Signs heads of audit trails and what is stated about their records."""
        key = self._usable(AUDIT_HEADS)[0]
        return SigningKey(key.record.key_id, _key_pair(key.secret)[0])

    def sign_audit_head(self, message: bytes) -> tuple[str, bytes]:
        """The id of the key, and the Ed25519 signature."""
        key = self.audit_key
        return key.kid, key.private.sign(message)

    def verify_audit_head(self, key_id: str, message: bytes, signature: bytes) -> bool:
        found = [key for key in self._keys.get(AUDIT_HEADS, ()) if key.record.key_id == key_id]
        try:
            for key in found:
                _key_pair(key.secret)[1].verify(signature, message)
        except InvalidSignature:
            return False
        return bool(found)

    def state(self, seconds: float) -> int:
        """A number that changes when the usable keys change."""
        return self._generation + bisect_right(self._moments, seconds)

    def jwks(self) -> dict[str, object]:
        """The public keys (RFC 7517, RFC 8037) of tokens, and of the audit trail for as long as it is kept."""
        common = {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA"}
        return {
            "keys": [
                common | {"kid": kid, "x": base64url_encode(key.public_bytes_raw()).decode()}
                for kid, key in {**self.verification_keys, **self._public_keys(AUDIT_HEADS)}.items()
            ]
        }

    def _public_keys(self, purpose: str) -> dict[str, Ed25519PublicKey]:
        return {key.record.key_id: _key_pair(key.secret)[1] for key in self._usable(purpose)}

    async def load(self) -> None:
        """Read the keys and create missing ones, under a lock."""
        await self._read()
        if any(purpose not in self._keys for purpose in PURPOSES):
            async with self._database.transaction() as connection:
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
                present = {row["purpose"] for row in await connection.fetch("SELECT DISTINCT purpose FROM sealed_key")}
                for purpose in PURPOSES:
                    if purpose not in present:
                        await self._insert(connection, purpose)
            await self._read()

    async def refresh(self) -> None:
        """Read the keys again, at most once a second."""
        async with self._refreshing:
            if self._monotonic() - self._refreshed_at >= _MIN_REFRESH_INTERVAL:
                await self._read()

    async def rotate(self, purpose: str) -> KeyRecord:
        """Add a key that is used after `SETTLING`, and delete expired keys."""
        lifetime = self._lifetimes[purpose]
        async with self._database.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            now = self._clock()
            await connection.execute(_RETIRE, purpose, now)
            if lifetime is not None:
                await connection.execute(_DELETE, purpose, now - lifetime - SETTLING)
            made = await self._insert(connection, purpose)
        await self._read()
        return made

    async def reencrypt(self) -> int:
        """Encrypt every key with the newest secret key; older secrets can then be removed."""
        async with self._database.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            rows = await connection.fetch(_SELECT)
            for row in rows:
                context = _context(row["purpose"], row["key_id"])
                encrypted = self._cipher.encrypt(self._cipher.decrypt(row["sealed"], context), context)
                await connection.execute(
                    "UPDATE sealed_key SET sealed = $2 WHERE key_id = $1", row["key_id"], encrypted
                )
        return len(rows)

    async def list_keys(self) -> list[KeyRecord]:
        """All keys, newest first."""
        return [_record(row) for row in await self._database.fetch(_SELECT)]

    def _usable(self, purpose: str) -> list[_Key]:
        """The current key, then the others that still verify."""
        now = self._clock()
        lifetime = self._lifetimes[purpose]
        keys = self._keys[purpose]
        settled = [key for key in keys if key.record.created_at <= now - SETTLING]
        in_use = settled[0] if settled else keys[-1]
        return [in_use] + [
            key
            for key in keys
            if key is not in_use
            and (key.record.retired_at is None or lifetime is None or now < key.record.retired_at + lifetime + SETTLING)
        ]

    async def _read(self) -> None:
        self._refreshed_at = self._monotonic()
        known = {key.record.key_id: key.secret for keys in self._keys.values() for key in keys}
        found: dict[str, list[_Key]] = {}
        for row in await self._database.fetch(_SELECT):
            record = _record(row)
            if record.purpose not in self._lifetimes:  # of a newer release that shares the database
                continue
            secret = known.get(record.key_id) or self._cipher.decrypt(
                row["sealed"], _context(record.purpose, record.key_id)
            )
            found.setdefault(record.purpose, []).append(_Key(record, secret))
        if found != self._keys:
            self._generation += len(self._moments) + 1
            self._keys = found
            self._moments = sorted(moment.timestamp() for moment in self._turning_points())

    def _turning_points(self) -> Iterator[datetime]:
        for purpose, keys in self._keys.items():
            lifetime = self._lifetimes[purpose]
            for key in keys:
                yield key.record.created_at + SETTLING
                if key.record.retired_at is not None and lifetime is not None:
                    yield key.record.retired_at + lifetime + SETTLING

    async def _insert(self, connection: Connection, purpose: str) -> KeyRecord:
        # 32 random bytes are a valid key for every purpose, including Ed25519.
        made = KeyRecord(secrets.token_hex(8), purpose, self._clock(), None)
        encrypted = self._cipher.encrypt(secrets.token_bytes(32), _context(purpose, made.key_id))
        await connection.execute(_INSERT, made.key_id, purpose, encrypted, made.created_at)
        return made


async def has_keys(database: Database) -> bool:
    found: bool = await database.fetchval("SELECT EXISTS (SELECT FROM sealed_key)")
    return found


async def cipher_for_database(settings: Settings, database: Database) -> KeyCipher:
    """The secret key, known to decrypt the stored keys. A missing one is created only if there are none."""
    if not await has_keys(database):
        return load_secret_key(settings)
    cipher = KeyCipher(read_secrets(settings))
    await examine_keys(database, cipher)
    return cipher


async def examine_keys(database: Database, cipher: KeyCipher) -> list[tuple[KeyRecord, bool]]:
    """Decrypt all keys and report whether the newest secret encrypts them. Creates none."""
    found = []
    for row in await database.fetch(_SELECT):
        record = _record(row)
        cipher.decrypt(row["sealed"], _context(record.purpose, record.key_id))
        found.append((record, cipher.is_encrypted_with_newest(row["sealed"])))
    return found


@lru_cache(maxsize=32)
def _key_pair(secret: bytes) -> tuple[Ed25519PrivateKey, Ed25519PublicKey]:
    private = Ed25519PrivateKey.from_private_bytes(secret)
    return private, private.public_key()


def _record(row: Record) -> KeyRecord:
    return KeyRecord(row["key_id"], row["purpose"], row["created_at"], row["retired_at"])


def _context(purpose: str, key_id: str) -> bytes:
    return f"{purpose}/{key_id}".encode()
