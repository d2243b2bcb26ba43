"""Identifiers that clients give to appointments and patients. A client sees its own only."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from asyncpg import Record

from frontdesk.access.clients.caller import Caller
from frontdesk.access.outages import outage_as_problem
from frontdesk.domain.errors import Problem
from frontdesk.domain.text import character_error
from frontdesk.engine.intents import intent_of_key
from frontdesk.store.database import Database

MAX_LENGTH = 255  # of a system or a value
_MAY_BE_EXECUTED = ("internal", "confirmation_incomplete")  # the other problems refuse a write


class Identifier(NamedTuple):
    system: str
    value: str

    @property
    def can_be_stored(self) -> bool:
        return all(len(text) <= MAX_LENGTH and not character_error(text) for text in self)


class ExternalIdentifiers:
    """`kind` separates identifiers of appointments from those of patients."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def noted(
        self, caller: Caller, kind: str, identifiers: Sequence[Identifier], key: str | None, subject: str | None
    ) -> AsyncIterator[None]:
        """Notes identifiers for the write with this Idempotency-Key: they count from the moment that it commits.

        Those of a write that is refused are forgotten. Where its outcome is unknown, or they cannot be removed now,
        housekeeping removes them.
        """
        if not identifiers or key is None or caller.grant == "agent":
            yield
            return
        systems, values = [each.system for each in identifiers], [each.value for each in identifiers]
        given = (caller.practice_id, caller.client_id, kind, systems, values, intent_of_key(caller.client_id, key))
        [noted] = await self._run("SELECT reserve_identifiers($1, $2, $3, $4, $5, $6, $7) AS at", *given, subject)
        try:
            yield
        except Problem as problem:
            if problem.code not in _MAY_BE_EXECUTED:
                with suppress(Problem):
                    await self._run("SELECT release_identifiers($1, $2, $3, $4, $5, $6, $7)", *given, noted["at"])
            raise

    async def settle(
        self, caller: Caller, kind: str, identifiers: Sequence[Identifier], subject: str, *, replaces: bool = False
    ) -> None:
        """Gives the identifiers to a record whose write was executed, in place of former ones if it `replaces`."""
        systems, values = [each.system for each in identifiers], [each.value for each in identifiers]
        given = (caller.practice_id, caller.client_id, kind, systems, values, subject)
        if identifiers:
            await self._run("SELECT assign_identifiers($1, $2, $3, $4, $5, $6)", *given)
        if replaces:
            await self._run("SELECT remove_other_identifiers($1, $2, $3, $4, $5, $6)", *given)

    async def find(self, caller: Caller, kind: str, identifier: Identifier) -> str | None:
        """The id of the record that has the identifier."""
        if not identifier.can_be_stored:
            return None
        sql = "SELECT * FROM identified_subject($1, $2, $3, $4, $5)"
        found = await self._run(sql, caller.practice_id, caller.client_id, kind, *identifier)
        return None if not found else found[0]["subject"]

    async def of(self, caller: Caller, subjects: Sequence[str]) -> dict[str, list[Identifier]]:
        sql = "SELECT * FROM identifiers_of($1, $2, $3)"
        identifiers: dict[str, list[Identifier]] = {}
        for row in await self._run(sql, caller.practice_id, caller.client_id, subjects) if subjects else ():
            identifiers.setdefault(row["subject"], []).append(Identifier(row["system"], row["value"]))
        return identifiers

    async def _run(self, sql: str, *values: object) -> list[Record]:
        """All of them may be repeated."""
        with outage_as_problem():
            return await self._database.fetch(sql, *values)
