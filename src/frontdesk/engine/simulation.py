"""Errors on request, for sandbox practices: every code of the catalogue, with the side effects it really has.

`Frontdesk-Simulate` names the code. It is looked at after token, practice and scope, and refused outside sandboxes.
A code is answered before the request is read, in place of the operation's judgement, or after a write has executed;
the table of scenarios says which, and what is left behind. `docs/users/sandbox.md` shows the same table.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, NoReturn

from frontdesk.domain.errors import CATALOGUE, FieldError, Problem, declined, invalid
from frontdesk.domain.local_time import iso_utc
from frontdesk.engine.confirmation import Writes, stored_id
from frontdesk.operations import Context, Operation
from frontdesk.operations._fields import WriteInput
from frontdesk.systems.port import SchedulingSystem, SystemUnavailable

HEADER = "Frontdesk-Simulate"
META_KEY = "frontdesk-simulate"
RETRY_SECONDS = 1  # short, so that a test of a client's patience is quick


@dataclass(frozen=True, slots=True)
class Scenario:
    """When the code is answered, and what is then true."""

    moment: Literal["before reading", "judging", "after executing"]
    effect: str


_JUDGED = "Nothing is executed; a confirmation token stays valid."
_GATEWAY = "As the gateway says it: no `requestId`, no `X-SVC-TRACE-ID`, a `RateLimit` header with nothing left"

SCENARIOS: Mapping[str, Scenario] = {
    "unauthorized": Scenario("before reading", "With `WWW-Authenticate`. The access token itself stays good."),
    "forbidden_scope": Scenario("before reading", "The token keeps its scopes."),
    "forbidden_tenant": Scenario("before reading", "The practice is not suspended."),
    "quota_exceeded": Scenario("before reading", f"{_GATEWAY} of the quota."),
    "not_found": Scenario("judging", _JUDGED),
    "conflict": Scenario("judging", _JUDGED),
    "confirmation_mismatch": Scenario("judging", _JUDGED),
    "confirmation_incomplete": Scenario(
        "after executing",
        "A write is executed and its outcome is not recorded: reads show it, and an identical resend gets the same "
        "answer for as long as it carries the header. Without the header the outcome becomes known, and the resend "
        "answers with it.",
    ),
    "slot_unavailable": Scenario("judging", f"{_JUDGED} The slot stays open."),
    "validation": Scenario("judging", f"422, rule `declined`: the scheduling system said no. {_JUDGED}"),
    "confirmation_required": Scenario(
        "judging", "A write is challenged whatever it carries, also one of an integration: a new token, which works."
    ),
    "rate_limited": Scenario("before reading", f"{_GATEWAY} of the minute, and `Retry-After`."),
    "internal": Scenario(
        "after executing",
        "A write is executed, and the answer is 500 all the same; an identical resend without the header answers "
        "with the stored result, if it carries a token or key.",
    ),
    "upstream_unavailable": Scenario("judging", f"With `Retry-After`. {_JUDGED}"),
    "capability_not_supported": Scenario("before reading", "Without `Retry-After`."),
    "method_not_allowed": Scenario("before reading", "With `Allow`."),
    "not_acceptable": Scenario("before reading", "The request is not read."),
    "payload_too_large": Scenario("before reading", "The request is not read; the connection is closed."),
    "unsupported_media_type": Scenario("before reading", "The request is not read."),
}


async def arranged(code: str, operation: Operation, system: SchedulingSystem) -> Operation:
    """The operation as it behaves under this simulation. Problem for what is answered before reading."""
    if not (await system.directory()).practice.sandbox:
        raise _refusal(f"{HEADER} is known to sandbox practices only")
    scenario = SCENARIOS.get(code)
    if scenario is None:
        raise _refusal(f"{HEADER} must be a code of the error catalogue")
    if scenario.moment == "before reading":
        raise _before_reading(code, operation)
    if operation.kind == "write" and (scenario.moment == "after executing" or code == "confirmation_required"):
        return operation

    async def refuse(context: Context, _given: Any) -> NoReturn:
        raise _judgement(code, context)

    return replace(operation, run=refuse)


async def write(
    writes: Writes,
    code: str,
    operation: Operation,
    context: Context,
    given: WriteInput,
    request_id: str,
    key: str | None,
) -> Mapping[str, Any]:
    """A write under a simulation. One that is only proposed is challenged as ever: nothing has left yet."""
    if code == "confirmation_required":
        raise await writes.challenge(operation, context, given, request_id)
    body = await writes.execute(operation, context, given, request_id, key)
    if code == "confirmation_incomplete":
        await writes.database.write(
            "SELECT withhold_outcome($1, $2)", context.caller.practice_id, stored_id(context.caller, given, key)
        )
    if SCENARIOS[code].moment == "after executing":
        raise _simulated(code)
    return body  # the stored result of a write that had executed before


async def has_settled(writes: Writes, context: Context, given: WriteInput, key: str | None) -> bool:
    """Whether the unknown outcome of this write was only simulated; from now on it is known."""
    if not (await context.system.directory()).practice.sandbox:
        return False
    row = await writes.database.write(
        "SELECT record_outcome($1, $2) AS known",
        context.caller.practice_id,
        stored_id(context.caller, given, key),
    )
    return row is not None and row["known"]


def _before_reading(code: str, operation: Operation) -> Problem:
    match code:
        case "rate_limited":
            return _simulated(code, RETRY_SECONDS, {"RateLimit": f'"minute";r=0;t={RETRY_SECONDS}'})
        case "quota_exceeded":
            return _simulated(code, headers={"RateLimit": f'"quota";r=0;t={RETRY_SECONDS}'})
        case "method_not_allowed":
            return _simulated(code, headers={"Allow": operation.method})
    return _simulated(code)


def _judgement(code: str, context: Context) -> Exception:
    match code:
        case "validation":
            return declined("Simulated: the scheduling system declined this request.")
        case "upstream_unavailable":
            return SystemUnavailable(RETRY_SECONDS)
        case "confirmation_required":  # of a read: nothing was challenged, and the token is good for nothing
            extra = {
                "confirmationToken": secrets.token_hex(16),
                "expiresAt": iso_utc(context.now.replace(microsecond=0) + timedelta(seconds=RETRY_SECONDS)),
                "readBack": {},
            }
            return Problem(code, extra=extra)
    return _simulated(code)


def _simulated(code: str, retry_after: int | None = None, headers: Mapping[str, str] | None = None) -> Problem:
    return Problem(code, f"Simulated: {CATALOGUE[code].meaning}", retry_after=retry_after, headers=headers)


def _refusal(message: str) -> Problem:
    return invalid([FieldError(HEADER, "unknown", message)])
