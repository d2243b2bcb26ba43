"""What a person does goes through the engine, under their own name, once."""

import pytest

from frontdesk.access.staff.members import Role
from frontdesk.console.actions.staff_member import Person, require
from frontdesk.domain.errors import Problem
from tests.console.signing_in import staff_member
from tests.world import World, patient_id, slots


async def person_of(world: World, role: Role = "staff", practice: str = "harbor") -> Person:
    added = await staff_member(world, role, practice=practice)
    version = await world.database.fetchval("SELECT version FROM practice WHERE slug = $1", practice)
    return Person(added.staff_id, added.name, role, added.practice_id, practice, version)


async def test_a_booking_of_a_person_is_made_at_once_and_under_their_id(world: World) -> None:
    person, agent = await person_of(world), await world.client()
    wanted = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    first = await world.service.desk.run(person, "book_appointment", wanted, idempotency_key="pressed twice")
    again = await world.service.desk.run(person, "book_appointment", wanted, idempotency_key="pressed twice")
    assert first == again, "one appointment"
    async with world.database.transaction(person.practice_id) as connection:
        booked = await connection.fetch("SELECT booked_by FROM appointment WHERE practice_id = $1", person.practice_id)
        actors = await connection.fetch(
            "SELECT actor FROM audit_record WHERE practice_id = $1 AND operation = 'book_appointment'",
            person.practice_id,
        )
    assert [row["booked_by"] for row in booked] == [person.staff_id]
    assert {row["actor"] for row in actors} == {person.staff_id}


async def test_a_persons_reads_of_patients_are_recorded_under_their_id(world: World) -> None:
    person, agent = await person_of(world), await world.client()
    patient = await patient_id(agent)
    body = await world.service.desk.run(person, "get_patient", {"patientId": patient})
    assert body["id"] == patient
    async with world.database.transaction(person.practice_id) as connection:
        row = await connection.fetchrow(
            "SELECT actor, subject_ids FROM audit_record WHERE practice_id = $1 ORDER BY record_id DESC LIMIT 1",
            person.practice_id,
        )
    assert (row["actor"], row["subject_ids"]) == (person.staff_id, [patient])


async def test_another_practices_records_do_not_exist_for_a_person(world: World) -> None:
    person, agent = await person_of(world, practice="other"), await world.client()
    with pytest.raises(Problem) as caught:
        await world.service.desk.run(person, "get_patient", {"patientId": await patient_id(agent)})
    assert caught.value.code == "not_found"


async def test_what_is_for_admins_is_refused_to_staff_by_the_action_itself(world: World) -> None:
    staff, admin = await person_of(world), await person_of(world, "admin")
    require(staff, "staff")
    require(admin, "staff")
    require(admin, "admin")
    with pytest.raises(Problem) as caught:
        require(staff, "admin")
    assert caught.value.status == 403
    for attempt in (
        world.service.desk.colleagues.everybody(staff),
        world.service.desk.colleagues.add(staff, "Mallory", "admin", ""),
        world.service.desk.colleagues.link(staff, admin.staff_id),
        world.service.desk.colleagues.change(staff, admin.staff_id, "disable"),
    ):
        with pytest.raises(Problem) as caught:
            await attempt
        assert caught.value.code == "forbidden_scope"
