from typing import Annotated, Literal

from pydantic import Field

from frontdesk.audit.agreements import AgreedWrite, agreed_writes
from frontdesk.audit.reading import AFTER_ALL
from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.consent import Consent
from frontdesk.domain.local_time import iso_utc
from frontdesk.features.receipts.receipt_ids import EXAMPLE_ID, ReceiptId, receipt_id
from frontdesk.features.receipts.receipts import REPORTED, Receipts
from frontdesk.operations import _examples as examples
from frontdesk.operations import _fields as fields
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import EXTENSIONS, Context, Operation
from frontdesk.operations._paging import page_body, position
from frontdesk.operations._records import AppointmentId, Page, Record, UtcTime
from frontdesk.systems.port import Capability


class Request(fields.Input):
    patient_id: fields.PatientId
    appointment_id: Annotated[fields.AppointmentId | None, Field(description="Only changes of this appointment.")] = (
        None
    )
    limit: fields.Limit = fields.DEFAULT_LIMIT
    cursor: fields.Cursor | None = None


class ReceiptSummary(Record):
    id: ReceiptId
    operation: str
    outcome: Literal["executed", "unchanged"]
    executed_at: UtcTime
    appointment_id: AppointmentId | None = None
    consent: Consent
    reported_by: Annotated[
        Literal["client", "host", "patient", "staff"], Field(description="Whose word it is that a person agreed.")
    ]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the changes of one patient and of the patient's appointments that this client made after a read-back,
    newest first. Each has a receipt: call get_receipt."""
    bound: list[object] = ["list_receipts", given.patient_id, given.appointment_id]
    after = position(context, bound, given.cursor)
    patient = await existing_patient(context, given.patient_id)
    found = await agreed_writes(
        context.services[Receipts].database,
        context.caller.practice_id,
        patient.id,
        before=AFTER_ALL if after is None else after[0],
        limit=given.limit + 1,
        actor=context.caller.client_id,
        appointment_id=given.appointment_id,
    )
    shown = found[: given.limit]
    last = [shown[-1].record_id] if len(found) > given.limit else None
    return page_body(context, bound, [_summary(each) for each in shown], given.limit, last)


def _summary(write: AgreedWrite) -> dict[str, object]:
    about = {} if write.appointment_id is None else {"appointmentId": write.appointment_id}
    return {
        "id": receipt_id(write.record_id),
        "operation": write.operation,
        "outcome": write.outcome,
        "executedAt": iso_utc(write.at),
        **about,
        "consent": write.consent,
        "reportedBy": REPORTED[write.consent].by,
    }


OPERATION = Operation(
    name="list_receipts",
    title="List the receipts of the client's changes",
    audit=AuditSentence("%(actor)s listed consent receipts", "%(actor)s listed consent receipts of %(names)s"),
    group=EXTENSIONS,
    path="/patients/{patientId}/receipts",
    scope="receipts:read",
    needs=Capability.READ_PATIENTS,
    input=Request,
    output=Page[ReceiptSummary],
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"patientId": examples.PATIENT_ID},
    example_answer=examples.page(
        {
            "id": EXAMPLE_ID,
            "operation": "book_appointment",
            "outcome": "executed",
            "executedAt": "2026-11-15T08:00:00Z",
            "appointmentId": examples.APPOINTMENT_ID,
            "consent": "token",
            "reportedBy": "client",
        }
    ),
)
