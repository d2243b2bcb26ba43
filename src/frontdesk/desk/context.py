"""The context of an action at the console: which staff member acts, when, and in which request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.access.clients.caller import Caller
from frontdesk.access.staff.members import Role as Role
from frontdesk.access.staff.sessions import StaffSession, session_for_update
from frontdesk.audit.trail import AuditContext, AuditTrail, append_audit
from frontdesk.domain.errors import Problem
from frontdesk.engine.arguments import from_tool
from frontdesk.engine.execute import Call
from frontdesk.operations import Operation
from frontdesk.store.connection import Connection
from frontdesk.texts import N_

_ADMINS_ONLY = N_("This requires the role admin.")


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Made once per request. Every audit record of the request carries this time and request id."""

    staff: StaffSession
    now: datetime
    request_id: str  # the trace id of the answer
    trail: AuditTrail

    @property
    def practice_id(self) -> int:
        return self.staff.practice_id

    @property
    def audit(self) -> AuditContext:
        return AuditContext(self.staff.staff_id, self.now, self.request_id)

    def require(self, role: Role) -> None:
        """Checks the role again: the guard has checked it for the page."""
        if not self.staff.may(role):
            raise Problem("forbidden_scope", _ADMINS_ONLY)

    async def require_in(self, connection: Connection, role: Role, others: Sequence[str] = ()) -> None:
        """Checks session and role once more, within the transaction of a change, and locks the staff member's row, so
        that nobody takes the role away before the commit. `others` are staff whose rows the change needs locked, too.
        """
        held = await session_for_update(connection, self.staff, *others)
        if role == "admin" and held["role"] != "admin":
            raise Problem("forbidden_scope", _ADMINS_ONLY)

    def call(self, operation: Operation, arguments: Mapping[str, object], idempotency_key: str | None) -> Call:
        """A call of an operation by this staff member, in this request."""
        return call_of(self.staff.caller(), operation, arguments, self.request_id, idempotency_key)

    async def record(self, operation: str, *subjects: str, read: bool = False) -> None:
        """Adds an audit record of its own, for an action that commits nothing else."""
        await self.trail.append(self.audit.entry(self.practice_id, operation, subjects), read=read)

    async def record_in(self, connection: Connection, operation: str, *subjects: str) -> None:
        """Adds an audit record to the transaction of the change; call `seal_soon` after the commit."""
        await append_audit(connection, self.audit.entry(self.practice_id, operation, subjects))

    def seal_soon(self) -> None:
        self.trail.seal_soon(self.practice_id)


def call_of(
    caller: Caller, operation: Operation, arguments: Mapping[str, object], request_id: str, idempotency_key: str | None
) -> Call:
    """A call of an operation by a caller whom the console has identified."""
    return Call(
        operation,
        None,
        lambda: from_tool(operation, arguments),
        request_id,
        idempotency_key=idempotency_key,
        caller=caller,
    )
