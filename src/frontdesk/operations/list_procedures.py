from typing import Annotated

from pydantic import Field

from frontdesk.domain.directory import matches_name
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import DEFAULT_LIMIT, Cursor, Id, Input, Limit, NameFilter
from frontdesk.operations._lookups import NO_VISIT_TYPE, existing_record
from frontdesk.operations._operation import VISIT_TYPES, Context, Operation, unpublished
from frontdesk.operations._paging import directory_page, position
from frontdesk.operations._records import Page, ProcedureRecord, Record, VisitTypeRecord, record_body


class Request(Input):
    visit_type_id: Annotated[Id, Field(description="From list_visit_types.")]
    name: NameFilter | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


class ServiceRequest(Input):
    name: NameFilter | None = None


class Service(Record):
    visit_type: VisitTypeRecord
    procedure: ProcedureRecord


class Services(Record):
    items: list[Service]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the procedures that can be booked under one visit type, with their duration. Resolve the visit type first;
    then call search_slots with the procedureId."""
    query = ["list_procedures", given.visit_type_id]
    position(context, [*query, given.name], given.cursor)  # 422 before 404
    directory = await context.system.directory()
    visit_type = existing_record(directory.visit_types, given.visit_type_id, NO_VISIT_TYPE)
    return directory_page(context, query, visit_type.procedures, ProcedureRecord, given)


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


async def run_all(context: Context, given: ServiceRequest) -> dict[str, object]:
    """Lists the procedures of all visit types, optionally those whose own or whose visit type's name matches."""
    visit_types = (await context.system.directory()).visit_types.values()
    items = [
        {"visitType": record_body(VisitTypeRecord, visit_type), "procedure": record_body(ProcedureRecord, procedure)}
        for visit_type in visit_types
        for procedure in visit_type.procedures
        if visit_type.active
        and procedure.active
        and any(matches_name(given.name or "", each.name, each.aliases) for each in (visit_type, procedure))
    ]
    return {"items": items}


# For the FHIR door, where a service is a visit type with a procedure.
ALL_PROCEDURES = unpublished(OPERATION, input=ServiceRequest, output=Services, run=run_all)
