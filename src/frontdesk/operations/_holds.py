"""Operations that only the FHIR door offers: holding an open slot for a few minutes before it is booked."""

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.domain.holds import MAX_HOLDS, MAX_HOLDS_PER_HOUR, Hold, expiry
from frontdesk.domain.ids import new_hold_id
from frontdesk.domain.local_time import iso_utc
from frontdesk.operations._booking import booking_of, own_hold, slot_of
from frontdesk.operations._fields import HoldId, Input, SlotId, WriteInput
from frontdesk.operations._operation import Context, Operation, Proposal
from frontdesk.operations._records import Record, SlotRecord, visit_ids, visit_names, visit_read_back, visit_times
from frontdesk.systems.changes import HoldSlot, ReleaseHold
from frontdesk.systems.port import Capability

_SCOPE = "appointments:book"


class HoldRequest(WriteInput):
    slot_id: SlotId


class ReleaseRequest(WriteInput):
    hold_id: HoldId


class ReadRequest(Input):
    hold_id: HoldId


class HoldWritten(Record):
    hold_id: str


class HoldRecord(SlotRecord):
    hold_id: str
    held_at: str
    held_until: str


async def _existing_hold(context: Context, hold_id: str) -> Hold:
    hold = await own_hold(context, hold_id)
    if hold is None:
        raise Problem("not_found", "There is no such hold, or it has ended.")
    return hold


async def hold_slot(context: Context, given: HoldRequest) -> Proposal:
    """Holds an open slot for the client, so that nobody else books it."""
    slot = context.slot_ids.decode(given.slot_id)
    state = None if slot is None else await context.system.calendar.slot_state(slot, context.now)
    if slot is None or state is None:
        raise Problem("not_found", "There is no such slot.")
    if not state.available:
        raise Problem("slot_unavailable")
    until = expiry(context.now, context.hold_lifetime)
    change = HoldSlot(state.version, new_hold_id(), booking_of(slot, state), until, MAX_HOLDS, MAX_HOLDS_PER_HOUR)
    return Proposal({"slotId": given.slot_id, **visit_read_back(slot, state.directory)}, change)


async def get_hold(context: Context, given: ReadRequest) -> dict[str, object]:
    """Reads a hold of the client."""
    hold = await _existing_hold(context, given.hold_id)
    slot, directory = slot_of(hold), await context.system.directory()
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
    read_back = visit_read_back(slot_of(hold), await context.system.directory())
    return Proposal({"holdId": hold.id, **read_back}, ReleaseHold(hold.id))


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
