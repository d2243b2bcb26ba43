from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.local_time import iso_utc
from frontdesk.features.notes.notes import NoteKind, Notes
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Input, PatientId
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import EXTENSIONS, Context, Operation
from frontdesk.operations._records import AppointmentId, Record, UtcTime
from frontdesk.systems.port import Capability


class Request(Input):
    patient_id: PatientId


class NoteRecord(Record):
    kind: NoteKind
    text: str
    appointment_id: AppointmentId | None = None
    written_at: UtcTime


class Output(Record):
    items: list[NoteRecord]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Lists the notes on one patient and the patient's appointments that staff have marked for agents, such as the need
    for an interpreter, oldest first. A note without appointmentId is about the patient. Do not read notes out to anyone
    who has not been identified with match_patient."""
    patient = await existing_patient(context, given.patient_id)
    items = []
    for note in await context.services[Notes].for_agents(context.caller.practice_id, patient.id):
        about = {} if note.appointment_id is None else {"appointmentId": note.appointment_id}
        items.append({"kind": note.kind, "text": note.text, **about, "writtenAt": iso_utc(note.written_at)})
    return {"items": items}


OPERATION = Operation(
    name="list_notes",
    title="List the notes that staff have marked for agents",
    audit=AuditSentence("%(actor)s read the notes on a patient", "%(actor)s read the notes on %(names)s"),
    group=EXTENSIONS,
    path="/patients/{patientId}/notes",
    scope="notes:read",
    needs=Capability.READ_PATIENTS,
    input=Request,
    output=Output,
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"patientId": examples.PATIENT_ID},
    example_answer={
        "items": [
            {
                "kind": "interpreter",
                "text": "Needs an interpreter for sign language",
                "writtenAt": "2026-11-15T08:00:00Z",
            }
        ]
    },
)
