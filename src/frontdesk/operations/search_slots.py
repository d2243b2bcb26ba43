from datetime import date, timedelta
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Date, Id, Input, Limit, broken, require_order
from frontdesk.operations._operation import SLOTS, Context, Operation, unpublished
from frontdesk.operations._paging import page_body, position
from frontdesk.operations._records import Page, SlotRecord
from frontdesk.operations._slots import slot_items
from frontdesk.systems.port import Capability, SlotQuery

MAX_WINDOW = timedelta(days=14)


class Request(Input):
    provider_id: Annotated[Id, Field(description="From list_providers.")]
    location_id: Annotated[Id, Field(description="From list_locations.")]
    visit_type_id: Annotated[Id, Field(description="From list_visit_types.")]
    procedure_id: Annotated[Id, Field(description="From list_procedures.")]
    first: Annotated[Date, Field(alias="from", description="First date, in the location's time zone.")]
    last: Annotated[
        Date, Field(alias="to", description=f"Last date, included; at most {MAX_WINDOW.days} days after from.")
    ]
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None

    @field_validator("last")
    @classmethod
    def _window(cls, last: date, info: ValidationInfo) -> date:
        require_order(last, info)
        if "first" in info.data and last - info.data["first"] > MAX_WINDOW:
            raise broken("maxWindow", "%(field)s must be at most %(days)s days after from", days=MAX_WINDOW.days)
        return last


class WideRequest(Input):
    provider_id: Id | None = None
    location_id: Id | None = None
    visit_type_id: Id
    procedure_id: Id
    first: Annotated[Date | None, Field(alias="from")] = None
    last: Annotated[Date | None, Field(alias="to")] = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request | WideRequest) -> dict[str, object]:
    """Searches open slots of one provider at one location for one procedure, between two dates, earliest first. All
    four ids come from the list operations; unrelated ids give an empty page. Offer times in the location's own time as
    returned. Then call get_slot with the chosen item's id. When there is no preference use find_first_available."""
    query = SlotQuery(
        given.visit_type_id, given.procedure_id, given.provider_id, given.location_id, given.first, given.last
    )
    bound = ["search_slots", given.provider_id, given.location_id, given.visit_type_id, given.procedure_id]
    bound += [None if day is None else day.isoformat() for day in (given.first, given.last)]
    after = position(context, bound, given.cursor)
    found = await context.system.calendar.find_slots(
        query, context.now, limit=given.limit + 1, after=None if after is None else (after[0], after[1], after[2])
    )
    items, last = slot_items(context, found, given.limit)
    return page_body(context, bound, items, given.limit, last)


OPERATION = Operation(
    name="search_slots",
    title="Search open slots",
    group=SLOTS,
    path="/slots",
    scope="slots:read",
    needs=Capability.FIND_SLOTS,
    depends_on="calendar",
    input=Request,
    output=Page[SlotRecord],
    run=run,
    example={**examples.IDS, "from": "2026-11-16", "to": "2026-11-30"},
    example_answer={**examples.page(examples.SLOT), "nextCursor": "eyJhZnRlciI6MX0"},
)

# For the FHIR door, whose searches need not name a provider, a location or an end.
WIDE_SLOT_SEARCH = unpublished(OPERATION, input=WideRequest, run=run)
