"""Passkeys of staff: registered by a signed-in staff member, used to sign in, removed by their owner or an admin.

A challenge is answered once. The caller keeps it in the browser that it was made for.
"""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING

from frontdesk.access.opaque_tokens import digest_of
from frontdesk.access.outages import transaction_or_problem
from frontdesk.access.staff.members import StaffError, checked_name, member_for_update
from frontdesk.access.staff.relying_party import RelyingParty
from frontdesk.access.staff.sessions import StaffSession, StaffSessions, session_for_update
from frontdesk.audit.trail import AuditContext, append_audit
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import random_base62
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.texts import N_, Text

if TYPE_CHECKING:
    from frontdesk.access.staff.ceremonies import Claim

CHALLENGE_LIFETIME = timedelta(minutes=5)
MAX_PASSKEYS = 20
_NAME_RULE = N_("A passkey's name is one line of 1 to %(maximum)s characters.")
_OUTAGE = N_("Signing in is not possible at the moment.")
_LIST = """
SELECT passkey_id, name, created_at, last_used_at FROM staff_passkey WHERE staff_id = $1 ORDER BY created_at, passkey_id
"""
_ADD = """
INSERT INTO staff_passkey (passkey_id, staff_id, credential_id, public_key, sign_count, name, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (credential_id) DO NOTHING RETURNING true
"""
_USE_CHALLENGE = "INSERT INTO used_challenge VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
_USED = "UPDATE staff_passkey SET sign_count = $2, last_used_at = $3 WHERE passkey_id = $1"
_REMOVE = "DELETE FROM staff_passkey WHERE staff_id = $1 AND passkey_id = $2 RETURNING true"
_PRUNE = """
DELETE FROM used_challenge WHERE digest = ANY (ARRAY(
    SELECT digest FROM used_challenge WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING true
"""


@dataclass(frozen=True, slots=True)
class PasskeyRecord:
    passkey_id: str
    name: str
    created_at: datetime
    last_used_at: datetime | None


class Passkeys:
    def __init__(
        self, database: Database, sessions: StaffSessions, clock: Callable[[], datetime], party: RelyingParty
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock
        self._party = party

    async def of(self, staff_id: str) -> list[PasskeyRecord]:
        return await list_passkeys(self._database, staff_id)

    async def registration_options(self, session: StaffSession, challenge: str) -> str:
        """JSON for the browser of a signed-in staff member."""
        ceremonies = await _ceremonies()
        rows = await self._database.fetch(
            "SELECT credential_id FROM staff_passkey WHERE staff_id = $1", session.staff_id
        )
        label = f"{session.name}, {session.practice_name}"  # tells the practices of one person apart
        options: str = ceremonies.registration_options(
            self._party, challenge.encode(), session.staff_id, label, label, [row["credential_id"] for row in rows]
        )
        return options

    async def register(self, session: StaffSession, challenge: str, answer: str, name: str, request_id: str) -> None:
        """Adds a passkey. StaffError says why it was refused."""
        ceremonies, now = await _ceremonies(), self._clock()
        name = checked_name(name, _NAME_RULE)
        try:
            made = ceremonies.verified_registration(self._party, challenge.encode(), answer)
        except ceremonies.PasskeyRefused:
            raise StaffError("The passkey could not be checked. Try again.") from None
        passkey_id = "pk_" + random_base62(20)
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            await session_for_update(connection, session)
            if not await self._use_challenge(connection, challenge):
                raise StaffError("The passkey could not be checked. Try again.")
            owned = "SELECT count(*) FROM staff_passkey WHERE staff_id = $1"
            if await connection.fetchval(owned, session.staff_id) >= MAX_PASSKEYS:
                raise StaffError(
                    Text("A staff member has at most %(maximum)s passkeys. Remove one first.", maximum=MAX_PASSKEYS)
                )
            values = (made.credential_id, made.public_key, made.sign_count, name, now)
            if not await connection.fetchval(_ADD, passkey_id, session.staff_id, *values):
                raise StaffError("This passkey is registered already.")
            await self._sessions.record(
                connection, session.practice_id, session.staff_id, "console.add_passkey", request_id
            )

    async def sign_in_options(self, challenge: str) -> str:
        """JSON for a browser without a session."""
        options: str = (await _ceremonies()).sign_in_options(self._party, challenge.encode())
        return options

    async def sign_in(self, challenge: str, answer: str, browser: str, request_id: str) -> str:
        """The token of a new session. Problem `unauthorized` if the answer proves nothing."""
        ceremonies = await _ceremonies()
        refused = Problem("unauthorized", "This passkey may not sign in.")
        try:
            claim = ceremonies.claimed(answer)
        except ceremonies.PasskeyRefused:
            raise refused from None
        async with transaction_or_problem(self._database, _OUTAGE) as connection:
            find = "SELECT staff_id FROM staff_passkey WHERE credential_id = $1"
            staff_id = await connection.fetchval(find, claim.credential_id)
            held = None if staff_id is None else await member_for_update(connection, staff_id)
            if held is None:
                raise refused
            opened = None
            admitted = not (held["disabled"] or held["suspended"])
            if await self._proves(connection, ceremonies, challenge, answer, claim, staff_id) and admitted:
                opened = await self._sessions.open(
                    connection, held["practice_id"], staff_id, "passkey", browser, request_id
                )
            if opened is None:
                await self._sessions.record(
                    connection, held["practice_id"], staff_id, "console.sign_in", request_id, "unauthorized"
                )
        if opened is None:
            raise refused
        return opened

    async def _proves(
        self, connection: Connection, ceremonies: ModuleType, challenge: str, answer: str, claim: "Claim", staff_id: str
    ) -> bool:
        """Whether the staff member, whose row is locked, has answered the challenge with a passkey of theirs."""
        if not await self._use_challenge(connection, challenge) or claim.user_handle != staff_id.encode():
            return False
        read = """SELECT passkey_id, public_key, sign_count FROM staff_passkey
                  WHERE credential_id = $1 AND staff_id = $2"""
        row = await connection.fetchrow(read, claim.credential_id, staff_id)
        if row is None:
            return False
        try:
            count = ceremonies.verified_sign_in(
                self._party, challenge.encode(), answer, row["public_key"], row["sign_count"]
            )
        except ceremonies.PasskeyRefused:
            return False
        await connection.execute(_USED, row["passkey_id"], count, self._clock())
        return True

    async def _use_challenge(self, connection: Connection, challenge: str) -> bool:
        expires_at = self._clock() + CHALLENGE_LIFETIME
        return bool(await connection.fetchval(_USE_CHALLENGE, digest_of(challenge), expires_at))


async def list_passkeys(database: Database, staff_id: str) -> list[PasskeyRecord]:
    return [PasskeyRecord(**row) for row in await database.fetch(_LIST, staff_id)]


async def remove_passkey(
    database: Database, practice_id: int, staff_id: str, passkey_id: str, *, audit: AuditContext
) -> None:
    """Sessions that it opened stay. StaffError if the staff member has no such passkey."""
    async with database.transaction() as connection:
        await member_for_update(connection, staff_id)
        if not await connection.fetchval(_REMOVE, staff_id, passkey_id):
            raise StaffError("There is no such passkey.")
        await append_audit(connection, audit.entry(practice_id, "console.remove_passkey", [staff_id]))


async def prune_challenges(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` used challenges that have expired; returns how many."""
    return len(await database.fetch(_PRUNE, now, limit))


async def _ceremonies() -> ModuleType:
    """Imported in a thread when the first passkey is used, because the library is slow to import."""
    return await asyncio.to_thread(importlib.import_module, "frontdesk.access.staff.ceremonies")
