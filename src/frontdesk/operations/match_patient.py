from collections.abc import Sequence
from typing import Literal

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.domain.patients import Patient
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import BirthDate, Input, Name, PhonePart
from frontdesk.operations._operation import PATIENTS, Context, Operation, unpublished
from frontdesk.operations._records import PatientRecord, Record, record_body
from frontdesk.systems.port import Capability


class Request(Input):
    needs_today = True

    first_name: Name
    last_name: Name
    phone: PhonePart
    dob: BirthDate


class MatchItem(Record):
    id: str
    patient_kind: Literal["new", "existing"]


class Output(Record):
    items: list[MatchItem]


class FullOutput(Record):
    items: list[PatientRecord]


async def run(context: Context, given: Request) -> dict[str, object]:
    """Finds a patient by legal first and last name, phone and date of birth; all four must match. Start a booking with
    it. The item's id is the patientId; patientKind tells which visit types fit. No match is not_found: check the
    spelling with the person, then offer create_patient. Never guess or reuse ids."""
    return {"items": [{"id": each.id, "patientKind": each.patient_kind} for each in await _matching(context, given)]}


async def run_in_full(context: Context, given: Request) -> dict[str, object]:
    """Finds the same patients with their records."""
    return {"items": [record_body(PatientRecord, each) for each in await _matching(context, given)]}


async def _matching(context: Context, given: Request) -> Sequence[Patient]:
    found = await context.system.matching.match_patients(given.first_name, given.last_name, given.phone, given.dob)
    if not found:
        raise Problem("not_found", "No patient matches all four fields.")
    context.subjects.extend(patient.id for patient in found)
    return found


OPERATION = Operation(
    name="match_patient",
    title="Find a patient",
    audit=AuditSentence("%(actor)s searched for a patient", "%(actor)s searched for a patient and found %(names)s"),
    group=PATIENTS,
    method="POST",
    path="/patients/match",
    scope="patients:read",
    needs=Capability.MATCH_PATIENTS,
    input=Request,
    output=Output,
    run=run,
    errors=("not_found",),
    reads_phi=True,
    example={"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"},
    example_answer={"items": [{"id": examples.PATIENT_ID, "patientKind": "existing"}]},
)

# For the FHIR door, which answers with whole patients.
MATCHES_IN_FULL = unpublished(OPERATION, input=Request, output=FullOutput, run=run_in_full)
