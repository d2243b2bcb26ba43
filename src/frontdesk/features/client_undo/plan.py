"""What takes back the changes that a client made to an appointment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from frontdesk.desk.appointment_history import AppointmentChange, Place
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.errors import APPOINTMENT_CHANGED
from frontdesk.systems.port import Capability
from frontdesk.texts import N_

Undoing = Literal["cancel", "restore", "move_back", "unconfirm"]

GONE = N_("The practice's system no longer has this appointment.")
BEGUN = N_("The appointment has begun or is over.")
PASSED = N_("The earlier time has passed.")
TAKEN = N_("The earlier time is no longer free.")
ALREADY_CANCELLED = N_("The client has cancelled it itself: nothing is left of it.")
_NO_PLACE = N_("It is not known where the appointment was before.")
_NOT_HERE = N_("The practice's own system has to change it back.")
_BOOK, _MOVE, _CANCEL, _CONFIRM = (
    "book_appointment",
    "reschedule_appointment",
    "cancel_appointment",
    "confirm_attendance",
)
OF_APPOINTMENTS = (_BOOK, _MOVE, _CANCEL, _CONFIRM)
OF_PATIENTS = ("create_patient", "update_patient")
_STATUS_AFTER = {_BOOK: "booked", _MOVE: "booked", _CANCEL: "cancelled", _CONFIRM: "confirmed"}
_NEEDED: Mapping[Undoing, Capability] = {
    "cancel": Capability.CHANGE_STATUS,
    "restore": Capability.RECORD_ATTENDANCE,
    "move_back": Capability.RESCHEDULE,
    "unconfirm": Capability.RECORD_ATTENDANCE,
}


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """An appointment that the client has changed."""

    appointment_id: str
    patient_id: str
    operations: tuple[str, ...]  # of the client, the oldest first
    last_record: int  # the audit record of its last one
    updated_at: datetime | None  # None: the appointment is gone
    changes: tuple[Undoing, ...]  # to make, in this order
    place: Place | None  # where it is afterwards, or was; None: it is gone
    failure: str | None = None  # why it is not taken back
    done: int = 0  # so many of the changes are made
    put_off: bool = False

    @property
    def is_pending(self) -> bool:
        return self.failure is None and self.done < len(self.changes)

    @property
    def made(self) -> tuple[Undoing, ...]:
        return self.changes[: self.done]

    @property
    def is_undone(self) -> bool:
        return 0 < len(self.changes) == self.done

    @property
    def leaves_its_time(self) -> bool:
        """Whether it will leave the time that it takes now."""
        return self.is_pending and self.changes[0] in ("cancel", "move_back")


def undo_entry(
    appointment_id: str,
    patient_id: str,
    history: Sequence[AppointmentChange],
    client_id: str,
    since: datetime,
    appointment: Appointment | None,
    before_moves: Sequence[Place | None],
    capabilities: frozenset[Capability],
    now: datetime,
) -> UndoEntry:
    """`history` and `before_moves` begin with the oldest. Only what the client did after the last change of anybody
    else is taken back: before that, somebody has looked at the appointment."""
    done_by_client = [each for each in history if each.actor == client_id and each.at >= since]
    last = _after_others(history, client_id, since)
    operations = tuple(each.operation for each in last)
    changes = _changes(operations)
    entry = UndoEntry(
        appointment_id,
        patient_id,
        tuple(each.operation for each in done_by_client),
        done_by_client[-1].record_id,
        None if appointment is None else appointment.updated_at,
        changes,
        None if appointment is None else _place_of(appointment),
    )
    if appointment is None:
        return _kept(entry, GONE)
    if not last or appointment.status != _STATUS_AFTER[operations[-1]]:
        return _kept(entry, APPOINTMENT_CHANGED)
    if not changes:
        return _kept(entry, ALREADY_CANCELLED)
    if appointment.starts_at <= now:
        return _kept(entry, BEGUN)
    if any(_NEEDED[each] not in capabilities for each in changes):
        return _kept(entry, _NOT_HERE)
    if "move_back" not in changes:
        return entry
    moves = operations.count(_MOVE)
    earlier = before_moves[-moves] if moves <= len(before_moves) else None
    if earlier is None:
        return _kept(entry, _NO_PLACE)
    entry = replace(entry, place=earlier)
    return _kept(entry, PASSED) if earlier.starts_at <= now else entry


def _kept(entry: UndoEntry, failure: str) -> UndoEntry:
    return replace(entry, failure=failure)


def _after_others(history: Sequence[AppointmentChange], client_id: str, since: datetime) -> list[AppointmentChange]:
    last: list[AppointmentChange] = []
    for change in history:
        if change.actor != client_id or change.at < since:
            last.clear()
        else:
            last.append(change)
    return last


def _changes(operations: Sequence[str]) -> tuple[Undoing, ...]:
    cancelled = operations[-1:] == (_CANCEL,)
    if _BOOK in operations:
        return () if cancelled else ("cancel",)
    changes: list[Undoing] = ["restore"] if cancelled else []
    if _MOVE in operations:
        changes.append("move_back")  # to its former time, unconfirmed
    elif _CONFIRM in operations:
        changes.append("unconfirm")
    return tuple(changes)


def _place_of(appointment: Appointment) -> Place:
    return Place(
        appointment.provider_id,
        appointment.location_id,
        appointment.visit_type_id,
        appointment.procedure_id,
        appointment.starts_at,
        appointment.ends_at,
    )
