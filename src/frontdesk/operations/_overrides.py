"""Bookings against the booking rules, which only staff make: no door offers them, and no scope includes them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from frontdesk.audit.sentences import AuditSentence
from frontdesk.domain.appointments import RESCHEDULABLE, Appointment
from frontdesk.domain.booking_rules import MAX_AFTER_START, MAX_AHEAD, BrokenRule, Rule
from frontdesk.domain.errors import PATIENT_OVERLAP, FieldError, Problem, declined, invalid
from frontdesk.domain.ids import PATIENT_ID, new_appointment_id
from frontdesk.domain.local_time import instant_at
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations._booking import booking_of
from frontdesk.operations._fields import AppointmentId, PatientId, Reason, SlotId, WriteInput
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._operation import Context, Operation, Proposal
from frontdesk.operations._records import AppointmentWritten, Record, visit_read_back, visit_times
from frontdesk.operations._status_changes import require_state
from frontdesk.systems.changes import Book, Override, Reschedule
from frontdesk.systems.port import BookingSeen, Capability, OverrideCheck, SchedulingSystem, needed
from frontdesk.texts import Text

_TOO_LATE = Text(
    "This began more than %(minutes)s minutes ago, and can no longer be booked.", minutes=MAX_AFTER_START.seconds // 60
)
_TOO_FAR = Text("This is more than %(days)s days ahead, further than anybody can book.", days=MAX_AHEAD.days)


class Request(WriteInput):
    slot_id: SlotId
    rules: list[Rule]  # that the staff member was shown
    reason: Reason


class BookRequest(Request):
    patient_id: PatientId


class MoveRequest(Request):
    appointment_id: AppointmentId


class Booked(Record):
    appointment_id: str


async def check_override(
    system: SchedulingSystem, slot: SlotRef | None, patient_id: str, now: datetime, moved: Appointment | None = None
) -> tuple[SlotRef, OverrideCheck]:
    """The slot and the rules that booking it would break. Raises Problem if not even staff may book it, or `moved`
    cannot be moved now."""
    checked = None if slot is None else await needed(system.overrides).check_override(slot, patient_id, now, moved)
    if checked is not None and checked.patient_seen is None:
        raise Problem("not_found", "There is no such patient.")
    if slot is None or checked is None:
        raise Problem("not_found", "There is no such slot.")
    if moved is not None:
        require_state(moved, RESCHEDULABLE, now, only_upcoming=True)
    starts = instant_at(slot.start)
    if starts < now - MAX_AFTER_START:
        raise declined(_TOO_LATE)
    if starts > now + MAX_AHEAD:
        raise declined(_TOO_FAR)
    if not checked.slot.available:
        raise Problem("slot_unavailable", "The practice no longer offers this visit, this provider or this location.")
    if checked.patient_busy:
        raise declined(PATIENT_OVERLAP)
    return slot, checked


async def _book(context: Context, given: BookRequest) -> Proposal:
    if not PATIENT_ID.match(given.patient_id):
        raise Problem("not_found", "There is no such patient.")
    context.subjects.append(given.patient_id)
    slot = context.slot_ids.decode(given.slot_id)
    slot, checked = await check_override(context.system, slot, given.patient_id, context.now)
    change = Book(
        checked.slot.version,
        new_appointment_id(),
        given.patient_id,
        booking_of(slot, checked.slot),
        patient_seen=checked.patient_seen,
        override=_override(given, checked.broken),
    )
    read_back = {"patientId": given.patient_id, **visit_read_back(slot, checked.slot.directory)}
    return Proposal(read_back | _shown(given, checked.broken), change, given.patient_id, _refusal)


def _refusal(seen: BookingSeen) -> Problem | None:
    if seen.patient_busy:
        return declined(PATIENT_OVERLAP)
    return None if seen.available else Problem("slot_unavailable")


async def _move(context: Context, given: MoveRequest) -> Proposal:
    appointment = await existing_appointment(context, given.appointment_id)
    slot = context.slot_ids.decode(given.slot_id)
    slot, checked = await check_override(context.system, slot, appointment.patient_id, context.now, appointment)
    directory = checked.slot.directory
    change = Reschedule(
        checked.slot.version,
        appointment.id,
        appointment.patient_id,
        from_provider_id=appointment.provider_id,
        from_states=RESCHEDULABLE,
        booking=booking_of(slot, checked.slot),
        override=_override(given, checked.broken),
    )
    read_back = {
        "appointmentId": appointment.id,
        "patientId": appointment.patient_id,
        "rescheduledFrom": visit_times(appointment, directory)["start"],
        **visit_read_back(slot, directory),
    }
    return Proposal(read_back | _shown(given, checked.broken), change, appointment.patient_id)


def _override(given: Request, broken: Sequence[BrokenRule]) -> Override | None:
    """None if nothing forbids the booking any more. Raises Problem if it breaks a rule that was not shown."""
    if not given.reason.strip():
        raise invalid([FieldError("reason", "notBlank", Text("%(field)s must not be blank"))])
    if {each.rule for each in broken} - set(given.rules):
        raise Problem("conflict", "This has changed since it was shown: another rule would be broken. Read it again.")
    return Override(tuple(each.rule for each in broken), given.reason) if broken else None


def _shown(given: Request, broken: Sequence[BrokenRule]) -> dict[str, object]:
    return {"brokenRules": [str(each.text) for each in broken], "reason": given.reason}


def _override_write(
    name: str,
    title: str,
    audit: AuditSentence,
    request: type[Request],
    output: type[Record],
    run: Callable[..., Awaitable[Proposal]],
) -> Operation:
    return Operation(
        name=f"console.{name}",
        title=title,
        audit=audit,
        method="POST",
        path="/overrides",
        scope=None,
        kind="write",
        creates=True,
        needs=Capability.OVERRIDE,
        input=request,
        output=output,
        run=run,
    )


OVERRIDE_BOOKING = _override_write(
    "override_booking",
    "Book against the rules",
    AuditSentence(
        "%(actor)s booked an appointment against the rules",
        "%(actor)s booked an appointment for %(names)s against the rules",
    ),
    BookRequest,
    Booked,
    _book,
)
OVERRIDE_MOVE = _override_write(
    "override_move",
    "Move against the rules",
    AuditSentence(
        "%(actor)s moved an appointment against the rules",
        "%(actor)s moved an appointment of %(names)s against the rules",
    ),
    MoveRequest,
    AppointmentWritten,
    _move,
)
