from typing import Annotated, Any

from pydantic import Field

from frontdesk.domain.directory import matches_name
from frontdesk.domain.errors import Problem
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Id, Input, Limit, NameFilter
from frontdesk.operations._groups import VISIT_TYPES
from frontdesk.operations._operation import Context, Operation
from frontdesk.operations._paging import directory_page
from frontdesk.operations._records import Page, ProcedureRecord, procedure_body


class Request(Input):
    visit_type_id: Annotated[Id, Field(description="From list_visit_types.")]
    name: NameFilter | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request) -> dict[str, Any]:
    """Lists the procedures that can be booked under one visit type, with their duration. Resolve the visit type first;
    then call search_slots with the procedureId."""
    visit_type = (await context.system.directory()).visit_types.get(given.visit_type_id)
    if visit_type is None or not visit_type.active:
        raise Problem("not_found", "There is no such visit type.")
    found = [
        procedure
        for procedure in visit_type.procedures
        if procedure.active and matches_name(given.name or "", procedure.name, procedure.aliases)
    ]
    query = ["list_procedures", given.visit_type_id, given.name]
    return directory_page(context, query, found, procedure_body, given.limit, given.cursor)


OPERATION = Operation(
    name="list_procedures",
    title="List the procedures of a visit type",
    group=VISIT_TYPES,
    path="/visit-types/{visitTypeId}/procedures",
    scope="practices:read",
    depends_on="directory",
    input=Request,
    output=Page[ProcedureRecord],
    run=run,
    errors=("not_found",),
    example={"visitTypeId": 20},
    example_answer=examples.page({"id": 102, "name": "Long follow-up", "aliases": [], "durationMinutes": 45}),
)
