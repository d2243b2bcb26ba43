from frontdesk.domain.local_time import iso_utc
from frontdesk.features.lost_property.lost_items import LostItems
from frontdesk.operations._fields import Input
from frontdesk.operations._operation import EXTENSIONS, Context, Operation
from frontdesk.operations._records import Record, UtcTime


class Request(Input):
    pass


class LostItemRecord(Record):
    what: str
    found_at: UtcTime


class Output(Record):
    items: list[LostItemRecord]


async def run(context: Context, _given: Request) -> dict[str, object]:
    """Lists what patients have left behind in the practice, oldest first. Use it when a caller asks for a lost item."""
    found = await context.services[LostItems].of(context.caller.practice_id)
    return {"items": [{"what": item.what, "foundAt": iso_utc(item.found_at)} for item in found]}


OPERATION = Operation(
    name="list_lost_items",
    title="List lost items",
    group=EXTENSIONS,
    path="/lost-items",
    scope="lostItems:read",
    input=Request,
    output=Output,
    run=run,
    example_answer={"items": [{"what": "A red umbrella", "foundAt": "2026-11-15T08:00:00Z"}]},
)
