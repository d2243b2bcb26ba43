"""One appointment in the console: its details, its history, and the attendance that staff record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.console.actions.actors import actors_of
from frontdesk.console.actions.context import ActionContext
from frontdesk.console.actor import Actor
from frontdesk.domain.appointments import CANCELLABLE, CONFIRMABLE, RECORDABLE, RESCHEDULABLE, Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPOINTMENT_ID
from frontdesk.domain.local_time import local_date, zone
from frontdesk.domain.patients import Patient
from frontdesk.engine.execute import Engine
from frontdesk.operations import Context, Operation, Proposal
from frontdesk.operations._fields import AppointmentId, WriteInput
from frontdesk.operations._lookups import existing_appointment
from frontdesk.operations._records import AppointmentWritten
from frontdesk.operations._steps import require_state, status_proposal
from frontdesk.store.database import Database
from frontdesk.systems.port import Capability

_HISTORY = "SELECT * FROM appointment_history($1, $2, NULL)"
_UPCOMING = {
    "confirm_attendance": CONFIRMABLE,
    "reschedule_appointment": RESCHEDULABLE,
}


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the audit trail about an appointment."""

    at: datetime
    actor: Actor
    operation: str
    outcome: str


@dataclass(frozen=True, slots=True)
class AppointmentView:
    appointment: Appointment
    patient: Patient | None
    provider: str
    location: str
    visit_type: str
    procedure: str
    zone: str
    start: datetime
    end: datetime
    booked_by: Actor | None
    history: Sequence[Happening]
    may: frozenset[str]  # operations, and statuses that can be recorded
    records_attendance: bool


@dataclass(frozen=True, slots=True)
class Appointments:
    database: Database
    engine: Engine

    async def read(self, context: ActionContext, appointment_id: str) -> AppointmentView:
        system = await self.engine.systems(context.staff.caller())
        found = await system.get_appointment(appointment_id) if APPOINTMENT_ID.match(appointment_id) else None
        if found is None:
            raise Problem("not_found", "There is no such appointment.")
        patient = await system.get_patient(found.patient_id)
        directory = await system.directory()
        rows = await self.database.fetch(_HISTORY, context.practice_id, [found.id])
        booked_by = found.booked_by or next(
            (r["actor"] for r in rows if r["operation"] == "book_appointment" and r["outcome"] == "executed"), None
        )
        actors = await actors_of(
            self.database, context.practice_id, {*(row["actor"] for row in rows), *([booked_by] if booked_by else [])}
        )
        records_attendance = Capability.RECORD_ATTENDANCE in system.capabilities
        await context.record("console.appointment", found.id, found.patient_id, read=True)
        time_zone = directory.locations[found.location_id].time_zone
        return AppointmentView(
            appointment=found,
            patient=patient,
            zone=time_zone,
            start=found.starts_at.astimezone(zone(time_zone)),
            end=found.ends_at.astimezone(zone(time_zone)),
            booked_by=None if booked_by is None else actors[booked_by],
            history=[Happening(row["at"], actors[row["actor"]], row["operation"], row["outcome"]) for row in rows],
            may=_allowed(found, directory, context.now, system.supports, records_attendance=records_attendance),
            records_attendance=records_attendance,
            **_names(found, directory),
        )

    async def record(self, context: ActionContext, appointment_id: str, status: str, key: str) -> Mapping[str, Any]:
        """Records a status of the practice's own; the same key does so once."""
        operation = RECORDINGS.get(status)
        if operation is None:
            raise Problem("not_found", "There is no such status.")
        caller = context.staff.caller()
        system = await self.engine.systems(caller)
        if Capability.RECORD_ATTENDANCE not in system.capabilities:
            raise Problem("capability_not_supported", "Attendance is recorded in the practice's own system.")
        operation_context = Context(
            caller,
            system,
            context.now,
            self.engine.slot_ids(caller.practice_id),
            self.engine.cursors(caller.practice_id),
        )
        given = _Request.model_validate({"appointmentId": appointment_id})
        return await self.engine.writes.execute(operation, operation_context, given, context.request_id, key)


class _Request(WriteInput):
    appointment_id: AppointmentId


def _recording(name: str, title: str, status: str) -> Operation:
    """A write of the desk alone: no door offers it, no scope leads to it."""

    async def run(context: Context, given: _Request) -> Proposal:
        appointment = await existing_appointment(context, given.appointment_id)
        states = RECORDABLE[status]
        require_state(appointment, states, context.now, only_upcoming=False)
        directory = await context.system.directory()
        if not _has_come(appointment, directory, context.now, status):
            raise Problem("conflict", "The appointment has not begun yet.")
        return status_proposal(appointment, directory, status, states, onlyUpcoming=False)

    return Operation(
        name=f"console.{name}",
        title=title,
        method="POST",
        path="/appointments/{appointmentId}",
        scope=None,
        kind="write",
        input=_Request,
        output=AppointmentWritten,
        run=run,
    )


RECORDINGS: Mapping[str, Operation] = {
    "arrived": _recording("record_arrived", "Record an arrival", "arrived"),
    "completed": _recording("record_completed", "Record a completed visit", "completed"),
    "noShow": _recording("record_no_show", "Record that a patient did not come", "noShow"),
}


def _has_come(appointment: Appointment, directory: Directory, now: datetime, status: str) -> bool:
    """People arrive on the day; whether a visit took place shows once it should have begun."""
    if status != "arrived":
        return appointment.starts_at <= now
    time_zone = directory.locations[appointment.location_id].time_zone
    days = [local_date(int(moment.timestamp()) // 60, time_zone) for moment in (appointment.starts_at, now)]
    return days[0] <= days[1]


def _allowed(
    appointment: Appointment, directory: Directory, now: datetime, supports: frozenset[str], *, records_attendance: bool
) -> frozenset[str]:
    may = {
        operation
        for operation, states in _UPCOMING.items()
        if operation in supports and appointment.status in states and appointment.starts_at > now
    }
    if appointment.status == "confirmed":
        may.discard("confirm_attendance")
    if "cancel_appointment" in supports and appointment.status in CANCELLABLE:
        may.add("cancel_appointment")
    for status, states in RECORDABLE.items():
        legal = records_attendance and appointment.status in states and appointment.status != status
        if legal and _has_come(appointment, directory, now, status):
            may.add(status)
    return frozenset(may)


def _names(appointment: Appointment, directory: Directory) -> dict[str, str]:
    visit_type = directory.visit_types[appointment.visit_type_id]
    procedure = visit_type.procedure(appointment.procedure_id)
    return {
        "provider": directory.providers[appointment.provider_id].name,
        "location": directory.locations[appointment.location_id].name,
        "visit_type": visit_type.name,
        "procedure": "" if procedure is None else procedure.name,
    }
