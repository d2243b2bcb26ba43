"""The lock of a shared desk: a short PIN unlocks a session that its owner has opened in the same browser.

A PIN is never a first factor. The count of a session's wrong PINs is never reset; at its limit the session ends.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from asyncpg import Record

from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError
from frontdesk.access.opaque_tokens import digest_of, new_token
from frontdesk.access.outages import transaction_or_problem
from frontdesk.access.staff.members import StaffError, member_for_update
from frontdesk.access.staff.sessions import IDLE, StaffSession, StaffSessions, session_for_update
from frontdesk.domain.errors import Problem
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.texts import N_

LOCK_AFTER_MINUTES = (2, 5, 10, 15, 30)
MAX_WRONG_PINS = 5
_PIN = re.compile(r"[0-9]{4,8}\Z")
_SALT = 16
_PIN_CONTEXT = b"console pin"
_OUTAGE = N_("Signing in is not possible at the moment.")
_LOCKED = """
SELECT left(encode(s.digest, 'hex'), 8) AS number, m.name, p.name AS practice_name, s.digest = $3 AS is_own
FROM staff_session s JOIN staff m USING (staff_id) JOIN practice p USING (practice_id) JOIN staff_pin USING (staff_id)
WHERE s.desk = $1 AND s.expires_at > $2 AND NOT (m.disabled OR p.suspended) ORDER BY m.name, s.created_at DESC
"""
_FIND = """
SELECT s.digest, s.staff_id, n.sealed, s.wrong_pins FROM staff_session s JOIN staff_pin n USING (staff_id)
WHERE s.desk = $1 AND left(encode(s.digest, 'hex'), 8) = $2 AND s.expires_at > $3
"""
_UNLOCK = "UPDATE staff_session SET digest = $2, locked_at = NULL, last_seen_at = $3 WHERE digest = $1"
_LOCK_IDLE = """
UPDATE staff_session s SET locked_at = $2 FROM staff_pin n
WHERE s.staff_id = $1 AND n.staff_id = $1 AND s.locked_at IS NULL
  AND s.last_seen_at + n.lock_after_minutes * interval '1 minute' <= $2
"""
_END_IDLE = "DELETE FROM staff_session WHERE staff_id = $1 AND last_seen_at <= $2"
_SET = """
INSERT INTO staff_pin VALUES ($1, $2, $3, $4)
ON CONFLICT (staff_id) DO UPDATE SET sealed = excluded.sealed, lock_after_minutes = excluded.lock_after_minutes
"""


@dataclass(frozen=True, slots=True)
class LockedSession:
    number: str
    name: str
    practice_name: str
    is_own: bool  # of those in the browser, the one in use when it was locked


class DeskLock:
    def __init__(
        self, database: Database, sessions: StaffSessions, clock: Callable[[], datetime], cipher: KeyCipher
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock
        self._cipher = cipher

    async def attach(self, token: str, desk: str) -> None:
        """Notes the browser of a session. Other sessions of the same person in it end."""
        digest, desk_digest = digest_of(token), digest_of(desk)
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            staff_id = await connection.fetchval("SELECT staff_id FROM staff_session WHERE digest = $1", digest)
            await member_for_update(connection, staff_id)
            await connection.execute("UPDATE staff_session SET desk = $2 WHERE digest = $1", digest, desk_digest)
            end = "DELETE FROM staff_session WHERE desk = $1 AND staff_id = $2 AND digest <> $3"
            await connection.execute(end, desk_digest, staff_id, digest)

    async def sessions_with_pin(self, desk: str | None, token: str | None = None) -> list[LockedSession]:
        """Sessions in this browser whose staff member has a PIN. The browser's own is that of `token`."""
        if not desk:
            return []
        rows = await self._database.fetch(_LOCKED, digest_of(desk), self._clock(), digest_of(token or ""))
        return [LockedSession(**row) for row in rows]

    async def set_pin(self, session: StaffSession, current: str, pin: str, minutes: int, request_id: str) -> None:
        """StaffError says why it was refused. A PIN that exists is changed only with it."""
        if not _PIN.match(pin) or _is_obvious(pin):
            raise StaffError("A PIN is 4 to 8 digits, neither all the same nor in sequence.")
        if minutes not in LOCK_AFTER_MINUTES:
            raise StaffError("Choose one of the times.")
        encrypted = await self._encrypted(pin)
        await self._with_pin(session, current, request_id, "console.set_pin", _SET, encrypted, minutes, self._clock())

    async def remove_pin(self, session: StaffSession, current: str, request_id: str) -> None:
        delete = "DELETE FROM staff_pin WHERE staff_id = $1"
        await self._with_pin(session, current, request_id, "console.remove_pin", delete)

    async def check_pin(self, session: StaffSession, pin: str, operation: str, request_id: str) -> None:
        """Checks that the staff member asks for the operation: StaffError for a wrong PIN, which is counted."""
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            row = await session_for_update(connection, session)
            is_right = row["sealed"] is not None and await self._is_right(connection, row, pin)
            if not is_right:
                await self._sessions.record(
                    connection, session.practice_id, session.staff_id, operation, request_id, "unauthorized"
                )
        if not is_right:
            raise StaffError("The PIN is wrong. After five wrong PINs the session ends.")

    async def lock(self, session: StaffSession, request_id: str) -> None:
        if session.lock_after_minutes is None:
            raise Problem("conflict", "Set a PIN first.")
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            await session_for_update(connection, session)
            lock = "UPDATE staff_session SET locked_at = $2 WHERE digest = $1"
            await connection.execute(lock, session.digest, self._clock())
            await self._sessions.record(connection, session.practice_id, session.staff_id, "console.lock", request_id)

    async def unlock(self, desk: str, number: str, pin: str, token: str | None, request_id: str) -> str:
        """The session's token: a new one, unless the browser's own `token` is that of the session. Problem
        `unauthorized` for a wrong PIN."""
        refused = Problem("unauthorized", "The PIN is wrong.")
        opened, now = None, self._clock()
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            staff_id = await connection.fetchval(
                f"SELECT staff_id FROM ({_FIND}) f",  # noqa: S608 - a statement of this module
                digest_of(desk),
                number,
                now,
            )
            held = None if staff_id is None else await member_for_update(connection, staff_id)
            row = None if held is None else await connection.fetchrow(_FIND, digest_of(desk), number, now)
            if held is None or row is None:
                raise refused
            outcome = "unauthorized"
            if await self._is_right(connection, row, pin) and not (held["disabled"] or held["suspended"]):
                opened = token if token and digest_of(token) == row["digest"] else new_token()
                await connection.execute(_UNLOCK, row["digest"], digest_of(opened), now)
                outcome = "executed"
            await self._sessions.record(
                connection, held["practice_id"], staff_id, "console.unlock", request_id, outcome
            )
        if opened is None:
            raise refused
        return opened

    async def _with_pin(
        self, session: StaffSession, current: str, request_id: str, operation: str, sql: str, *values: object
    ) -> None:
        """Runs a statement on the PIN of a staff member who knows the present one, if there is one. One that was
        encrypted with another secret key counts as none: nobody could change it."""
        allowed = True
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            row = await session_for_update(connection, session)
            is_known = row["sealed"] is not None and bool(self._decrypted(row["sealed"]))
            if is_known:
                allowed = await self._is_right(connection, row, current)
            if allowed:
                now = self._clock()
                if row["sealed"] is None:  # else the first PIN would unlock sessions that have ended
                    await connection.execute(_END_IDLE, session.staff_id, now - IDLE)
                # Else a longer time, or none, would open desks that are locked by the present one.
                await connection.execute(_LOCK_IDLE, session.staff_id, now)
                if not is_known:
                    await connection.execute("DELETE FROM staff_pin WHERE staff_id = $1", session.staff_id)
                await connection.execute(sql, session.staff_id, *values)
            await self._sessions.record(
                connection,
                session.practice_id,
                session.staff_id,
                operation,
                request_id,
                "executed" if allowed else "unauthorized",
            )
        if not allowed:
            raise StaffError("The current PIN is wrong.")

    async def _is_right(self, connection: Connection, row: Record, pin: str) -> bool:
        """Counts a wrong PIN; too many end the session. The staff member's row is locked."""
        plain = self._decrypted(row["sealed"])
        salt, kept = plain[:_SALT], plain[_SALT:]
        if _PIN.match(pin) and kept and hmac.compare_digest(await _hashed(pin, salt), kept):
            return True
        if row["wrong_pins"] + 1 >= MAX_WRONG_PINS:
            await connection.execute("DELETE FROM staff_session WHERE digest = $1", row["digest"])
        else:
            count = "UPDATE staff_session SET wrong_pins = wrong_pins + 1 WHERE digest = $1"
            await connection.execute(count, row["digest"])
        return False

    def _decrypted(self, encrypted: bytes) -> bytes:
        """Salt and hash; empty if the secret key has been replaced."""
        try:
            return self._cipher.decrypt(encrypted, _PIN_CONTEXT)
        except SecretKeyError:
            return b""

    async def _encrypted(self, pin: str) -> bytes:
        salt = secrets.token_bytes(_SALT)
        return self._cipher.encrypt(salt + await _hashed(pin, salt), _PIN_CONTEXT)


async def _hashed(pin: str, salt: bytes) -> bytes:
    return await asyncio.to_thread(hashlib.scrypt, pin.encode(), salt=salt, n=2**14, r=8, p=1)


def _is_obvious(pin: str) -> bool:
    steps = {int(after) - int(before) for before, after in pairwise(pin)}
    return steps in ({0}, {1}, {-1})
