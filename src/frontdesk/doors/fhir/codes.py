"""Code systems and extensions of ours in FHIR resources."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource

VISIT_TYPE = "urn:frontdesk:visit-type"
PROCEDURE = "urn:frontdesk:procedure"
PATIENT_KIND = "urn:frontdesk:patient-kind"
PATIENT_NUMBER = "urn:frontdesk:patient-number"
DURATION = "urn:frontdesk:duration-minutes"
ACCEPTS_NEW_PATIENTS = "urn:frontdesk:accepts-new-patients"
CONFIRMATION = "urn:frontdesk:confirmation"  # of a challenge
CONFIRMED_BY = "urn:frontdesk:confirmation-token"  # of the resend
INTENT = "urn:frontdesk:intent"  # identifies a write of another frontdesk
TIME_ZONE = "http://hl7.org/fhir/StructureDefinition/timezone"


def service_type(record: dict[str, Any]) -> list[Resource]:
    """The visit type and the procedure of a slot or an appointment, with their names if the record has them."""
    return [
        _concept(VISIT_TYPE, record["visitTypeId"], record.get("visitTypeName")),
        _concept(PROCEDURE, record["procedureId"], record.get("procedureName")),
    ]


def _concept(system: str, code: int, name: str | None) -> Resource:
    coding = {"system": system, "code": str(code)}
    return {"coding": [coding]} if name is None else {"coding": [coding | {"display": name}], "text": name}


def tokens(concepts: list[Resource]) -> list[str]:
    """The codings of concepts as `system|code`."""
    return [f"{coding['system']}|{coding['code']}" for concept in concepts for coding in concept["coding"]]
