"""Who is told about a practice's events, and what could not be delivered.

Endpoints are added and their secrets made at the command line: whoever adds one decides where patients' ids go.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.audit.trail import AuditTrail
from frontdesk.console.actions.recording import record_alone
from frontdesk.console.actions.staff_member import Person, require
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
class Told:
    endpoint: Endpoint
    dead: Sequence[Delivery]  # the newest


@dataclass(frozen=True, slots=True)
class Webhooks:
    database: Database
    audit: AuditTrail
    clock: Callable[[], datetime]

    async def all(self, person: Person) -> list[Told]:
        require(person, "admin")
        found = []
        for endpoint in await list_endpoints(self.database, person.practice_id):
            dead = await list_deliveries(self.database, endpoint.endpoint_id, "dead", _DEAD_SHOWN)
            found.append(Told(endpoint, dead))
        return found

    async def replay_dead(self, person: Person, endpoint_id: str) -> None:
        """Sends every dead letter of an endpoint once more."""
        await self._own(person, endpoint_id)
        await replay(self.database, endpoint_id, None, self.clock())
        await record_alone(self.audit, person, self.clock(), "console.replay_webhook", endpoint_id)

    async def set_paused(self, person: Person, endpoint_id: str, *, paused: bool) -> None:
        await self._own(person, endpoint_id)
        change, operation = (
            (pause_endpoint, "console.pause_webhook") if paused else (resume_endpoint, "console.resume_webhook")
        )
        await change(self.database, endpoint_id, self.clock())
        await record_alone(self.audit, person, self.clock(), operation, endpoint_id)

    async def _own(self, person: Person, endpoint_id: str) -> Endpoint:
        require(person, "admin")
        try:
            if practice_of(endpoint_id) == person.practice_id:
                return await show_endpoint(self.database, endpoint_id)
        except WebhookError:
            pass
        raise Problem("not_found", "There is no such webhook endpoint.")
