from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Input, Limit, NameFilter
from frontdesk.operations._operation import VISIT_TYPES, Context, Operation
from frontdesk.operations._paging import directory_page
from frontdesk.operations._records import Page, VisitTypeRecord


class Request(Input):
    name: NameFilter | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the kinds of visit that can be booked, optionally filtered by name. Choose one whose patientKind fits the
    patient: new for a first visit, existing for a patient the practice has seen. Then call list_procedures with it."""
    directory = await context.system.directory()
    return directory_page(context, ["list_visit_types"], directory.visit_types.values(), VisitTypeRecord, given)


OPERATION = Operation(
    name="list_visit_types",
    title="List visit types",
    group=VISIT_TYPES,
    path="/visit-types",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=Page[VisitTypeRecord],
    run=run,
    example={"name": "follow-up"},
    example_answer=examples.page(examples.VISIT_TYPE),
)
