"""Staff connect assistants that act for them, and disconnect them; admins see and disconnect all of the practice."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from frontdesk.access.assistants.applications import Application, Applications
from frontdesk.access.assistants.connections import (
    AssistantConnection,
    Consent,
    are_allowed,
    connect,
    disconnect,
    list_connections,
)
from frontdesk.access.assistants.requests import AuthorizationRequest
from frontdesk.access.assistants.trust import change_trust, trusted_hosts
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database


@dataclass(frozen=True, slots=True)
class Assistants:
    database: Database
    applications: Applications

    async def application(self, application_id: str) -> Application | None:
        """The application that asks; needs no session."""
        return await self.applications.find(application_id)

    async def are_allowed(self, context: ActionContext) -> bool:
        return await are_allowed(self.database, context.practice_id)

    async def connect(self, context: ActionContext, request: AuthorizationRequest, scopes: Collection[str]) -> str:
        """Agrees to what was asked for, as far as `scopes` and the role go. Returns an authorization code."""
        consent = Consent(
            staff_id=context.staff.staff_id,
            practice_id=context.practice_id,
            application=request.application,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            scopes=set(scopes) & set(request.scopes),
        )
        code = await connect(self.database, consent, context.audit, partial(context.require_in, role="staff"))
        context.seal_soon()
        return code

    async def all(self, context: ActionContext) -> list[AssistantConnection]:
        only_of = self._only_of(context)
        return await list_connections(self.database, context.practice_id, context.now, staff_id=only_of)

    async def one(self, context: ActionContext, client_id: str) -> AssistantConnection | None:
        """The connection of a client; None if the client is not an assistant."""
        only_of = self._only_of(context)
        found = await list_connections(
            self.database, context.practice_id, context.now, staff_id=only_of, client_id=client_id
        )
        return found[0] if found else None

    async def disconnect(self, context: ActionContext, client_id: str) -> None:
        only_of = self._only_of(context)
        if not await disconnect(self.database, context.practice_id, client_id, context.audit, only_of):
            raise Problem("not_found", "There is no such assistant.")
        context.seal_soon()

    async def trusted_hosts(self, context: ActionContext) -> list[str]:
        context.require("admin")
        return await trusted_hosts(self.database, context.practice_id)

    async def change_trust(self, context: ActionContext, host: str, *, trusted: bool) -> None:
        """Trusts a host's assistants to ask people, or ends it."""
        context.require("admin")
        await change_trust(self.database, context.practice_id, host, context.audit, trusted=trusted)
        context.seal_soon()

    def _only_of(self, context: ActionContext) -> str | None:
        return None if context.staff.may("admin") else context.staff.staff_id
