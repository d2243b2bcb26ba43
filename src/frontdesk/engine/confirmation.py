"""Executes writes exactly once, from the challenge of an agent's first call to the stored result.

An agent's write needs a second, identical call with the confirmation token. An integration's write commits at once; an
Idempotency-Key makes it safe to resend. Both are stored as an intent.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from frontdesk import tracing
from frontdesk.access.limits.patient_budget import check_spent
from frontdesk.access.limits.write_limits import MAX_PENDING_APPROVALS, check_write_limit, write_limits
from frontdesk.audit.reading import exact_time
from frontdesk.audit.trail import AuditEntry, AuditTrail
from frontdesk.domain.appointments import conflict_detail
from frontdesk.domain.consent import REPORTED_BY_HOST, Consent, consent_required, meets
from frontdesk.domain.errors import APPOINTMENT_CHANGED, PATIENT_EXISTS, PATIENT_OVERLAP, Problem, declined
from frontdesk.engine.consent import (
    APPROVAL_LIFETIME,
    Challenge,
    approval_required,
    choose_consent,
    consent_of,
    is_recognized,
    new_token,
)
from frontdesk.engine.intents import Intents, StoredIntent, intent_of_key, intent_of_token, mismatch
from frontdesk.operations import Context, Operation, Proposal
from frontdesk.operations._fields import Input, WriteInput
from frontdesk.operations._operation import Result
from frontdesk.systems.changes import Book
from frontdesk.systems.port import (
    KEEP_RESULTS,
    Capability,
    ChallengeRecord,
    Intent,
    Outcome,
    SystemUnavailable,
    WriteRecord,
)

_STALE_ATTEMPTS = 5

_REASONS = {
    "patient_overlap": PATIENT_OVERLAP,
    "patient_exists": PATIENT_EXISTS,
    "changed": APPOINTMENT_CHANGED,
}


@dataclass(frozen=True, slots=True)
class Write:
    """One call of a write."""

    operation: Operation
    context: Context
    given: WriteInput
    request_id: str
    key: str | None
    host: Collection[Consent] = ()  # ways, in addition to the token, in which the caller's host can ask a person
    agreed: str | None = None  # the token that the host's user has agreed to
    unchanged_since: datetime | None = None  # when the appointment was last changed, as the caller saw it

    @property
    def fingerprint(self) -> bytes:
        """The hash that a token is bound to: of the operation and all its fields, in one normal form."""
        request = [self.operation.name, self.given.given_fields()]
        return hashlib.sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()

    @property
    def intent_id(self) -> bytes | None:
        """The id under which its intent is stored, None for a write without one."""
        if self.by_agent:
            if self.agreed is not None:
                return intent_of_token(self.agreed)
            token = self.given.confirmation_token
            return None if token is None or not is_recognized(token, self.host) else intent_of_token(token)
        return None if self.key is None else intent_of_key(self.context.caller.client_id, self.key)

    @property
    def intent(self) -> Intent | None:
        intent_id = self.intent_id
        return None if intent_id is None else Intent(intent_id, self.fingerprint, is_key=not self.by_agent)

    @property
    def consent(self) -> Consent | None:
        """How the agreement to this call is given; None if the caller needs none."""
        if not self.by_agent:
            return self.context.caller.consent
        return "elicitation" if self.agreed is not None else consent_of(self.given.confirmation_token or "")

    @property
    def missing_consent(self) -> Consent | None:
        """The consent that the practice demands, if that of this call is weaker."""
        demanded = self.context.caller.demands.get(self.operation.name)
        return None if meets(self.consent, demanded) else demanded

    @property
    def by_agent(self) -> bool:
        return self.context.caller.grant == "agent"


@dataclass(frozen=True, slots=True)
class Writes:
    """Executes proposals. All state is in the database."""

    intents: Intents
    audit: AuditTrail
    token_lifetime: timedelta
    on_change: Callable[[int], None] = lambda _practice_id: None  # after a write or a challenge; must not block

    async def execute(self, write: Write) -> Mapping[str, object]:
        intent = write.intent
        if intent is None and write.by_agent:
            raise await self.challenge(write)
        found = approval = None
        if intent is not None and not self._commit_comes_first(write):
            found = await self._find(write, intent)
            if found is None and write.by_agent:
                raise await self.challenge(write)
            stored = None if found is None else found.replayed(intent)
            if stored:
                return stored
            approval = None if found is None else found.approval
        if write.missing_consent is not None and approval != "approved":
            problem = consent_required(write.missing_consent) if approval is None else approval_required(approval)
            raise await self._refused(write, problem)
        for _ in range(_STALE_ATTEMPTS):
            try:
                proposal: Proposal = await run_operation(write.operation, write.context, write.given)
            except Problem as problem:
                stored = await self.stored_result(write, intent)  # it may have succeeded before
                if stored:
                    return stored
                await self._refused(write, problem)
                raise
            if found is not None and approval == "approved" and not found.was_read_back(proposal.read_back):
                raise await self.challenge(write)  # it would change something else than what staff have seen
            outcome = await self._perform(write, proposal, intent)
            match outcome.kind:
                case "stale":
                    continue
                case "refused":
                    await self._refuse(write, proposal, outcome)
                case "unrecognized" | "expired":
                    raise await self.challenge(write)
                case "approval_pending" | "approval_refused":
                    raise await self._refused(write, approval_required(outcome.kind.removeprefix("approval_")))
                case "incomplete" if intent is not None:
                    # Another call executes the same write: return its result, or try again if it executed nothing.
                    stored = await self.stored_result(write, intent)
                    if stored:
                        return stored
                case "rate_limited" if outcome.result is not None:
                    _check_limit(write, outcome.result["limit"], outcome.result["seconds"])
                case _:
                    return _answer(outcome, intent, proposal)
        raise SystemUnavailable

    def _commit_comes_first(self, write: Write) -> bool:
        """Whether the statement that commits the write can be left to read the intent: nothing is read before it."""
        return write.operation.checked_at_commit and not write.context.system.remote and write.missing_consent is None

    async def challenge(self, write: Write) -> Challenge:
        """Issues a token for exactly this request, with what to read aloud. Executes nothing."""
        context = write.context
        asks = await self._choose_consent(write)
        token = new_token(asks)
        lifetime = APPROVAL_LIFETIME if asks in context.caller.approvals else self.token_lifetime
        expires_at = (context.now + lifetime).replace(microsecond=0)
        intent = Intent(intent_of_token(token), write.fingerprint, is_key=False)
        for _ in range(_STALE_ATTEMPTS):
            try:
                proposal: Proposal = await run_operation(write.operation, context, write.given)
            except Problem as problem:
                await self._refused(write, problem)
                raise
            # A person whom the host asks has only the read-back to notice the wrong patient, also of a booking.
            patient = proposal.read_back.get("patientId")
            named = patient if asks in REPORTED_BY_HOST else proposal.patient_id
            read_back = {**await _patient_name(context, named), **proposal.read_back}
            shown = {**await _patient_name(context, patient), **read_back} if asks in context.caller.approvals else None
            record = _challenge_record(write, intent, expires_at, proposal, read_back, shown)
            outcome = await context.system.changes.challenge(proposal.change, record)
            if outcome.result is not None:
                self.audit.seal_soon(context.caller.practice_id)
                self.on_change(context.caller.practice_id)
                _check_limit(write, outcome.result["exceeded"], outcome.result["seconds"])
                check_spent(outcome.result, context.caller.limits)
                return Challenge(asks, token, expires_at, read_back)
            await self._refuse(write, proposal, outcome)
        raise SystemUnavailable

    async def _choose_consent(self, write: Write) -> Consent:
        try:
            return choose_consent(write.operation, write.context.caller, write.host)
        except Problem as problem:
            await self._refused(write, problem)
            raise

    async def _refuse(self, write: Write, proposal: Proposal, outcome: Outcome) -> None:
        """Raises why the booking was refused; returns if that has to be looked for."""
        if outcome.seen is not None and proposal.refusal is not None:
            problem = proposal.refusal(outcome.seen)
            if problem is not None:
                raise await self._refused(write, problem)

    async def _refused(self, write: Write, problem: Problem) -> Problem:
        """The refusal, once it is in the audit trail."""
        entry = audit_entry(write.operation, write.context, problem.code, write.request_id)
        await self.audit.append(entry, read=False)
        return problem

    async def _perform(self, write: Write, proposal: Proposal, intent: Intent | None) -> Outcome:
        context, caller = write.context, write.context.caller
        record = WriteRecord(
            actor=caller.client_id,
            operation=write.operation.name,
            request_id=write.request_id,
            now=context.now,
            keep_until=context.now + KEEP_RESULTS,
            intent=intent,
            consent=write.consent,
            traceparent=tracing.tracer.headers().get("traceparent"),
            limits=write_limits(caller.limits),
            unchanged_since=write.unchanged_since,
        )
        try:
            outcome = await context.system.changes.perform(proposal.change, record)
        finally:
            self.audit.seal_soon(caller.practice_id)
        if outcome.kind == "executed":
            self.on_change(caller.practice_id)
        return outcome

    async def stored_result(self, write: Write, intent: Intent | None) -> Mapping[str, object] | None:
        """The result of the same write, None if it has not been executed yet."""
        if intent is None:
            return None
        found = await self._find(write, intent)
        if found is None and write.by_agent:
            await self._choose_consent(write)  # the token is worth nothing, and the call one without it
        return None if found is None else found.replayed(intent)

    async def _find(self, write: Write, intent: Intent) -> StoredIntent | None:
        """The stored intent. None also for a challenge that has expired."""
        now = write.context.now
        found = await self.intents.find(write.context.caller, intent.id, now)
        return None if found is None or (found.state == "challenged" and found.expires_at <= now) else found


def _check_limit(write: Write, reached: str | None, seconds: int) -> None:
    check_write_limit(reached, seconds, write.context.caller.limits, write.operation.name)


async def run_operation(operation: Operation[Input, Result], context: Context, given: Input) -> Result:
    """The only caller of `Operation.run`. A write may run several times."""
    context.subjects.clear()
    return await operation.run(context, given)


def _challenge_record(
    write: Write,
    intent: Intent,
    expires_at: datetime,
    proposal: Proposal,
    read_back: Mapping[str, object],
    shown: Mapping[str, object] | None,
) -> ChallengeRecord:
    """`shown` is the read-back for staff who have to approve the write."""
    caller, limits = write.context.caller, write.context.caller.limits
    return ChallengeRecord(
        intent=intent,
        actor=caller.client_id,
        operation=write.operation.name,
        request_id=write.request_id,
        now=write.context.now,
        expires_at=expires_at,
        subjects=list(dict.fromkeys(write.context.subjects)),
        limits={
            "patientsPerHour": limits.patients_per_hour,
            "patientsPerDay": limits.patients_per_day,
            "bookedFor": proposal.change.patient_id if isinstance(proposal.change, Book) else None,
            "pendingApprovals": MAX_PENDING_APPROVALS,
            **(write_limits(limits) or {}),
        },
        challenge=orjson.dumps({"at": exact_time(write.context.now), "readBack": read_back}).decode(),
        proposal=None if shown is None else {"readBack": shown, "requestId": write.request_id},
    )


async def _patient_name(context: Context, patient_id: object) -> Mapping[str, object]:
    """The name that a person hears, to notice that it is the wrong patient; empty if the system does not tell it."""
    if not isinstance(patient_id, str) or Capability.READ_PATIENTS not in context.system.capabilities:
        return {}
    contact = (await context.system.patients.contacts([patient_id])).get(patient_id)
    return {} if contact is None else {"firstName": contact.first_name, "lastName": contact.last_name}


def audit_entry(operation: Operation, context: Context, outcome: str, request_id: str) -> AuditEntry:
    subjects = list(dict.fromkeys(context.subjects))
    caller = context.caller
    return AuditEntry(caller.practice_id, context.now, caller.client_id, operation.name, outcome, subjects, request_id)


def _answer(outcome: Outcome, intent: Intent | None, proposal: Proposal) -> Mapping[str, object]:
    if outcome.result is not None:
        return outcome.result
    reason = outcome.reason or ""
    if outcome.kind == "conflict":
        own = proposal.conflicts.get(reason)
        raise Problem("conflict", own or _REASONS.get(reason) or conflict_detail(reason, ()))
    if outcome.kind == "declined":
        raise declined(_REASONS.get(reason, reason))
    if outcome.kind == "mismatch":
        raise mismatch(intent)
    if outcome.kind == "incomplete":
        raise Problem("confirmation_incomplete")
    raise Problem("slot_unavailable")
