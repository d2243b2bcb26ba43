"""Simulates errors on request at sandbox practices, with the side effects of the real ones."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal, NoReturn

from frontdesk.domain.errors import BY_GATEWAY, CATALOGUE, FieldError, Problem, declined, invalid
from frontdesk.engine.answer_cache import Answer
from frontdesk.engine.confirmation import Write, Writes
from frontdesk.engine.consent import Challenge, new_token
from frontdesk.engine.execute import Call, Engine
from frontdesk.operations import Context, Operation
from frontdesk.systems.port import SystemUnavailable

HEADER = "Frontdesk-Simulate"
META_KEY = "frontdesk-simulate"
RETRY_SECONDS = 1  # short, so that tests of retries are quick

# When each code is answered. docs/users/sandbox.md also says what has happened by then.
SCENARIOS: Mapping[str, Literal["before reading", "instead of executing", "after executing"]] = {
    "unauthorized": "before reading",
    "forbidden_scope": "before reading",
    "forbidden_tenant": "before reading",
    "consent_required": "instead of executing",
    "quota_exceeded": "before reading",
    "not_found": "instead of executing",
    "conflict": "instead of executing",
    "confirmation_mismatch": "instead of executing",
    "confirmation_incomplete": "after executing",
    "slot_unavailable": "instead of executing",
    "validation": "instead of executing",
    "confirmation_required": "instead of executing",
    "rate_limited": "before reading",
    "internal": "after executing",
    "upstream_unavailable": "instead of executing",
    "capability_not_supported": "before reading",
    "method_not_allowed": "before reading",
    "not_acceptable": "before reading",
    "payload_too_large": "before reading",
    "unsupported_media_type": "before reading",
}


def engine_for(call: Call, engine: Engine) -> Engine:
    """The engine, or one that simulates the error that the call asks for."""
    if call.simulate is None:
        return engine
    writes = SimulatingWrites(**_fields_of(engine.writes), code=call.simulate)
    return SimulatingEngine(**_fields_of(engine) | {"writes": writes})


def _fields_of(record: Engine | Writes) -> dict[str, Any]:  # arguments of its class
    return {each.name: getattr(record, each.name) for each in fields(record)}


class SimulatingEngine(Engine):
    async def answer(self, call: Call) -> Answer:
        system, code = await self.systems(await self.admit(call)), call.simulate or ""
        if not (await system.directory()).practice.sandbox:
            raise _refusal(f"{HEADER} is available only for sandbox practices")
        if code not in SCENARIOS:
            raise _refusal(f"{HEADER} must be a code of the error catalogue")
        if SCENARIOS[code] == "before reading":
            raise _simulated(code)
        return await super().answer(replace(call, operation=_simulated_operation(call), cache_key=None))


@dataclass(frozen=True, kw_only=True)
class SimulatingWrites(Writes):
    code: str

    async def execute(self, write: Write) -> Mapping[str, object]:
        if self.code == "confirmation_required":
            stored = await self.stored_result(write, write.intent)
            if stored:
                return stored
            challenge = await self.challenge(write)
            challenge.text = _detail(self.code)
            raise challenge
        body = await super().execute(write)
        if SCENARIOS[self.code] == "after executing":
            raise _simulated(self.code)
        return body  # the stored result of a write that was executed before


def _simulated_operation(call: Call) -> Operation:
    """The operation, with a `run` that raises the simulated problem if the code is answered there."""
    code, operation = call.simulate or "", call.operation
    executes = SCENARIOS[code] == "after executing" or code == "confirmation_required"
    if operation.kind == "write" and executes:
        return operation

    async def refuse(context: Context, _given: object) -> NoReturn:
        raise _simulated_refusal(code, context)

    return replace(operation, run=refuse, checked_at_commit=False)


def _simulated_refusal(code: str, context: Context) -> Exception:
    match code:
        case "validation":
            return declined("Simulated: the scheduling system declined this request.")
        case "upstream_unavailable":
            unavailable = SystemUnavailable(RETRY_SECONDS)
            unavailable.detail = _detail(code)
            return unavailable
        case "confirmation_required":  # of a read: no intent is stored, and the token confirms nothing
            expires_at = context.now.replace(microsecond=0) + timedelta(seconds=RETRY_SECONDS)
            challenge = Challenge("token", new_token("token"), expires_at, {})
            title = CATALOGUE[code].title
            detail = f"Simulated: {title}. A read takes no confirmationToken: this one confirms nothing."
            return Problem(code, detail, extra=challenge.extra)  # no proposal, which MCP tells to call again with it
    return _simulated(code)


class SimulatedByGateway(Problem):
    """Looks like an error of the gateway, although the engine raised it."""


def _simulated(code: str) -> Problem:
    retry_after = RETRY_SECONDS if code == "rate_limited" else None
    kind = SimulatedByGateway if code in BY_GATEWAY else Problem
    return kind(code, _detail(code), retry_after=retry_after)


def _detail(code: str) -> str:
    return f"Simulated: {CATALOGUE[code].meaning}"


def _refusal(message: str) -> Problem:
    return invalid([FieldError(HEADER, "unknown", message)])
