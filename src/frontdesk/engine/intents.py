"""Stored intents: what a confirmation token or an Idempotency-Key was issued or used for, and its result."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.errors import FieldError, Problem
from frontdesk.engine.consent import is_recognized
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.systems.port import Intent, SystemUnavailable
from frontdesk.texts import Text

MAX_KEY_LENGTH = 255
_WAIT_TIMEOUT_SECONDS = 15.0  # how long a second confirmation waits for the first
_POLL_INTERVAL_SECONDS = 0.1


def intent_of_token(token: str) -> bytes:
    """The id of the intent that a confirmation token was issued for."""
    return _hash(token)


def intent_of_key(client_id: str, key: str) -> bytes:
    """The id of the intent that is stored for an Idempotency-Key."""
    return _hash(f"{client_id}\n{key}")


def key_errors(key: str | None) -> list[FieldError]:
    """What is wrong with an Idempotency-Key, as of any other field."""
    if key is not None and not key.strip():
        return [FieldError("Idempotency-Key", "notBlank", Text("%(field)s must not be blank"))]
    if key is not None and len(key) > MAX_KEY_LENGTH:
        text = Text("%(field)s must be at most %(maximum)s characters", maximum=MAX_KEY_LENGTH)
        return [FieldError("Idempotency-Key", "maxLength", text)]
    return []


@dataclass(frozen=True, slots=True)
class StoredIntent:
    fingerprint: bytes
    state: str
    result: Mapping[str, object] | None
    expires_at: datetime
    approval: str | None = None  # of a staff member: pending, approved or refused; None if it needs none
    challenge: str | None = None  # what was read back and when, as JSON, until it is consumed

    def replayed(self, intent: Intent) -> Mapping[str, object] | None:
        """The stored result of the same write, None if it has not been executed yet."""
        if self.fingerprint != intent.fingerprint:
            raise mismatch(intent)
        if self.state == "executing":
            raise Problem("confirmation_incomplete")
        return self.result

    def was_read_back(self, read_back: Mapping[str, object]) -> bool:
        """Whether the challenge read back the same, with or without the name of the patient."""
        stored = {} if self.challenge is None else orjson.loads(self.challenge)["readBack"]
        return bool({**stored, **orjson.loads(orjson.dumps(read_back))} == stored)


def mismatch(intent: Intent | None) -> Problem:
    if intent is not None and intent.is_key:
        return Problem("conflict", "This Idempotency-Key was used for a different request.")
    return Problem("confirmation_mismatch")


@dataclass(frozen=True, slots=True)
class Intents:
    database: Database

    async def find(self, caller: Caller, intent_id: bytes, now: datetime) -> StoredIntent | None:
        """The stored intent, None if it is unknown, another client's or expired. Waits while it is being executed."""
        remaining = _WAIT_TIMEOUT_SECONDS
        while True:
            try:
                row = await self.database.fetchrow("SELECT * FROM find_intent($1, $2)", caller.practice_id, intent_id)
            except DatabaseUnavailable as error:
                raise SystemUnavailable from error
            busy = row is not None and row["executing_until"] is not None and row["executing_until"] > now
            if not busy or remaining <= 0:
                break
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)
            remaining -= _POLL_INTERVAL_SECONDS
        if row is None or row["client_id"] != caller.client_id or row["keep_until"] <= now:
            return None
        result = None if row["result"] is None else orjson.loads(row["result"])
        return StoredIntent(
            row["fingerprint"], row["state"], result, row["expires_at"], row["approval"], row["challenge"]
        )

    async def result_of(
        self, caller: Caller, key: str | None, token: str | None, now: datetime
    ) -> Mapping[str, object]:
        """What a write of the caller answered; empty if it was not executed."""
        if caller.grant == "agent":
            intent_id = None if token is None or not is_recognized(token) else intent_of_token(token)
        else:
            intent_id = None if key is None else intent_of_key(caller.client_id, key)
        if intent_id is None:
            return {}
        try:
            found = await self.find(caller, intent_id, now)
        except SystemUnavailable as error:
            raise Problem("upstream_unavailable", retry_after=2) from error
        if found is not None and found.state == "executing":
            raise Problem("confirmation_incomplete")
        return (found and found.result) or {}

    async def answer(self, caller: Caller, token: str, *, agreed: bool, now: datetime, request_id: str) -> None:
        """Stores what the host's user answered to a challenge. A no withdraws it."""
        sql = "SELECT answer_challenge($1, $2, $3, $4, $5, $6)"
        given = (caller.practice_id, intent_of_token(token), caller.client_id, agreed, now, request_id)
        try:
            await self.database.write(sql, *given)
        except DatabaseUnavailable as error:
            raise Problem("upstream_unavailable", retry_after=2) from error

    async def is_agreed(self, caller: Caller, token: str) -> bool | None:
        """Whether the host's user has agreed to a challenge; None if it was withdrawn."""
        sql = "SELECT is_agreed($1, $2, $3)"
        given = (caller.practice_id, intent_of_token(token), caller.client_id)
        try:
            agreed: bool | None = await self.database.fetchval(sql, *given)
        except DatabaseUnavailable:
            return False  # not known yet
        return agreed


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
