from typing import Annotated

from pydantic import Field

from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Id, Input
from frontdesk.operations._lookups import NO_VISIT_TYPE, existing_record
from frontdesk.operations._operation import VISIT_TYPES, Context, Operation
from frontdesk.operations._records import VisitTypeRecord, record_body


class Request(Input):
    visit_type_id: Annotated[Id, Field(description="From list_visit_types.")]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one visit type: name, description, and whether it is for new or existing patients. Call it to check that
    the visit type fits the patient. Then call list_procedures with its id."""
    visit_types = (await context.system.directory()).visit_types
    return record_body(VisitTypeRecord, existing_record(visit_types, given.visit_type_id, NO_VISIT_TYPE))


OPERATION = Operation(
    name="get_visit_type",
    title="Read one visit type",
    group=VISIT_TYPES,
    path="/visit-types/{visitTypeId}",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=VisitTypeRecord,
    run=run,
    errors=("not_found",),
    example={"visitTypeId": 20},
    example_answer=examples.VISIT_TYPE,
)
