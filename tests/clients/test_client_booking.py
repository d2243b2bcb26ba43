"""The client against a running service: every operation, both grants, plain and async."""

from datetime import UTC, date, datetime, timedelta

import pytest
from frontdesk_client import (
    NULL,
    Conflict,
    ExecutedAtOnce,
    Frontdesk,
    NotFound,
    SlotUnavailable,
    Validation,
)

from tests.clients.running_desk import NEXT_WEEK, Desk


def free_slot(client: Frontdesk, number: int = 0) -> str:
    return client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[number].id


def test_an_agent_books_in_eight_steps(desk: Desk) -> None:
    with desk.agent.client(desk.url) as client:
        assert "appointments:book" in client.get_capabilities().capabilities
        assert client.get_practice().time_zone == "America/New_York"
        patient = client.match_patient(
            first_name="ada", last_name="LOVELACE", phone="(555) 010-0199", dob=date(1985, 12, 10)
        ).items[0]
        location = client.list_locations(name="main st").items[0]
        provider = client.list_providers(location_id=location.id, name="Dr. bob").items[0]
        visit_type = client.list_visit_types(name="follow").items[0]
        procedure = client.list_procedures(visit_type_id=visit_type.id, name="follow").items[0]
        slots = client.search_slots(
            provider_id=provider.id,
            location_id=location.id,
            visit_type_id=visit_type.id,
            procedure_id=procedure.id,
            from_=NEXT_WEEK,
            to=NEXT_WEEK + timedelta(days=14),
        )
        slot = client.get_slot(slot_id=slots.items[0].id)
        assert slot.available
        assert slot.start == slots.items[0].start
        assert slot.start.utcoffset() is not None

        proposal = client.book_appointment(patient_id=patient.id, slot_id=slot.id)
        executed = [proposal.executed]
        assert proposal.read_back["providerName"] == provider.name
        assert datetime.fromisoformat(proposal.read_back["start"]) == slot.start
        assert proposal.expires_at > datetime.now(UTC)
        assert client.get_slot(slot_id=slot.id).available, "nothing has been changed yet"

        booked = proposal.confirm()
        executed.append(proposal.executed)
        assert executed == [False, True]
        assert proposal.confirm() == booked
        appointment = client.get_appointment(appointment_id=booked.appointment_id)
        assert (appointment.status, appointment.start) == ("booked", slot.start)
        assert not client.get_slot(slot_id=slot.id).available


async def test_the_async_client_does_the_same(desk: Desk, patient_id: str) -> None:
    async with desk.agent.async_client(desk.url) as client:
        slots = await client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK)
        proposal = await client.book_appointment(patient_id=patient_id, slot_id=slots.items[0].id)
        assert not proposal.executed
        booked = await proposal.confirm()
        assert await proposal.confirm() == booked
        appointment = await client.get_appointment(appointment_id=booked.appointment_id)
        assert appointment.start == slots.items[0].start


def test_an_integration_writes_at_once_and_the_same_code_is_right(desk: Desk, patient_id: str) -> None:
    with desk.integration.client(desk.url) as client:
        # Not the nurse, who sees two patients at a time.
        slot = client.find_first_available(visit_type_id=20, procedure_id=101, from_=NEXT_WEEK).items[0].id
        proposal = client.book_appointment(patient_id=patient_id, slot_id=slot)
        assert proposal.executed
        assert not client.get_slot(slot_id=slot).available
        with pytest.raises(ExecutedAtOnce, match="integration grant"):
            _ = proposal.read_back
        assert client.get_appointment(appointment_id=proposal.confirm().appointment_id).patient_id == patient_id


def test_an_integration_may_choose_its_key_and_send_again(desk: Desk, patient_id: str) -> None:
    with desk.integration.client(desk.url) as client:
        slot, *_, another = [
            each.id for each in client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK)
        ]
        key = f"visit of {patient_id}"
        first = client.book_appointment(patient_id=patient_id, slot_id=slot, idempotency_key=key).confirm()
        assert client.book_appointment(patient_id=patient_id, slot_id=slot, idempotency_key=key).confirm() == first
        with pytest.raises(Conflict):
            client.book_appointment(patient_id=patient_id, slot_id=another, idempotency_key=key)


def test_a_proposal_can_be_confirmed_by_another_process(desk: Desk, patient_id: str) -> None:
    with desk.agent.client(desk.url) as here, desk.agent.client(desk.url) as elsewhere:
        slot = free_slot(here)
        proposal = here.book_appointment(patient_id=patient_id, slot_id=slot)
        resumed = elsewhere.book_appointment(
            patient_id=patient_id, slot_id=slot, confirmation_token=proposal.confirmation_token
        )
        assert resumed.executed
        assert resumed.confirm() == proposal.confirm()


def test_appointments_are_confirmed_moved_and_cancelled(desk: Desk, patient_id: str, grant: str) -> None:
    with desk.of(grant).client(desk.url) as client:
        booked = client.book_appointment(patient_id=patient_id, slot_id=free_slot(client)).confirm().appointment_id
        assert client.confirm_attendance(appointment_id=booked).confirm().status == "confirmed"
        # The last: the first may be the appointment's own, where another patient has room.
        moved = client.reschedule_appointment(appointment_id=booked, slot_id=free_slot(client, -1)).confirm()
        assert (moved.appointment_id, moved.status) == (booked, "booked")
        assert client.cancel_appointment(appointment_id=booked, reason="feels better").confirm().status == "cancelled"
        appointment = client.get_appointment(appointment_id=booked)
        assert appointment.cancellation_reason == "feels better"
        assert appointment.rescheduled_from is not None
        assert appointment.cancelled_at is not None
        with pytest.raises(Conflict):
            client.cancel_appointment(appointment_id=booked)


def test_patients_are_created_and_updated(desk: Desk, grant: str) -> None:
    with desk.of(grant).client(desk.url) as client:
        created = client.create_patient(
            first_name="Katherine", last_name=f"Johnson {grant}", phone="+1 555 010 0188", dob=date(1918, 8, 26)
        ).confirm()
        client.update_patient(patient_id=created.patient_id, email="kj@example.com").confirm()
        patient = client.get_patient(patient_id=created.patient_id)
        assert (patient.email, patient.dob, patient.patient_kind) == ("kj@example.com", date(1918, 8, 26), "new")
        client.update_patient(patient_id=created.patient_id, email=NULL).confirm()
        assert client.get_patient(patient_id=created.patient_id).email is None


def test_directory_records_are_read_whole(direct: Frontdesk) -> None:
    location = direct.get_location(location_id=2)
    assert location.address is not None
    assert (location.address.line2, location.address.postal_code) == ("Suite 300", "02169")
    assert direct.get_location(location_id=1).address is not None
    assert direct.get_provider(provider_id=11).location_ids == (1, 2)
    assert direct.get_visit_type(visit_type_id=20).patient_kind == "new"


def test_failures_are_exceptions_with_everything_the_service_said(direct: Frontdesk, patient_id: str) -> None:
    with pytest.raises(NotFound) as unknown:
        direct.get_patient(patient_id="pat_0123456789ABCDEFGHIJKL")
    assert (unknown.value.code, unknown.value.status, len(unknown.value.request_id or "")) == ("not_found", 404, 32)

    with pytest.raises(Validation) as invalid:
        direct.list_providers(limit=0, name="x" * 101)
    assert invalid.value.status == 422
    assert {error.field: error.rule for error in invalid.value.errors} == {"limit": "range", "name": "maxLength"}

    slot = free_slot(direct)
    late = direct.book_appointment(patient_id=patient_id, slot_id=slot)
    direct.book_appointment(patient_id=patient_id, slot_id=slot).confirm()
    with pytest.raises((SlotUnavailable, Validation)):
        late.confirm()
    assert not late.executed


def test_ids_with_special_characters_stay_one_part_of_the_path(direct: Frontdesk) -> None:
    for odd in ("../practice", "a/b", "a?b=c", "a#b", "ä%20"):
        with pytest.raises(NotFound):
            direct.get_slot(slot_id=odd)
