from typing import Annotated, Any

from pydantic import Field

from frontdesk.domain.errors import Problem
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Id, Input
from frontdesk.operations._groups import PROVIDERS
from frontdesk.operations._operation import Context, Operation
from frontdesk.operations._records import ProviderRecord, provider_body


class Request(Input):
    provider_id: Annotated[Id, Field(description="From list_providers.")]


async def run(context: Context, given: Request) -> dict[str, Any]:
    """Reads one provider: name, specialty, the locations where they work and whether they accept new patients. Call it
    when a person asks about a doctor, or wants a first visit with one. Then call list_visit_types."""
    found = (await context.system.directory()).providers.get(given.provider_id)
    if found is None or not found.active:
        raise Problem("not_found", "There is no such provider.")
    return provider_body(found)


OPERATION = Operation(
    name="get_provider",
    title="Read one provider",
    group=PROVIDERS,
    path="/providers/{providerId}",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=ProviderRecord,
    run=run,
    errors=("not_found",),
    example={"providerId": 10},
    example_answer=examples.PROVIDER,
)
