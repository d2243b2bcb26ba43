from typing import Annotated

from pydantic import Field

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Id, Input, Limit, NameFilter
from frontdesk.operations._operation import PROVIDERS, Context, Operation
from frontdesk.operations._paging import directory_page
from frontdesk.operations._records import Page, ProviderRecord


class Request(Input):
    location_id: Annotated[Id | None, Field(description="Only providers who work at this location.")] = None
    name: NameFilter | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the practice's providers, optionally those at one location or whose name or alias matches. Use it to turn
    the doctor a person names into a providerId; then call list_visit_types. If several match, ask which is meant."""
    directory = await context.system.directory()
    found = [
        provider for provider in directory.providers.values() if given.location_id in (None, *provider.location_ids)
    ]
    return directory_page(context, ["list_providers", given.location_id], found, ProviderRecord, given)


OPERATION = Operation(
    name="list_providers",
    title="List providers",
    group=PROVIDERS,
    path="/providers",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=Page[ProviderRecord],
    run=run,
    example={"locationId": 1, "name": "Chen"},
    example_answer=examples.page(examples.PROVIDER),
)
