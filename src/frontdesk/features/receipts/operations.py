from typing import Annotated, Literal

from pydantic import Field

from frontdesk.audit.agreements import AgreedWrite, agreed_write, agreed_writes
from frontdesk.audit.reading import AFTER_ALL
from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.consent import Consent
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import iso_utc
from frontdesk.features.receipts.receipts import REPORTED_BY, Receipts
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import (
    DEFAULT_LIMIT,
    AppointmentId,
    Cursor,
    Input,
    Limit,
    PatientId,
)
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import EXTENSIONS, Context, Operation
from frontdesk.operations._paging import page_body, position
from frontdesk.operations._records import AppointmentId as AppointmentIdRead
from frontdesk.operations._records import Page, Record, UtcTime
from frontdesk.systems.port import Capability

PREFIX = "rcp_"  # before the id of the audit record
ReceiptId = Annotated[str, Field(json_schema_extra={"pattern": f"^{PREFIX}[1-9][0-9]{{0,18}}$"})]
_ID = 1234
_AGREED = {"consent": "token", "reportedBy": "client"}


class ListRequest(Input):
    patient_id: PatientId
    appointment_id: Annotated[AppointmentId | None, Field(description="Only changes of this appointment.")] = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


class GetRequest(Input):
    receipt_id: ReceiptId


class ReceiptSummary(Record):
    id: ReceiptId
    operation: str
    outcome: Literal["executed", "unchanged"]
    executed_at: UtcTime
    appointment_id: AppointmentIdRead | None = None
    consent: Consent
    reported_by: Annotated[
        Literal["client", "host", "patient", "staff"], Field(description="Whose word it is that a person agreed.")
    ]


class ReceiptRecord(Record):
    id: ReceiptId
    receipt: Annotated[str, Field(description="A JWS in compact form, signed with a key of /.well-known/jwks.json.")]


def receipt_id(record_id: int) -> str:
    return f"{PREFIX}{record_id}"


async def list_receipts(context: Context, given: ListRequest) -> dict[str, object]:
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


async def get_receipt(context: Context, given: GetRequest) -> dict[str, object]:
    """Issues the receipt of a change that this client made: a signed statement of what was read back, which kind of
    consent was given and who reported it, with the place of its record in the audit trail. Anyone can verify it offline
    with the published keys."""
    receipts, practice_id = context.services[Receipts], context.caller.practice_id
    number = given.receipt_id.removeprefix(PREFIX)
    known_form = given.receipt_id.startswith(PREFIX) and number.isascii() and number.isdigit() and number[0] != "0"
    write = (
        await agreed_write(receipts.database, practice_id, int(number))
        if known_form and int(number) < AFTER_ALL
        else None
    )
    if write is None or write.actor != context.caller.client_id:
        raise Problem("not_found", "There is no such receipt.")
    if write.appointment_id is not None:
        context.subjects.append(write.appointment_id)
    if write.patient_id is not None:
        await existing_patient(context, write.patient_id)
    return {"id": given.receipt_id, "receipt": await receipts.issue(practice_id, write.record_id)}


def _summary(write: AgreedWrite) -> dict[str, object]:
    about = {} if write.appointment_id is None else {"appointmentId": write.appointment_id}
    return {
        "id": receipt_id(write.record_id),
        "operation": write.operation,
        "outcome": write.outcome,
        "executedAt": iso_utc(write.at),
        **about,
        "consent": write.consent,
        "reportedBy": REPORTED_BY[write.consent],
    }


LIST_RECEIPTS = Operation(
    name="list_receipts",
    title="List the receipts of the client's changes",
    audit=AuditSentence("%(actor)s listed consent receipts", "%(actor)s listed consent receipts of %(names)s"),
    group=EXTENSIONS,
    path="/patients/{patientId}/receipts",
    scope="receipts:read",
    needs=Capability.READ_PATIENTS,
    input=ListRequest,
    output=Page[ReceiptSummary],
    run=list_receipts,
    errors=("not_found",),
    reads_phi=True,
    example={"patientId": examples.PATIENT_ID},
    example_answer=examples.page(
        {
            "id": receipt_id(_ID),
            "operation": "book_appointment",
            "outcome": "executed",
            "executedAt": "2026-11-15T08:00:00Z",
            "appointmentId": examples.APPOINTMENT_ID,
            **_AGREED,
        }
    ),
)
GET_RECEIPT = Operation(
    name="get_receipt",
    title="Issue the receipt of a change",
    audit=AuditSentence("%(actor)s issued a consent receipt", "%(actor)s issued a consent receipt about %(names)s"),
    group=EXTENSIONS,
    path="/receipts/{receiptId}",
    scope="receipts:read",
    needs=Capability.READ_PATIENTS,
    input=GetRequest,
    output=ReceiptRecord,
    run=get_receipt,
    errors=("not_found", "conflict"),
    reads_phi=True,
    example={"receiptId": receipt_id(_ID)},
    example_answer={
        "id": receipt_id(_ID),
        "receipt": "eyJhbGciOiJFZERTQSIsImtpZCI6IjBkIn0.eyJpc3MiOiJodHRwczovL2EifQ." + "A" * 86,
    },
)
