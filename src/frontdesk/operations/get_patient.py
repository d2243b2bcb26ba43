from frontdesk.audit.sentences import AuditSentence
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import Input, PatientId
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import PATIENTS, Context, Operation
from frontdesk.operations._records import PatientRecord, record_body
from frontdesk.systems.port import Capability


class Request(Input):
    patient_id: PatientId


async def run(context: Context, given: Request) -> dict[str, object]:
    """Reads one patient's record. Use it to check what is on file before update_patient. Do not read protected details
    out to anyone who has not been identified with match_patient."""
    return record_body(PatientRecord, await existing_patient(context, given.patient_id))


OPERATION = Operation(
    name="get_patient",
    title="Read one patient",
    audit=AuditSentence("%(actor)s read a patient's record", "%(actor)s read the record of %(names)s"),
    group=PATIENTS,
    path="/patients/{patientId}",
    scope="patients:read",
    needs=Capability.READ_PATIENTS,
    input=Request,
    output=PatientRecord,
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"patientId": examples.PATIENT_ID},
    example_answer={
        "id": examples.PATIENT_ID,
        "number": 1,
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dob": "1985-12-10",
        "phone": "+1 555 010 0199",
        "patientKind": "existing",
    },
)
