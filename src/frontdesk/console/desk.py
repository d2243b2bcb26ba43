"""What the console can do: the operations, on behalf of a person, and what goes beyond them."""

import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from frontdesk.console.actions.appointments import DeskAppointments
from frontdesk.console.actions.audit_trail import AuditDesk
from frontdesk.console.actions.blocks import DeskBlocks
from frontdesk.console.actions.checklist import Checklist
from frontdesk.console.actions.clients import Clients
from frontdesk.console.actions.confirmations import Confirmations
from frontdesk.console.actions.health import SystemHealth
from frontdesk.console.actions.patients import DeskPatients
from frontdesk.console.actions.practice_files import PracticeFiles
from frontdesk.console.actions.staff import Colleagues
from frontdesk.console.actions.staff_member import Person
from frontdesk.console.actions.usage import Usage
from frontdesk.console.actions.webhooks import Webhooks
from frontdesk.console.agent_view.tokens import AgentView
from frontdesk.console.calendar.reading import DeskCalendar
from frontdesk.console.live_updates import LiveCalendars
from frontdesk.domain.errors import Problem
from frontdesk.engine.arguments import from_tool
from frontdesk.engine.execute import Call, Engine
from frontdesk.operations import OPERATIONS
from frontdesk.store.database import DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import SystemUnavailable

_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_MAY_BE_SAVED = "The connection to the database was lost. Check whether the change was saved before you try again."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Desk:
    """One attribute for each part of what people do."""

    engine: Engine
    calendar: DeskCalendar
    appointments: DeskAppointments
    patients: DeskPatients
    blocks: DeskBlocks
    live: LiveCalendars
    agent_view: AgentView
    clients: Clients
    usage: Usage
    confirmations: Confirmations
    audit: AuditDesk
    practice_file: PracticeFiles
    checklist: Checklist
    health: SystemHealth
    webhooks: Webhooks
    colleagues: Colleagues

    async def run(
        self, person: Person, name: str, arguments: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Mapping[str, Any]:
        """The body of an operation's answer, or its Problem. A write with the same key executes once."""
        operation = _BY_NAME[name]
        call = Call(
            operation,
            None,
            lambda: from_tool(operation, arguments),
            secrets.token_hex(16),
            idempotency_key=idempotency_key,
            caller=person.caller(),
        )
        return (await self.engine.execute(call)).body


async def reached(work: Awaitable[T]) -> T:
    """Awaits `work`; failures of the database or the scheduling system become a Problem."""
    try:
        return await work
    except (DatabaseUnavailable, SystemUnavailable) as error:
        raise Problem("upstream_unavailable", retry_after=2) from error
    except OutcomeUnknown as error:
        raise Problem("upstream_unavailable", _MAY_BE_SAVED) from error
