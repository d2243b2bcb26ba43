"""Every scheduling system finds, creates and updates patients."""

from dataclasses import replace
from datetime import date

from frontdesk.domain.ids import PATIENT_ID, new_patient_id
from frontdesk.domain.patients import Patient
from frontdesk.systems.changes import CreatePatient, PatientDetails, UpdatePatient
from tests.systems.desk import EXAM, NINE, Desk


def as_details(patient: Patient) -> PatientDetails:
    return PatientDetails(patient.first_name, patient.last_name, patient.dob, patient.phone, patient.email)


async def test_people_are_matched_without_regard_to_spelling(desk: Desk) -> None:
    ada = await desk.person("Ada")
    assert PATIENT_ID.match(ada.id)
    assert (ada.first_name, ada.last_name, ada.dob, ada.seen) == ("Ada", "Lovelace", date(1985, 12, 10), True)
    jose = await desk.person("José")
    assert jose.last_name == "Núñez-O'Brien"
    grace = await desk.person("Grace")
    assert (grace.seen, grace.email) == (False, "grace@example.com")
    system = await desk.system()
    assert await system.matching.match_patients("Ada", "Lovelace", "555 010 0100", date(1985, 12, 10)) == []
    assert await system.matching.match_patients("Ada", "Lovelace", "555 010 0199", date(1985, 12, 11)) == []


async def test_people_are_known_by_their_ids_all_at_once(desk: Desk) -> None:
    ada, grace = await desk.person("Ada"), await desk.person("Grace")
    found = await (await desk.system()).patients.contacts([ada.id, grace.id, new_patient_id()])
    assert {key: (each.last_name, each.dob, each.phone) for key, each in found.items()} == {
        ada.id: ("Lovelace", ada.dob, ada.phone),
        grace.id: ("Hopper", grace.dob, grace.phone),
    }
    assert await (await desk.system()).patients.contacts([]) == {}


async def test_a_patient_keeps_id_and_number(desk: Desk) -> None:
    ada, grace = await desk.person("Ada"), await desk.person("Grace")
    assert ada.number != grace.number
    system = await desk.system()
    assert await system.patients.get_patient(ada.id) == ada
    assert await system.patients.get_patient(ada.number) == ada
    assert await system.patients.get_patient(new_patient_id()) is None
    assert await system.patients.get_patient(99999) is None
    assert (await desk.person("Ada")).id == ada.id


async def test_a_new_patient_can_be_found_and_booked(desk: Desk) -> None:
    system = await desk.system()
    dob, phone = date(1978, 8, 26), "+1 555 010 0155"
    details = PatientDetails("Katherine", "Johnson", dob, phone, "k@example.com")
    outcome = await system.changes.perform(CreatePatient(new_patient_id(), details), desk.record())
    assert outcome.kind == "executed"
    assert outcome.result is not None
    [found] = await system.matching.match_patients("katherine", "JOHNSON", "0155", dob)
    assert found.id == outcome.result["patientId"]
    assert (found.phone, found.email, found.seen) == (phone, "k@example.com", False)
    assert await desk.booked(found, NINE, EXAM)


async def test_the_same_person_is_not_created_twice(desk: Desk) -> None:
    details = PatientDetails("ADA", "Love-lace", date(1985, 12, 10), "5550100199", None)
    outcome = await (await desk.system()).changes.perform(CreatePatient(new_patient_id(), details), desk.record())
    assert (outcome.kind, outcome.reason) == ("conflict", "patient_exists")


async def test_a_patient_is_changed_and_nothing_else_of_them(desk: Desk) -> None:
    grace, system = await desk.person("Grace"), await desk.system()
    assert await system.patients.get_patient(grace.id) == grace
    details = PatientDetails("Grace", "Murray", grace.dob, "+1 555 010 0143", grace.email)
    outcome = await system.changes.perform(UpdatePatient(grace.id, as_details(grace), details), desk.record())
    assert (outcome.kind, outcome.result) == ("executed", {"patientId": grace.id})
    changed = await (await desk.system()).patients.get_patient(grace.id)
    assert changed == replace(grace, last_name="Murray", phone="+1 555 010 0143")


async def test_a_patient_who_was_changed_meanwhile_is_stale(desk: Desk) -> None:
    grace, one, other = await desk.person("Grace"), await desk.system(), await desk.system()
    for system in (one, other):
        await system.patients.get_patient(grace.id)
    before = as_details(grace)
    moved = UpdatePatient(grace.id, before, replace(before, phone="+1 555 010 0143"))
    assert (await one.changes.perform(moved, desk.record())).kind == "executed"
    written = UpdatePatient(grace.id, before, replace(before, email="hopper@example.com"))
    assert (await other.changes.perform(written, desk.record())).kind == "stale"
    assert await (await desk.system()).patients.get_patient(grace.id) == replace(grace, phone="+1 555 010 0143")


async def test_a_patient_is_not_changed_into_another(desk: Desk) -> None:
    grace, system = await desk.person("Grace"), await desk.system()
    await system.patients.get_patient(grace.id)
    details = PatientDetails("Ada", "Lovelace", date(1985, 12, 10), "+1 555 010 0199", None)
    outcome = await system.changes.perform(UpdatePatient(grace.id, as_details(grace), details), desk.record())
    assert (outcome.kind, outcome.reason) == ("conflict", "patient_exists")


async def test_many_are_told_apart_at_once(desk: Desk) -> None:
    people = [await desk.person(name) for name in ("Ada", "Alan", "Grace", "José")]
    found = await (await desk.system()).patients.contacts([*(each.id for each in people), new_patient_id()])
    assert {key: (contact.name, contact.dob, contact.phone) for key, contact in found.items()} == {
        each.id: (f"{each.first_name} {each.last_name}", each.dob, each.phone) for each in people
    }
    assert await (await desk.system()).patients.contacts([]) == {}
