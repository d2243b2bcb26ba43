from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import (
    DEFAULT_LIMIT,
    Cursor,
    Date,
    Id,
    Input,
    Limit,
    PatientReference,
    require_order,
)
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import APPOINTMENTS, Context, Operation, unpublished
from frontdesk.operations._paging import page_body, position
from frontdesk.operations._records import (
    AppointmentRecord,
    AppointmentSummaryRecord,
    Page,
    appointment_body,
    appointment_summary_body,
)
from frontdesk.systems.port import AppointmentFilter, AppointmentPosition, Capability, ListingStart


class Request(Input):
    patient_id: Annotated[
        PatientReference | None, Field(description="A pat_ id, or the practice's own patient number.")
    ] = None
    first: Annotated[Date | None, Field(alias="from", description="Starting on or after this local date.")] = None
    last: Annotated[
        Date | None,
        AfterValidator(require_order),
        Field(alias="to", description="Starting on or before this local date."),
    ] = None
    provider_id: Id | None = None
    location_id: Id | None = None
    visit_type_id: Id | None = None
    procedure_id: Id | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists appointments in order of start, filtered by patient, dates, provider, location, visit type or procedure.
    Use it with patientId to find the appointment that a person wants to confirm, move or cancel; then call
    get_appointment. Cancelled and past appointments are listed too: look at status and start."""
    return await _page(context, given, appointment_summary_body)


async def run_in_full(context: Context, given: Request) -> dict[str, object]:
    """Lists the same appointments with names and history."""
    return await _page(context, given, appointment_body)


async def _page(
    context: Context, given: Request, body: Callable[[Appointment, Directory], dict[str, object]]
) -> dict[str, object]:
    bound: list[object] = [
        "list_appointments", given.patient_id, given.provider_id, given.location_id, given.visit_type_id,
        given.procedure_id, *(None if day is None else day.isoformat() for day in (given.first, given.last)),
    ]  # fmt: skip
    after = position(context, bound, given.cursor)
    patient = None if given.patient_id is None else await existing_patient(context, given.patient_id)
    filters = given.model_dump(exclude={"patient_id", "limit", "cursor"})
    wanted = AppointmentFilter(patient_id=None if patient is None else patient.id, **filters)
    page = await context.system.appointments.list_appointments(
        wanted, limit=given.limit, after=None if after is None else _position(after)
    )
    for appointment in page.appointments:
        context.subjects.extend((appointment.id, appointment.patient_id))
    directory = await context.system.directory()
    items = [body(appointment, directory) for appointment in page.appointments]
    return page_body(context, bound, items, given.limit, None if page.last is None else _in_cursor(page.last))


def _in_cursor(last: AppointmentPosition) -> list[object]:
    listing = last.listing
    return [int(last.starts_at.timestamp()), last.id, listing.snapshot, int(listing.began_at.timestamp())]


def _position(in_cursor: list[Any]) -> AppointmentPosition:
    starts_at, appointment_id, snapshot, began_at = in_cursor
    return AppointmentPosition(
        datetime.fromtimestamp(starts_at, tz=UTC),
        appointment_id,
        ListingStart(snapshot, datetime.fromtimestamp(began_at, tz=UTC)),
    )


OPERATION = Operation(
    name="list_appointments",
    title="List appointments",
    audit=AuditSentence("%(actor)s listed appointments", "%(actor)s listed appointments of %(names)s"),
    group=APPOINTMENTS,
    path="/appointments",
    scope="appointments:read",
    needs=Capability.LIST_APPOINTMENTS,
    input=Request,
    output=Page[AppointmentSummaryRecord],
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"from": "2026-11-16", "to": "2026-11-20", "providerId": 10},
    example_answer=examples.page(examples.APPOINTMENT),
)

# For the FHIR door, whose appointments show when they last changed.
APPOINTMENTS_IN_FULL = unpublished(OPERATION, input=Request, output=Page[AppointmentRecord], run=run_in_full)
