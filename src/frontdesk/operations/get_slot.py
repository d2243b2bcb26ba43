from typing import Annotated

from pydantic import Field

from frontdesk.domain.errors import Problem
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Id, Input, SlotId
from frontdesk.operations._operation import SLOTS, Context, Operation, unpublished
from frontdesk.operations._records import SlotDetailRecord, visit_ids, visit_names, visit_times
from frontdesk.systems.port import Capability, SlotState


class Request(Input):
    slot_id: SlotId


class TimeRequest(Input):
    provider_id: Id
    location_id: Id
    visit_type_id: Id
    procedure_id: Id
    start: Annotated[int, Field(ge=0, description="Minutes since 1970.")]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one slot with names and local time, and checks live whether it is still available. Call it before booking
    and read provider, location, weekday and local time back to the person. Then call book_appointment."""
    return (await _read(context, given))[0]


async def run_with_holds(context: Context, given: Request) -> dict[str, object]:
    """Reads one slot, and whether it is unavailable only because a client holds it."""
    found, state = await _read(context, given)
    return {**found, "held": state.held}


async def run_at(context: Context, given: TimeRequest) -> dict[str, object]:
    """Names the slot of a service at a time and place, whether it is open or not."""
    directory = await context.system.directory()
    visit_type = directory.visit_types.get(given.visit_type_id)
    procedure = None if visit_type is None else visit_type.procedure(given.procedure_id)
    if (
        procedure is None
        or given.provider_id not in directory.providers
        or given.location_id not in directory.locations
    ):
        raise Problem("not_found", "There is no such slot.")
    ids = (given.provider_id, given.location_id, given.visit_type_id, given.procedure_id)
    slot = SlotRef(*ids, given.start, procedure.duration_minutes)
    return {"id": context.slot_ids.encode(slot), "durationMinutes": procedure.duration_minutes}


async def _read(context: Context, given: Request) -> tuple[dict[str, object], SlotState]:
    slot = context.slot_ids.decode(given.slot_id)
    state = None if slot is None else await context.system.calendar.slot_state(slot, context.now)
    if slot is None or state is None:
        raise Problem("not_found", "There is no such slot.")
    body = {
        "id": given.slot_id,
        **visit_times(slot, state.directory),
        **visit_ids(slot),
        **visit_names(slot, state.directory),
        "available": state.available,
    }
    return body, state


OPERATION = Operation(
    name="get_slot",
    title="Read one slot, live",
    group=SLOTS,
    path="/slots/{slotId}",
    scope="slots:read",
    needs=Capability.FIND_SLOTS,
    depends_on="calendar",
    input=Request,
    output=SlotDetailRecord,
    run=run,
    errors=("not_found",),
    example={"slotId": examples.SLOT_ID},
    example_answer={**examples.SLOT, **examples.NAMES, "available": True},
)

# For the FHIR door, whose slots distinguish busy times from held ones.
SLOT_WITH_HOLDS = unpublished(OPERATION, input=Request, run=run_with_holds)

# For the FHIR door, where an appointment is moved by a new time.
SLOT_AT = unpublished(OPERATION, depends_on="directory", input=TimeRequest, run=run_at)
