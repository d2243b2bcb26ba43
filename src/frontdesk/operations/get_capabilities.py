from frontdesk.access.clients.scopes import SCOPES
from frontdesk.operations._fields import Input
from frontdesk.operations._operation import CAPABILITIES, Context, Operation
from frontdesk.operations._records import Record


class Output(Record):
    capabilities: list[str]


async def run(context: Context, _given: Input) -> dict[str, object]:
    """Lists the scopes that this token holds. Call it first: an operation whose scope is missing here will be refused.
    Then call get_practice, or start a booking with match_patient."""
    return {"capabilities": sorted(context.caller.scopes)}


OPERATION = Operation(
    name="get_capabilities",
    title="List what this token may do",
    group=CAPABILITIES,
    path="/capabilities",
    scope=None,
    input=Input,
    output=Output,
    run=run,
    example_answer={"capabilities": sorted(SCOPES)},
)
