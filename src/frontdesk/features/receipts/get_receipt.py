from typing import Annotated

from pydantic import Field

from frontdesk.audit.agreements import agreed_write
from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.features.receipts.receipt_ids import EXAMPLE_ID, ReceiptId, record_of
from frontdesk.features.receipts.receipts import Receipts
from frontdesk.operations._fields import Input
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import EXTENSIONS, Context, Operation
from frontdesk.operations._records import Record
from frontdesk.systems.port import Capability


class Request(Input):
    receipt_id: ReceiptId


class ReceiptRecord(Record):
    id: ReceiptId
    receipt: Annotated[str, Field(description="A JWS in compact form, signed with a key of /.well-known/jwks.json.")]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Issues the receipt of a change that this client made: a signed statement of what was read back, which kind of
    consent was given and who reported it, with the place of its record in the audit trail. Anyone can verify it offline
    with the published keys."""
    receipts, practice_id = context.services[Receipts], context.caller.practice_id
    record_id = record_of(given.receipt_id)
    write = None if record_id is None else await agreed_write(receipts.database, practice_id, record_id)
    if write is None or write.actor != context.caller.client_id:
        raise Problem("not_found", "There is no such receipt.")
    if write.appointment_id is not None:
        context.subjects.append(write.appointment_id)
    if write.patient_id is not None:
        await existing_patient(context, write.patient_id)
    return {"id": given.receipt_id, "receipt": await receipts.issue(practice_id, write.record_id)}


OPERATION = Operation(
    name="get_receipt",
    title="Issue the receipt of a change",
    audit=AuditSentence("%(actor)s issued a consent receipt", "%(actor)s issued a consent receipt about %(names)s"),
    group=EXTENSIONS,
    path="/receipts/{receiptId}",
    scope="receipts:read",
    needs=Capability.READ_PATIENTS,
    input=Request,
    output=ReceiptRecord,
    run=run,
    errors=("not_found", "conflict"),
    reads_phi=True,
    example={"receiptId": EXAMPLE_ID},
    example_answer={
        "id": EXAMPLE_ID,
        "receipt": "eyJhbGciOiJFZERTQSIsImtpZCI6IjBkIn0.eyJpc3MiOiJodHRwczovL2EifQ." + "A" * 86,
    },
)
