"""The path of a call: token, practice, scope, arguments, then the operation."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Protocol

import orjson

from frontdesk import tracing
from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.exceeded import LimitExceeded
from frontdesk.access.limits.patient_budget import record_read
from frontdesk.audit.trail import AuditTrail
from frontdesk.domain.consent import Consent
from frontdesk.domain.cursors import Cursors
from frontdesk.domain.errors import UNREADABLE, Problem, unreadable
from frontdesk.domain.local_time import local_date, minute_of
from frontdesk.domain.slot_ids import SlotIds
from frontdesk.engine.answer_cache import Answer, AnswerCache, CacheKey, is_fresh
from frontdesk.engine.arguments import Arguments, read_arguments
from frontdesk.engine.confirmation import Write, Writes, audit_entry, run_operation
from frontdesk.engine.fair_limiter import FairLimiter
from frontdesk.engine.intents import key_errors
from frontdesk.engine.patient_guard import PatientGuard
from frontdesk.feature import Services
from frontdesk.operations import Context, Operation, SlotJson, supported
from frontdesk.operations._fields import Input, WriteInput
from frontdesk.store.calendar_versions import CurrentVersions, PracticeVersions
from frontdesk.store.database import DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import SchedulingSystem, SystemUnavailable

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Call:
    """One call of an operation as a door received it.

    `caller` is known once the token has been checked, or from the start where a door has identified the caller itself.
    """

    operation: Operation
    token: str | None
    arguments: Callable[[], Arguments]
    request_id: str
    idempotency_key: str | None = None
    simulate: str | None = None  # the error code to simulate, at a sandbox practice
    caller: Caller | None = None
    cache_key: CacheKey | None = None  # None: neither answered from the answer cache nor stored in it
    host: Collection[Consent] = ()  # ways, in addition to the token, in which the caller's host can ask a person
    agreed: str | None = None  # the token of the challenge that the host's user has agreed to
    resource: str = ""  # the path of the door, which tokens may be meant for
    unchanged_since: datetime | None = None  # when its appointment was last changed, as the caller saw it


class Systems(Protocol):
    def __call__(self, caller: Caller, current: PracticeVersions | None = None, /) -> Awaitable[SchedulingSystem]:
        """The system of the caller's practice, for one call; `current` are the versions that the call has read."""


@dataclass(frozen=True, slots=True)
class Engine:
    authenticator: Authenticator
    systems: Systems
    slot_ids: Callable[[int], SlotIds]
    cursors: Callable[[int], Cursors]
    audit: AuditTrail
    writes: Writes
    answers: AnswerCache
    current_versions: CurrentVersions
    limiter: FairLimiter
    search_limiter: FairLimiter  # searches need the processor, other calls wait for the database
    patient_guard: PatientGuard
    slot_json: SlotJson
    services: Services  # of the features
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    refusals: Counter[str] = field(default_factory=Counter)  # by the limit on patients that was exceeded

    async def execute(self, call: Call) -> Answer:
        """The operation's answer. Raises Problem, whatever went wrong."""
        with tracing.tracer.operation(call.operation.name):
            try:
                return await self.answer(call)
            except Problem as problem:
                if isinstance(problem, LimitExceeded):
                    self.refusals[problem.limit] += 1
                raise
            except SystemUnavailable as error:
                _log.warning("the scheduling system is unavailable", extra={"requestId": call.request_id})
                raise Problem("upstream_unavailable", error.detail, retry_after=error.retry_after) from error
            except DatabaseUnavailable as error:
                _log.warning("the database is unavailable", extra={"requestId": call.request_id})
                raise Problem("upstream_unavailable", retry_after=2) from error
            except OutcomeUnknown as error:
                _log.error("the connection broke during a write", exc_info=error, extra={"requestId": call.request_id})
                raise Problem("internal") from error
            except Exception as error:
                _log.exception("unexpected error", extra={"requestId": call.request_id})
                raise Problem("internal") from error

    async def answer(self, call: Call) -> Answer:
        operation = call.operation
        caller = call.caller or await self._identify(call)
        _require_scope(operation, caller)
        key = call.cache_key if operation.depends_on is not None else None
        current: PracticeVersions | None = None
        if key is not None:
            cached, current = await self._cached(operation, caller, key)
            if cached is not None:
                return cached
            self.answers.misses[operation.name] += 1
        system = await self.systems(caller, current)
        if operation.needs is not None and operation.needs not in system.capabilities:
            raise Problem("capability_not_supported")
        limiter = self.limiter if operation.depends_on is None else self.search_limiter
        # A remote system has limits of its own, and its calls wait for a server most of the time.
        turn = None if system.remote else await limiter.acquire(caller)
        try:
            if turn is not None and turn.has_waited and key is not None:
                # Another caller may have worked the same answer out meanwhile.
                cached, _ = await self._cached(operation, caller, key)
                if cached is not None:
                    return cached
            return await self._work(call, caller, system, key)
        finally:
            if turn is not None:
                limiter.release(caller, turn)

    async def _cached(
        self, operation: Operation, caller: Caller, key: CacheKey
    ) -> tuple[Answer | None, PracticeVersions | None]:
        """The cached answer if it is fresh, and the practice's versions if they had to be read."""
        entry = self.answers.lookup(caller, key)
        if entry is None:
            return None, None
        self.search_limiter.mark_active(caller)
        current = None
        if entry.versions.calendars is not None:
            current = await self.current_versions.read(caller.practice_id)
            if not is_fresh(entry, current):
                return None, current
        self.answers.hits[operation.name] += 1
        return entry.answer, current

    async def _work(self, call: Call, caller: Caller, system: SchedulingSystem, key: CacheKey | None) -> Answer:
        """Runs the operation, and caches its answer under the key."""
        operation = call.operation
        now, subjects = self.clock(), list[str]()
        stamp = self.answers.stamp(now.timestamp())
        guarded = operation.kind == "write" or operation.reads_phi
        context = Context(
            caller=caller,
            system=self.patient_guard.guard(system, caller, now, subjects) if guarded else system,
            now=now,
            slot_ids=self.slot_ids(caller.practice_id),
            slot_json=self.slot_json,
            cursors=self.cursors(caller.practice_id),
            supports=supported(system.capabilities),
            services=self.services,
            subjects=subjects,
        )
        today = await _today(system, now) if operation.input.needs_today else None
        given = _read(call, caller, today)
        if operation.kind == "write":
            assert isinstance(given, WriteInput)
            write = Write(
                operation,
                context,
                given,
                call.request_id,
                call.idempotency_key,
                unchanged_since=call.unchanged_since,
            )
            if caller.trusted_to_ask:  # else nothing that the host reports of a person counts
                write = replace(write, host=call.host, agreed=call.agreed)
            body = await self.writes.execute(write)
        else:
            body = await self._run_read(call, context, given)
        answer = Answer(operation.success, orjson.dumps(body))
        if key is not None and system.calendar.versions is not None:
            self.answers.store(caller, operation, key, answer, system.calendar.versions, stamp)
        return answer

    async def admit(self, call: Call) -> Caller:
        """Checks token, practice and scope, and returns the caller."""
        caller = call.caller or await self._identify(call)
        _require_scope(call.operation, caller)
        return caller

    async def _identify(self, call: Call) -> Caller:
        call.caller = await self.authenticator.identify(call.token, call.resource)
        return call.caller

    async def _run_read(self, call: Call, context: Context, given: Input) -> Mapping[str, object]:
        """Records a read of protected data and counts its patients before it is answered, also when nothing was found.

        Over budget, nothing is answered.
        """
        body: Mapping[str, object]
        if not call.operation.reads_phi:
            body = await run_operation(call.operation, context, given)
            return body
        outcome = "internal"
        try:
            body = await run_operation(call.operation, context, given)
            outcome = "executed"
        except Problem as problem:
            outcome = problem.code
            raise
        except SystemUnavailable:
            outcome = "upstream_unavailable"
            raise
        finally:
            if outcome != "validation":
                entry = audit_entry(call.operation, context, outcome, call.request_id)
                await record_read(self.audit, entry, context.caller.limits)
        return body


def _require_scope(operation: Operation, caller: Caller) -> None:
    if operation.scope is not None and operation.scope not in caller.scopes:
        raise Problem("forbidden_scope", f"This operation needs the scope {operation.scope}.")


def _read(call: Call, caller: Caller, today: date | None) -> Input:
    try:
        arguments = call.arguments()
        if call.operation.kind == "write" and caller.grant != "agent":
            arguments.errors += key_errors(call.idempotency_key)
        return read_arguments(call.operation, arguments, today)
    except UNREADABLE as error:
        _log.exception("unexpected error", extra={"requestId": call.request_id})
        raise unreadable() from error


async def _today(system: SchedulingSystem, now: datetime) -> date:
    """Today's date at the practice."""
    practice = (await system.directory()).practice
    return local_date(minute_of(now), practice.time_zone)
