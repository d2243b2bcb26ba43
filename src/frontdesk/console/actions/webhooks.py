"""Webhook endpoints of a practice, and what could not be delivered to them.

Endpoints are added on the command line, because adding one decides where ids of patients are sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.console.actions.context import ActionContext
from frontdesk.domain.errors import Problem
from frontdesk.outbound.webhooks.deliveries import Delivery, list_deliveries, replay
from frontdesk.outbound.webhooks.endpoints import (
    Endpoint,
    WebhookError,
    list_endpoints,
    pause_endpoint,
    practice_of,
    resume_endpoint,
    show_endpoint,
)
from frontdesk.store.database import Database

_DEAD_SHOWN = 20


@dataclass(frozen=True, slots=True)
class EndpointView:
    endpoint: Endpoint
    dead: Sequence[Delivery]  # newest first


@dataclass(frozen=True, slots=True)
class Webhooks:
    database: Database

    async def all(self, context: ActionContext) -> list[EndpointView]:
        context.require("admin")
        found = []
        for endpoint in await list_endpoints(self.database, context.practice_id):
            dead = await list_deliveries(self.database, endpoint.endpoint_id, "dead", _DEAD_SHOWN)
            found.append(EndpointView(endpoint, dead))
        return found

    async def replay_dead(self, context: ActionContext, endpoint_id: str) -> None:
        """Sends every dead letter of an endpoint again."""
        await self._own(context, endpoint_id)
        also = context.audit.recorded("console.replay_webhook")
        await replay(self.database, endpoint_id, None, context.now, also=also)
        context.seal_soon()

    async def set_paused(self, context: ActionContext, endpoint_id: str, *, paused: bool) -> None:
        await self._own(context, endpoint_id)
        change, operation = (
            (pause_endpoint, "console.pause_webhook") if paused else (resume_endpoint, "console.resume_webhook")
        )
        await change(self.database, endpoint_id, context.now, also=context.audit.recorded(operation))
        context.seal_soon()

    async def _own(self, context: ActionContext, endpoint_id: str) -> Endpoint:
        context.require("admin")
        try:
            if practice_of(endpoint_id) == context.practice_id:
                return await show_endpoint(self.database, endpoint_id)
        except WebhookError:
            pass
        raise Problem("not_found", "There is no such webhook endpoint.")
