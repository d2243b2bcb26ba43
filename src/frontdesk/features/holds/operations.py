"""The operations, which only the FHIR door offers."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.domain.holds import Hold, expiry
from frontdesk.domain.ids import HOLD_FORM, HOLD_ID, new_hold_id
from frontdesk.domain.local_time import iso_utc, minute_of
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.features.holds import FEATURE
from frontdesk.features.holds.settings import HoldSettings
from frontdesk.operations import book_appointment
from frontdesk.operations._booking import booking_of
from frontdesk.operations._fields import Input, PatientId, SlotId, WriteInput
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import Context, Operation, Proposal, unpublished
from frontdesk.operations._records import Record, SlotRecord, visit_ids, visit_names, visit_read_back, visit_times
from frontdesk.systems.changes import HoldSlot, ReleaseHold
from frontdesk.systems.port import Capability, needed
from frontdesk.texts import N_

# So that no client blocks a calendar: with the usual lifetime it holds fewer than three times on average.
MAX_HOLDS = 5
MAX_HOLDS_PER_HOUR = 30

_ENDED = N_("The hold has expired, or was booked or released.")
_CONFLICTS = {
    "too_many_holds": f"This client already has {MAX_HOLDS} holds: book or release one first.",
    "too_many_holds_this_hour": f"This client may place at most {MAX_HOLDS_PER_HOUR} holds an hour.",
    "hold_ended": _ENDED,
}
_SCOPE = "appointments:book"

HoldId = Annotated[str, Field(json_schema_extra={"pattern": f"^{HOLD_FORM}$"})]


class HoldRequest(WriteInput):
    slot_id: SlotId


class ReleaseRequest(WriteInput):
    hold_id: HoldId


class BookRequest(WriteInput):
    patient_id: PatientId
    hold_id: HoldId


class ReadRequest(Input):
    hold_id: HoldId


class HoldWritten(Record):
    hold_id: str


class HoldRecord(SlotRecord):
    hold_id: str
    held_at: str
    held_until: str


async def _own_hold(context: Context, hold_id: str) -> Hold | None:
    """A hold of the caller, None once it has ended."""
    if not HOLD_ID.match(hold_id):
        return None
    return await needed(context.system.holds).find_hold(hold_id, context.caller.client_id, context.now)


async def _existing_hold(context: Context, hold_id: str) -> Hold:
    hold = await _own_hold(context, hold_id)
    if hold is None:
        raise Problem("not_found", "There is no such hold, or it has ended.")
    return hold


def _slot_of(hold: Hold) -> SlotRef:
    start, end = (minute_of(moment) for moment in (hold.starts_at, hold.ends_at))
    return SlotRef(hold.provider_id, hold.location_id, hold.visit_type_id, hold.procedure_id, start, end - start)


async def hold_slot(context: Context, given: HoldRequest) -> Proposal:
    """Holds an open slot for the client, so that nobody else books it."""
    slot = context.slot_ids.decode(given.slot_id)
    state = None if slot is None else await context.system.calendar.slot_state(slot, context.now)
    if slot is None or state is None:
        raise Problem("not_found", "There is no such slot.")
    features = state.directory.practice.features
    if not FEATURE.is_enabled(features):
        raise Problem("capability_not_supported")
    if not state.available:
        raise Problem("slot_unavailable")
    lifetime = timedelta(minutes=HoldSettings.model_validate(features.get(FEATURE.name, {})).minutes)
    until = expiry(context.now, lifetime)
    change = HoldSlot(state.version, new_hold_id(), booking_of(slot, state), until, MAX_HOLDS, MAX_HOLDS_PER_HOUR)
    read_back = {"slotId": given.slot_id, **visit_read_back(slot, state.directory)}
    return Proposal(read_back, change, conflicts=_CONFLICTS)


async def book_held(context: Context, given: BookRequest) -> Proposal:
    """Books a time that the client holds."""
    hold = await _own_hold(context, given.hold_id)
    if hold is None:
        await existing_patient(context, given.patient_id)
        raise Problem("slot_unavailable", _ENDED)
    slot = _slot_of(hold)
    return await book_appointment.propose(
        context, given.patient_id, context.slot_ids.encode(slot), slot, hold_id=hold.id
    )


async def get_hold(context: Context, given: ReadRequest) -> dict[str, object]:
    """Reads a hold of the client."""
    hold = await _existing_hold(context, given.hold_id)
    slot, directory = _slot_of(hold), await context.system.directory()
    return {
        "id": context.slot_ids.encode(slot),
        **visit_times(slot, directory),
        **visit_ids(slot),
        **visit_names(slot, directory),
        "holdId": hold.id,
        "heldAt": iso_utc(hold.held_at),
        "heldUntil": iso_utc(hold.held_until),
    }


async def release_hold(context: Context, given: ReleaseRequest) -> Proposal:
    """Releases a hold of the client, so that others can book its time."""
    hold = await _existing_hold(context, given.hold_id)
    read_back = visit_read_back(_slot_of(hold), await context.system.directory())
    return Proposal({"holdId": hold.id, **read_back}, ReleaseHold(hold.id), conflicts=_CONFLICTS)


HOLD_SLOT = Operation(
    name="hold_slot",
    title="Hold an open slot",
    audit=AuditSentence("%(actor)s held an open time"),
    method="POST",
    path="/holds",
    scope=_SCOPE,
    kind="write",
    creates=True,
    needs=Capability.HOLD,
    input=HoldRequest,
    output=HoldWritten,
    run=hold_slot,
)
GET_HOLD = Operation(
    name="get_hold",
    title="Read a hold",
    path="/holds/{holdId}",
    scope=_SCOPE,
    needs=Capability.HOLD,
    input=ReadRequest,
    output=HoldRecord,
    run=get_hold,
)
BOOK_HELD = unpublished(book_appointment.OPERATION, input=BookRequest, run=book_held, checked_at_commit=False)
RELEASE_HOLD = Operation(
    name="release_hold",
    title="Release a hold",
    audit=AuditSentence("%(actor)s released a held time"),
    method="POST",
    path="/holds/{holdId}/release",
    scope=_SCOPE,
    kind="write",
    overwrites=True,
    needs=Capability.HOLD,
    input=ReleaseRequest,
    output=HoldWritten,
    run=release_hold,
)
