from dataclasses import replace
from typing import Self

from pydantic import model_validator

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.errors import Problem
from frontdesk.domain.patients import Patient
from frontdesk.operations import _examples as examples
from frontdesk.operations._fields import BirthDate, Name, PatientId, Phone, RemovableEmail, WriteInput, broken
from frontdesk.operations._lookups import existing_patient
from frontdesk.operations._operation import PATIENTS, Context, Operation, Proposal
from frontdesk.operations._records import PatientWritten
from frontdesk.systems.changes import PatientDetails, UpdatePatient
from frontdesk.systems.port import Capability

_MATCHED = ("first_name", "last_name", "phone", "dob")
_FIELDS = (*_MATCHED, "email")


class Request(WriteInput):
    needs_today = True

    patient_id: PatientId
    first_name: Name | None = None
    last_name: Name | None = None
    phone: Phone | None = None
    dob: BirthDate | None = None
    email: RemovableEmail = None

    @property
    def removes_email(self) -> bool:
        return self.email is None and "email" in self.model_fields_set

    @model_validator(mode="after")
    def _something(self) -> Self:
        if all(getattr(self, name) is None for name in _FIELDS) and not self.removes_email:
            raise broken("required", "at least one of firstName, lastName, phone, dob and email is required")
        return self

    def given_fields(self) -> dict[str, object]:
        return super().given_fields() | ({"email": None} if self.removes_email else {})


async def run(context: Context, given: Request) -> Proposal:
    """Changes a patient's name, phone, date of birth or e-mail; send only what changes. An e-mail of null removes it.
    Identify the person with match_patient first; never change what they did not ask for. The first call only proposes:
    read the readBack aloud, and after a clear yes call again with the same arguments plus confirmationToken."""
    patient = await existing_patient(context, given.patient_id)
    before = PatientDetails(**{name: getattr(patient, name) for name in _FIELDS})
    details = replace(before, **{name: value for name in _FIELDS if (value := getattr(given, name)) is not None})
    if given.removes_email:
        details = replace(details, email=None)
    change = UpdatePatient(patient.id, before, details)
    # Also if nothing changes: while the client has to wait, a right guess must look like a wrong one.
    if any(getattr(given, name) is not None for name in _MATCHED):
        same = await context.system.matching.match_patients(
            details.first_name, details.last_name, details.phone, details.dob
        )
        others = [other.id for other in same if other.id != patient.id]
        if others and change.affects_matching:
            context.subjects.extend(others)
            raise Problem(
                "conflict", "Another patient with this name, date of birth and phone number is already on file."
            )
    return Proposal(_read_back(given, patient), change)


def _read_back(given: Request, patient: Patient) -> dict[str, object]:
    """The fields to be written, and the patient's name, so that a person hears when it is the wrong patient."""
    fields = given.given_fields()
    on_file = {"firstName": patient.first_name, "lastName": patient.last_name}
    previous = {
        f"previous{name[0].upper()}{name[1:]}": value
        for name, value in on_file.items()
        if fields.get(name, value) != value
    }
    return {**on_file, **previous, **fields}


OPERATION = Operation(
    name="update_patient",
    title="Update a patient",
    audit=AuditSentence("%(actor)s changed a patient's record", "%(actor)s changed the record of %(names)s"),
    group=PATIENTS,
    method="PATCH",
    path="/patients/{patientId}",
    scope="patients:write",
    kind="write",
    overwrites=True,
    needs=Capability.UPDATE_PATIENTS,
    input=Request,
    output=PatientWritten,
    run=run,
    errors=("not_found", "conflict"),
    example={"patientId": examples.PATIENT_ID, "phone": "+1 555 010 0143"},
    example_answer={"patientId": examples.PATIENT_ID},
    example_read_back={**examples.PATIENT_NAME, "patientId": examples.PATIENT_ID, "phone": "+1 555 010 0143"},
)
