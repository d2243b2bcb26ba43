"""Counts failed matches per client and per person asked for, and makes the client wait, across all nodes.

Only keyed hashes of what was asked are stored: a pattern can be seen, patient data cannot.
"""

import hmac
from datetime import date, datetime

from frontdesk.access.clients.caller import Caller
from frontdesk.access.keys.ring import MATCHES, KeyRing
from frontdesk.access.limits.exceeded import LimitExceeded
from frontdesk.access.limits.patient_budget import duration_text
from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database

PERSONS = 20  # in an hour an agent may fail this many times as often over all persons as for one
_HASH_BYTES = 16
_COUNT = "SELECT * FROM count_match($1, $2, $3, $4, $5, $6, $7, $8)"
_DETAILS = {
    "person": "This client has failed too often to match this person.",
    "client": "This client has failed too often to match patients.",
}
_FORGET = "DELETE FROM match_miss WHERE practice_id = $1 AND client_id = $2"


class MatchAttempts:
    def __init__(self, database: Database, ring: KeyRing) -> None:
        self._database = database
        self._ring = ring

    def person(self, practice_id: int, first_name: str, last_name: str, dob: date) -> bytes:
        """The keyed hash of the person asked for, equal for all spellings that match and, because a guess may vary
        them, for names that differ in marks only."""
        return self._hash(f"{practice_id}\n{name_key(first_name, last_name)}\n{dob}")

    async def count(self, caller: Caller, person: bytes, phone: str, now: datetime, *, is_hit: bool) -> None:
        """Counts an answer before it is given, so that concurrent guesses cannot exceed the limit. Raises
        `rate_limited` if it must not be given. Safe to repeat: a counted question is not counted again."""
        misses = caller.limits.match_misses
        row = await self._database.fetchrow(
            _COUNT,
            caller.practice_id,
            caller.client_id,
            person,
            self._hash(f"{caller.client_id}\n{person.hex()}\n{digits(phone)}"),
            is_hit,
            now,
            misses,
            misses * PERSONS if caller.grant == "agent" else 0,
        )
        assert row is not None
        if row["refused"] is not None:
            detail = f"{_DETAILS[row['refused']]} Try again in {duration_text(row['seconds'])}."
            raise LimitExceeded(
                "matches_of_person" if row["refused"] == "person" else "matches", detail, row["seconds"]
            )

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._ring.secrets(MATCHES)[0], text.encode(), "sha256")[:_HASH_BYTES]


async def forget_misses(connection: Connection, practice_id: int, client_id: str) -> None:
    """Ends the pauses and locks of a client. The connection acts for the practice."""
    await connection.execute(_FORGET, practice_id, client_id)
