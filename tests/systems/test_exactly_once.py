"""What every scheduling system must do: execute a write once, and record what it did or why it did not."""

from collections.abc import Awaitable, Callable
from datetime import date

import pytest

from frontdesk.domain.ids import new_appointment_id, new_patient_id
from frontdesk.operations._booking import booking_of
from frontdesk.systems.changes import Book, ChangeStatus, CreatePatient, PatientDetails
from frontdesk.systems.port import AppointmentFilter, Intent, Outcome
from tests.systems.desk import NINE, TRACEPARENT, Desk, intent, ref

Act = Callable[[Desk, str], Awaitable[Outcome]]


async def test_a_write_with_an_intent_executes_once(desk: Desk) -> None:
    ada = await desk.person()
    first = await desk.book(ada, intent=intent())
    assert first.kind == "executed"
    again = await desk.book(ada, intent=intent())
    assert (again.kind, again.result) == ("replayed", first.result)
    other = await desk.book(ada, NINE + 60, intent=intent(fingerprint=b"other"))
    assert other.kind == "mismatch"
    token = Intent(b"nobody's", b"f", is_key=False)
    assert (await desk.book(ada, NINE + 60, intent=token)).kind == "unrecognized"
    page = await (await desk.system()).appointments.list_appointments(AppointmentFilter(), limit=9, after=None)
    assert len(page.appointments) == 1


async def test_a_refused_write_leaves_its_intent_usable(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    await desk.booked(alan)
    refused = await desk.book(ada, intent=intent())
    assert refused.kind == "slot_unavailable"
    assert (await desk.book(ada, NINE + 15, intent=intent())).kind == "executed"


async def test_a_write_judged_by_an_old_directory_is_stale(desk: Desk) -> None:
    ada, system = await desk.person(), await desk.system()
    checked = await system.bookings.check_booking(ref(NINE), ada.id, desk.now, None)
    assert checked is not None
    change = Book(checked.slot.version - 1, new_appointment_id(), ada.id, booking_of(ref(NINE), checked.slot))
    outcome = await system.changes.perform(change, desk.record())
    assert outcome.kind == "stale"
    assert NINE in await desk.open_starts()


async def test_a_status_is_not_recorded_of_an_appointment_that_was_moved_meanwhile(desk: Desk) -> None:
    appointment_id, system = await desk.booked(await desk.person()), await desk.system()
    read = await system.appointments.get_appointment(appointment_id)
    assert read is not None
    assert (await desk.move(appointment_id, NINE + 60)).kind == "executed"
    change = ChangeStatus(appointment_id, "arrived", ("booked",), only_upcoming=False, starts_at=read.starts_at)
    assert (await system.changes.perform(change, desk.record())).kind == "stale"
    moved = await (await desk.system()).appointments.get_appointment(appointment_id)
    assert moved is not None
    assert moved.status == "booked"


async def test_a_refused_write_is_on_record_under_those_who_exist(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    await desk.booked(ada)
    refused = await desk.book(alan)
    # What the native system only saw is recorded by the engine.
    expected = [] if refused.seen is not None else [("slot_unavailable", [alan.id])]
    ada = PatientDetails("Ada", "Lovelace", date(1985, 12, 10), "5550100199", None)
    await (await desk.system()).changes.perform(CreatePatient(new_patient_id(), ada), desk.record())
    async with desk.world.database.transaction(desk.practice_id) as connection:
        records = await connection.fetch("SELECT outcome, subject_ids FROM audit_record ORDER BY record_id")
    assert [tuple(row) for row in records[1:]] == [*expected, ("conflict", [])]


@pytest.mark.parametrize(
    ("act", "event"),
    [
        (lambda desk, booked: desk.set_status(booked, "cancelled"), "appointment.cancelled"),
        (lambda desk, booked: desk.set_status(booked, "confirmed"), "appointment.confirmed"),
        (lambda desk, booked: desk.move(booked, NINE + 60), "appointment.rescheduled"),
        (lambda desk, booked: desk.set_status(booked, "arrived"), "appointment.arrived"),
        (lambda desk, booked: desk.set_status(booked, "completed"), "appointment.completed"),
        (lambda desk, booked: desk.set_status(booked, "noShow"), "appointment.noShow"),
    ],
    ids=["cancel", "confirm", "move", "arrive", "complete", "miss"],
)
async def test_every_write_is_on_record_and_announced_once(desk: Desk, act: Act, event: str) -> None:
    ada = await desk.person()
    appointment_id = await desk.booked(ada)
    assert (await act(desk, appointment_id)).kind == "executed"
    async with desk.world.database.transaction(desk.practice_id) as connection:
        events = await connection.fetch(
            """SELECT o.type, o.subject::text, t.traceparent
               FROM outbox o JOIN event_trace t USING (practice_id, event_id) ORDER BY o.event_id"""
        )
        records = await connection.fetch("SELECT outcome, subject_ids FROM audit_record ORDER BY record_id")
    assert [(row["type"], row["traceparent"]) for row in events] == [
        ("appointment.booked", TRACEPARENT),
        (event, TRACEPARENT),
    ]
    assert all(appointment_id in row["subject"] and ada.id in row["subject"] for row in events)
    assert [(row["outcome"], set(row["subject_ids"])) for row in records] == [
        ("executed", {appointment_id, ada.id}),
        ("executed", {appointment_id, ada.id}),
    ]
