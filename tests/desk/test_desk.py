"""What staff do goes through the engine, under their own id, once."""

import pytest

from frontdesk.domain.errors import Problem
from tests.desk.acting import acting
from tests.support.world import World, patient_id, slots


async def test_a_booking_of_a_staff_member_is_made_at_once_and_under_their_id(world: World) -> None:
    context, agent = await acting(world), await world.client()
    wanted = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    first = await world.service.desk.run(context, "book_appointment", wanted, idempotency_key="pressed twice")
    again = await world.service.desk.run(context, "book_appointment", wanted, idempotency_key="pressed twice")
    assert first == again, "one appointment"
    async with world.database.transaction(context.practice_id) as connection:
        booked = await connection.fetch("SELECT booked_by FROM appointment WHERE practice_id = $1", context.practice_id)
        actors = await connection.fetch(
            "SELECT actor FROM audit_record WHERE practice_id = $1 AND operation = 'book_appointment'",
            context.practice_id,
        )
    assert [row["booked_by"] for row in booked] == [context.staff.staff_id]
    assert {row["actor"] for row in actors} == {context.staff.staff_id}


async def test_a_staff_members_reads_of_patients_are_recorded_under_their_id(world: World) -> None:
    context, agent = await acting(world), await world.client()
    patient = await patient_id(agent)
    body = await world.service.desk.run(context, "get_patient", {"patientId": patient})
    assert body["id"] == patient
    async with world.database.transaction(context.practice_id) as connection:
        row = await connection.fetchrow(
            "SELECT actor, subject_ids FROM audit_record WHERE practice_id = $1 ORDER BY record_id DESC LIMIT 1",
            context.practice_id,
        )
    assert (row["actor"], row["subject_ids"]) == (context.staff.staff_id, [patient])


async def test_another_practices_records_do_not_exist_for_staff(world: World) -> None:
    context, agent = await acting(world, practice="other"), await world.client()
    with pytest.raises(Problem) as caught:
        await world.service.desk.run(context, "get_patient", {"patientId": await patient_id(agent)})
    assert caught.value.code == "not_found"
