from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Input, Limit, NameFilter
from frontdesk.operations._operation import LOCATIONS, Context, Operation
from frontdesk.operations._paging import directory_page
from frontdesk.operations._records import LocationRecord, Page


class Request(Input):
    name: NameFilter | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the practice's locations, optionally filtered by name. Use it to turn the place a person names into a
    locationId; then call list_providers with that locationId. Never show ids to people."""
    directory = await context.system.directory()
    return directory_page(context, ["list_locations"], directory.locations.values(), LocationRecord, given)


OPERATION = Operation(
    name="list_locations",
    title="List locations",
    group=LOCATIONS,
    path="/locations",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=Page[LocationRecord],
    run=run,
    example={"name": "Downtown"},
    example_answer=examples.page(examples.LOCATION),
)
