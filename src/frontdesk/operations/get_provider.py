from typing import Annotated

from pydantic import Field

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Id, Input
from frontdesk.operations._lookups import NO_PROVIDER, existing_record
from frontdesk.operations._operation import PROVIDERS, Context, Operation
from frontdesk.operations._records import ProviderRecord, record_body


class Request(Input):
    provider_id: Annotated[Id, Field(description="From list_providers.")]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one provider: name, specialty, the locations where they work and whether they accept new patients. Call it
    when a person asks about a doctor, or wants a first visit with one. Then call list_visit_types."""
    providers = (await context.system.directory()).providers
    return record_body(ProviderRecord, existing_record(providers, given.provider_id, NO_PROVIDER))


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
