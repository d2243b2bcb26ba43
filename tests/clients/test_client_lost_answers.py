"""Lost requests and lost answers, at every point of a booking: the client ends up with exactly one appointment."""

import asyncio
from collections.abc import Callable
from datetime import date

import pytest
from frontdesk_client import AnswerLost, Frontdesk

from tests.clients.fault_proxy import Fault, FaultProxy, answered, cut_after, cut_before, cut_inside, silence
from tests.clients.running_desk import NEXT_WEEK, Desk

BOOKING = "/api/appointments"
LOSSES: list[Fault] = [cut_before, cut_after, cut_inside, answered(504, "<h1>Gateway Timeout</h1>", forwarded=True)]
STEPS = {"agent": ["token", "search", "propose", "confirm"], "integration": ["token", "search", "write"]}
POINTS = [(grant, step) for grant, steps in STEPS.items() for step in range(len(steps))]
BREAK, WAIT_TIMEOUT = 0.3, 30.0  # seconds after which a client gives up: where it is to, and where it is not


def name_of(fault: Fault) -> str:
    return getattr(fault, "__name__", "answered")


def appointments_of(client: Frontdesk, patient_id: str) -> list[str]:
    return [appointment.id for appointment in client.list_appointments(patient_id=patient_id)]


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize(("grant", "point"), POINTS, ids=[f"{grant}-{STEPS[grant][step]}" for grant, step in POINTS])
def test_a_loss_at_any_point_still_gives_one_booking(
    desk: Desk, proxy: FaultProxy, direct: Frontdesk, patient_id: str, loss: Fault, grant: str, point: int
) -> None:
    proxy.reset(*[None] * point, loss)
    with desk.of(grant).client(proxy.url) as client:
        slot = client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
        booked = client.book_appointment(patient_id=patient_id, slot_id=slot.id).confirm()
    assert appointments_of(direct, patient_id) == [booked.appointment_id]
    assert proxy.script == [], "the loss took place"
    assert len(proxy.requests) == len(STEPS[grant]) + 1, "and cost exactly one request"


@pytest.mark.parametrize("loss", [*LOSSES, silence], ids=name_of)
async def test_the_async_client_survives_losing_every_first_answer(
    desk: Desk, proxy: FaultProxy, direct: Frontdesk, patient_id: str, loss: Fault
) -> None:
    proxy.reset(*[loss, None] * len(STEPS["agent"]))
    timeout = 1.0 if loss is silence else 10.0
    async with desk.agent.async_client(proxy.url, timeout=timeout) as client:
        slots = await client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK)
        proposal = await client.book_appointment(patient_id=patient_id, slot_id=slots.items[0].id)
        booked = await proposal.confirm()
    assert await asyncio.to_thread(appointments_of, direct, patient_id) == [booked.appointment_id]
    assert proxy.script == [], "every loss took place"
    # A machine may be so slow that an answer comes too late by itself.
    needed = 2 * len(STEPS["agent"])
    assert len(proxy.requests) >= needed if loss is silence else len(proxy.requests) == needed


@pytest.mark.parametrize("loss", [cut_before, cut_after, cut_inside], ids=name_of)
def test_confirming_again_by_hand_after_giving_up_gives_the_same_booking(
    desk: Desk, proxy: FaultProxy, direct: Frontdesk, patient_id: str, loss: Fault
) -> None:
    with desk.agent.client(proxy.url) as client:
        slot = direct.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
        proposal = client.book_appointment(patient_id=patient_id, slot_id=slot.id)
        proxy.reset(*[loss] * 10)
        client._deadline = BREAK
        with pytest.raises(AnswerLost):
            proposal.confirm()
        assert not proposal.executed
        proxy.reset()
        client._deadline = WAIT_TIMEOUT
        booked = proposal.confirm()
    assert appointments_of(direct, patient_id) == [booked.appointment_id]


def test_an_integration_resends_with_its_own_key_after_giving_up(
    desk: Desk, proxy: FaultProxy, direct: Frontdesk, patient_id: str
) -> None:
    slot = direct.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
    with desk.integration.client(proxy.url) as client:
        client.get_capabilities()
        proxy.reset(*[cut_after] * 10)
        client._deadline = BREAK
        with pytest.raises(AnswerLost):
            client.book_appointment(patient_id=patient_id, slot_id=slot.id, idempotency_key=f"visit of {patient_id}")
        proxy.reset()
        client._deadline = WAIT_TIMEOUT
        booked = client.book_appointment(
            patient_id=patient_id, slot_id=slot.id, idempotency_key=f"visit of {patient_id}"
        ).confirm()
    assert appointments_of(direct, patient_id) == [booked.appointment_id]


def _create(client: Frontdesk, _appointment: str, _slot: str) -> object:
    return client.create_patient(
        first_name="Once", last_name="Only", phone=f"+1 555 {abs(hash(_appointment)) % 10**7:07}", dob=date(1980, 2, 3)
    ).confirm()


WRITES: dict[str, Callable[[Frontdesk, str, str], object]] = {
    "create_patient": _create,
    "confirm_attendance": lambda client, appointment, _: client.confirm_attendance(
        appointment_id=appointment
    ).confirm(),
    "reschedule_appointment": lambda client, appointment, slot: client.reschedule_appointment(
        appointment_id=appointment, slot_id=slot
    ).confirm(),
    "cancel_appointment": lambda client, appointment, _: client.cancel_appointment(
        appointment_id=appointment
    ).confirm(),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_other_write_survives_losing_its_answers_too(
    desk: Desk, proxy: FaultProxy, direct: Frontdesk, patient_id: str, grant: str, name: str
) -> None:
    slots = direct.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items
    booked = direct.book_appointment(patient_id=patient_id, slot_id=slots[0].id).confirm()
    with desk.of(grant).client(proxy.url) as client:
        client.get_capabilities()
        proxy.reset(cut_after, None, cut_after, None)
        assert WRITES[name](client, booked.appointment_id, slots[-1].id)


def test_every_resend_of_a_write_is_recognisable_as_one(
    desk: Desk, proxy: FaultProxy, patient_id: str, grant: str
) -> None:
    with desk.of(grant).client(proxy.url) as client:
        slot = client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
        proxy.reset(cut_after, None, cut_after, None)
        client.book_appointment(patient_id=patient_id, slot_id=slot.id).confirm()
    sent = proxy.sent(BOOKING)
    keys = {seen.headers["idempotency-key"] for seen in sent}
    assert len(keys) == 1
    if grant == "agent":
        tokens = [seen.document.get("confirmationToken") for seen in sent]
        assert tokens[:2] == [None, None]
        assert tokens[2] == tokens[3] is not None
    else:
        assert len(sent) == 2
        assert sent[0].body == sent[1].body
