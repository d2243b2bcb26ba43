from typing import Annotated

from pydantic import AfterValidator, Field

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Date, Id, Input, between, int32, integer_schema
from frontdesk.operations._operation import SLOTS, Context, Operation
from frontdesk.operations._paging import page_body
from frontdesk.operations._records import Page, SlotRecord
from frontdesk.operations._slots import slot_items
from frontdesk.systems.port import Capability, SlotQuery

DEFAULT_FOUND, MAX_FOUND = 5, 50


class Request(Input):
    visit_type_id: Annotated[Id, Field(description="From list_visit_types.")]
    procedure_id: Annotated[Id, Field(description="From list_procedures.")]
    provider_id: Annotated[Id | None, Field(description="Only this provider; leave out for any.")] = None
    location_id: Annotated[Id | None, Field(description="Only this location; leave out for any.")] = None
    first: Annotated[Date | None, Field(alias="from", description="Not before this date; today if left out.")] = None
    limit: Annotated[
        int,
        AfterValidator(int32),
        AfterValidator(between(1, MAX_FOUND)),
        integer_schema(MAX_FOUND, "The most slots to return."),
    ] = DEFAULT_FOUND


async def run(context: Context, given: Request) -> dict[str, object]:
    """Finds the earliest open slots for a procedure over every provider and location that fits, up to the practice's
    booking horizon. Use it for "as soon as possible"; use search_slots when the person has chosen a provider and dates.
    Then call get_slot with the chosen item's id."""
    query = SlotQuery(given.visit_type_id, given.procedure_id, given.provider_id, given.location_id, given.first, None)
    found = await context.system.calendar.find_slots(query, context.now, limit=given.limit, after=None)
    items, _ = slot_items(context, found, given.limit)
    return page_body(context, [], items, given.limit, None)


OPERATION = Operation(
    name="find_first_available",
    title="Find the earliest open slots",
    group=SLOTS,
    path="/slots/first-available",
    scope="slots:read",
    needs=Capability.FIND_SLOTS,
    depends_on="calendar",
    input=Request,
    output=Page[SlotRecord],
    run=run,
    example={"visitTypeId": 21, "procedureId": 102},
    example_answer=examples.page(examples.SLOT, limit=5),
)
