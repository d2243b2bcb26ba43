"""The proposals of agents that staff have to approve, and their decisions.

The proposal is a stored challenge. Deciding locks its row, as executing it does: it is decided once, and executed only
after that. Its id is the hash of the confirmation token, which only the agent has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.desk.actors import actors_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.errors import Problem
from frontdesk.features.approvals.actions import APPROVE, LOOK, REFUSE
from frontdesk.outbound.webhooks.events import add_event
from frontdesk.store.database import Database
from frontdesk.texts import N_

MAX_SHOWN = 200
_NOT_PENDING = N_(
    "This change no longer waits for approval: it was decided or withdrawn, or it has expired. Nothing was changed."
)
_PENDING = "practice_id = $1 AND approval = 'pending' AND state = 'challenged' AND expires_at > $2"
_LIST = f"""
SELECT intent_id, client_id, operation, proposal, created_at, expires_at FROM intent WHERE {_PENDING}
ORDER BY created_at, intent_id LIMIT $3
"""  # noqa: S608 - a condition of ours
_COUNT = f"SELECT count(*) FROM intent WHERE {_PENDING}"  # noqa: S608
_LOCK = f"SELECT client_id, proposal FROM intent WHERE {_PENDING} AND intent_id = $3 FOR UPDATE"  # noqa: S608
_DECIDE = """
UPDATE intent SET approval = $3, decided_by = $4, proposal = NULL WHERE practice_id = $1 AND intent_id = $2
"""


@dataclass(frozen=True, slots=True)
class PendingApproval:
    approval_id: str
    actor: Actor
    operation: str
    read_back: Mapping[str, object]
    proposed_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Approvals:
    database: Database
    on_change: Callable[[int], None]

    async def pending(self, context: ActionContext) -> Sequence[PendingApproval]:
        """The oldest first, at most `MAX_SHOWN`."""
        context.require("staff")
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_LIST, context.practice_id, context.now, MAX_SHOWN)
        named = await actors_of(self.database, context.practice_id, (row["client_id"] for row in rows))
        found = [
            PendingApproval(
                approval_id=row["intent_id"].hex(),
                actor=named[row["client_id"]],
                operation=row["operation"],
                read_back=orjson.loads(row["proposal"])["readBack"],
                proposed_at=row["created_at"],
                expires_at=row["expires_at"],
            )
            for row in rows
        ]
        if found:
            subjects = dict.fromkeys(each for proposal in found for each in _subjects(proposal.read_back))
            await context.record(LOOK.name, *subjects, read=True)
        return found

    async def count(self, context: ActionContext) -> int:
        context.require("staff")
        async with self.database.transaction(context.practice_id) as connection:
            count: int = await connection.fetchval(_COUNT, context.practice_id, context.now)
        return count

    async def decide(self, context: ActionContext, approval_id: str, *, approved: bool) -> None:
        """Approves a pending change, or refuses it. The agent executes an approved one, by sending its token again."""
        context.require("staff")
        try:
            intent_id = bytes.fromhex(approval_id)
        except ValueError:
            raise Problem("conflict", _NOT_PENDING) from None
        practice_id, outcome = context.practice_id, "approved" if approved else "refused"
        async with self.database.transaction(practice_id) as connection:
            await context.require_in(connection, "staff")
            held = await connection.fetchrow(_LOCK, practice_id, context.now, intent_id)
            if held is None:
                raise Problem("conflict", _NOT_PENDING)
            proposal = orjson.loads(held["proposal"])
            await connection.execute(_DECIDE, practice_id, intent_id, outcome, context.staff.staff_id)
            subject = {"approvalId": approval_id, "clientId": held["client_id"], "requestId": proposal["requestId"]}
            await add_event(connection, practice_id, f"approval.{outcome}", subject, context.now)
            action = APPROVE if approved else REFUSE
            await context.record_in(connection, action.name, held["client_id"], *_subjects(proposal["readBack"]))
        context.seal_soon()
        self.on_change(practice_id)


def _subjects(read_back: Mapping[str, object]) -> list[str]:
    return [str(read_back[name]) for name in ("appointmentId", "patientId") if name in read_back]
