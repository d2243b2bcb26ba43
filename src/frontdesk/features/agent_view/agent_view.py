"""Access tokens for the agent's view: admins make calls as one of the practice's clients.

The access is audited under the request id of the client's own records. Writes are executed in sandbox practices only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from frontdesk.access.clients.records import ClientRecord
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.access.clients.tokens import Tokens
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPOINTMENT_FORM, PATIENT_FORM
from frontdesk.engine.execute import Engine
from frontdesk.features.agent_view.actions import TRY_OUT
from frontdesk.operations import Operation

_TOKEN_SECONDS = 60
_SUBJECT = re.compile(rf"\b(?:{PATIENT_FORM}|{APPOINTMENT_FORM})\b")


@dataclass(frozen=True, slots=True)
class AgentView:
    engine: Engine
    tokens: Tokens
    public_url: str  # of the doors

    async def is_sandbox(self, context: ActionContext) -> bool:
        system = await self.engine.systems(context.staff.caller())
        return (await system.directory()).practice.sandbox

    async def admit(
        self, context: ActionContext, client: ClientRecord, operation: Operation, arguments: Mapping[str, object]
    ) -> str:
        """Audits the access and returns a short-lived access token of the client for one step."""
        context.require("admin")
        if client.practice_slug != context.staff.practice_slug:
            raise Problem("not_found", "There is no such client.")
        if commits(client, operation, arguments) and not await self.is_sandbox(context):
            raise Problem("conflict", "This page executes writes in sandbox practices only.")
        subjects = [client.client_id, *_SUBJECT.findall(orjson.dumps(dict(arguments)).decode())]
        await context.record(TRY_OUT.name, *dict.fromkeys(subjects))
        proven = AuthenticatedClient(
            client.client_id, client.practice_slug, client.grant, client.scopes, client.tokens_not_before
        )
        return self.tokens.issue(proven, client.scopes, lifetime=_TOKEN_SECONDS).text


def commits(client: ClientRecord, operation: Operation, arguments: Mapping[str, object]) -> bool:
    """Whether this call executes a write: any write of an integration, a confirmed one of an agent."""
    confirming = any(name.lower() == "confirmationtoken" for name in arguments)
    return operation.kind == "write" and (confirming or client.grant == "integration")
