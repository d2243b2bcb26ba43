"""Seeing what an agent sees: a token of one of the practice's clients, for a person who wants to look through its eyes.

Everybody who looks is recorded before anything is sent, under the same request id as the client's own records. Refuses
to let a write execute outside sandbox practices: there a person may look at everything up to the challenge.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from frontdesk.access.clients.registry import AuthenticatedClient, ClientRecord, list_clients
from frontdesk.access.clients.tokens import Tokens
from frontdesk.audit.trail import AuditEntry
from frontdesk.console.actions.staff_member import Person, require
from frontdesk.domain.errors import Problem
from frontdesk.engine.execute import Engine
from frontdesk.operations import Operation
from frontdesk.store.database import Database

_TOKEN_SECONDS = 60
_SUBJECT = re.compile(r"\b(?:pat|apt)_[0-9A-Za-z]{22}\b")


@dataclass(frozen=True, slots=True)
class AgentView:
    database: Database
    engine: Engine
    tokens: Tokens
    public_url: str  # where callers from outside reach the two doors

    async def clients(self, person: Person) -> list[ClientRecord]:
        require(person, "admin")
        return await list_clients(self.database, practice=person.practice_slug)

    async def is_sandbox(self, person: Person) -> bool:
        system = await self.engine.systems(person.caller())
        return (await system.directory()).practice.sandbox

    async def admit(
        self, person: Person, client: ClientRecord, operation: Operation, arguments: Mapping[str, Any], request_id: str
    ) -> str:
        """A short-lived access token of the client for one step. The person has then been recorded."""
        require(person, "admin")
        if client.practice_slug != person.practice_slug:
            raise Problem("not_found", "There is no such client.")
        if commits(client, operation, arguments) and not await self.is_sandbox(person):
            raise Problem("conflict", "Writes are executed from this page in sandbox practices only.")
        subjects = [client.client_id, *_SUBJECT.findall(orjson.dumps(dict(arguments)).decode())]
        entry = AuditEntry(
            person.practice_id,
            self.engine.clock(),
            person.staff_id,
            "console.agent_view",
            "executed",
            list(dict.fromkeys(subjects)),
            request_id,
        )
        await self.engine.audit.append(entry, read=False)
        proven = AuthenticatedClient(client.client_id, client.practice_slug, client.grant, client.scopes)
        return self.tokens.issue(proven, client.scopes, lifetime=_TOKEN_SECONDS).text


def commits(client: ClientRecord, operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Whether this call may change something: any write of an integration, an agent's with a token."""
    confirming = any(name.lower() == "confirmationtoken" for name in arguments)
    return operation.kind == "write" and (confirming or client.grant == "integration")
