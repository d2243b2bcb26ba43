from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import PATIENT_EXISTS, Problem
from frontdesk.domain.ids import new_patient_id
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import BirthDate, Email, Name, Phone, WriteInput
from frontdesk.operations._operation import PATIENTS, Context, Operation, Proposal
from frontdesk.operations._records import PatientWritten
from frontdesk.systems.changes import CreatePatient, PatientDetails
from frontdesk.systems.port import Capability


class Request(WriteInput):
    needs_today = True

    first_name: Name
    last_name: Name
    phone: Phone
    dob: BirthDate
    email: Email | None = None


async def run(context: Context, given: Request) -> Proposal:
    """Puts a new patient on file. Call it only after match_patient found nobody and the person confirmed the spelling.
    The first call only proposes: read the readBack aloud, and after a clear yes call again with the same arguments plus
    confirmationToken. Then continue with list_visit_types; a new patient needs a visit type for new patients."""
    same = await context.system.matching.match_patients(given.first_name, given.last_name, given.phone, given.dob)
    if same:
        context.subjects.extend(patient.id for patient in same)
        raise Problem("conflict", PATIENT_EXISTS)
    details = PatientDetails(given.first_name, given.last_name, given.dob, given.phone, given.email)
    return Proposal(given.given_fields(), CreatePatient(new_patient_id(), details))


OPERATION = Operation(
    name="create_patient",
    title="Create a patient",
    audit=AuditSentence("%(actor)s added a patient", "%(actor)s added the patient %(names)s"),
    group=PATIENTS,
    method="POST",
    path="/patients",
    scope="patients:write",
    kind="write",
    creates=True,
    needs=Capability.CREATE_PATIENTS,
    input=Request,
    output=PatientWritten,
    run=run,
    errors=("conflict",),
    example={"firstName": "Grace", "lastName": "Hopper", "phone": "+1 555 010 0142", "dob": "1986-12-09"},
    example_answer={"patientId": examples.PATIENT_ID},
    example_read_back={"firstName": "Grace", "lastName": "Hopper", "dob": "1986-12-09", "phone": "+1 555 010 0142"},
)
