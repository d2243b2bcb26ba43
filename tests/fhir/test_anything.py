"""Arbitrary responses of a FHIR server never cause an internal error."""

from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.systems.changes import PatientDetails
from frontdesk.systems.fhir.capabilities import read_statement
from frontdesk.systems.fhir.resources.appointments import Facts, PracticeMap
from frontdesk.systems.fhir.resources.elements import version_of
from frontdesk.systems.fhir.resources.patients import changed_patient, is_same, parse_patient
from frontdesk.systems.fhir.resources.refusals import refusal_reason
from frontdesk.systems.fhir.resources.slots import calendars, slot

Resource = dict[str, Any]


_NAMES = (
    "resourceType", "id", "meta", "versionId", "lastUpdated", "identifier", "system", "value", "status", "start", "end",
    "slot", "schedule", "reference", "participant", "actor", "serviceType", "coding", "code", "cancelationReason",
    "text", "name", "given", "family", "use", "telecom", "rank", "birthDate", "active", "link", "type", "location",
    "tag", "rest", "mode", "resource", "interaction", "issue", "details", "practitioner", "display", "created",
    "software",
)  # fmt: skip
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(
        ("Patient/1", "Practitioner/chen", "booked", "free", "2026-11-16T14:00:00Z", "official", "phone", "server", "x")
    )
)
_ANYTHING = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(_NAMES), _ANYTHING))
def test_whatever_a_server_sends_is_read_or_left_alone(practice: PracticeMap, members: Resource) -> None:
    resource = {**members, "resourceType": "Appointment", "id": "1"}
    details = PatientDetails("Ada", "King", date(1985, 12, 10), "+1 555 010 0198", None)
    parse_patient(resource, "pat_1", 1, seen=False)
    is_same(resource, "Ada", "King", "0198", date(1985, 12, 10))
    changed_patient(resource, details, "intent")
    practice.appointment(resource, "apt_1", "pat_1", Facts())
    for status in ("confirmed", "cancelled", "arrived", "completed", "noShow"):
        practice.in_status(resource, status, "reason", "intent")
    practice.put_back(resource, practice.place_and_time(resource), "intent")
    practice.differs(resource, resource)
    slot(resource)
    calendars([resource], [resource], practice)
    read_statement(resource)
    refusal_reason(resource)
    version_of(resource)
