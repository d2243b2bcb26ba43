from typing import Annotated

from pydantic import Field

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Id, Input
from frontdesk.operations._lookups import NO_LOCATION, existing_record
from frontdesk.operations._operation import LOCATIONS, Context, Operation
from frontdesk.operations._records import LocationRecord, record_body


class Request(Input):
    location_id: Annotated[Id, Field(description="From list_locations.")]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one location: name, address, phone and time zone. Call it to tell a person where to go, for example after
    booking. Read the address aloud, never the id."""
    locations = (await context.system.directory()).locations
    return record_body(LocationRecord, existing_record(locations, given.location_id, NO_LOCATION))


OPERATION = Operation(
    name="get_location",
    title="Read one location",
    group=LOCATIONS,
    path="/locations/{locationId}",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=LocationRecord,
    run=run,
    errors=("not_found",),
    example={"locationId": 1},
    example_answer=examples.LOCATION,
)
