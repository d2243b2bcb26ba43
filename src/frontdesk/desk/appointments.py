"""One appointment in the console: its details, its history, and the attendance that staff record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.desk.actors import actors_of
from frontdesk.desk.applied_overrides import OVERRIDES, AppliedOverride, current_overrides, overrides_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor, names_of
from frontdesk.domain.appointments import (
    CANCELLABLE,
    CONFIRMABLE,
    RECORDABLE,
    RESCHEDULABLE,
    RESTORABLE,
    Appointment,
    has_come,
)
from frontdesk.domain.consent import Consent
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPOINTMENT_ID
from frontdesk.domain.local_time import zone
from frontdesk.domain.patients import Patient
from frontdesk.engine.execute import Engine
from frontdesk.operations import RECORDINGS, RESTORE, UNDO, supported
from frontdesk.store.database import Database
from frontdesk.store.rows import from_row
from frontdesk.systems.port import Capability

_HISTORY = "SELECT * FROM appointment_changes($1, $2, NULL)"
_REASONS = "SELECT at, reason FROM appointment_correction WHERE practice_id = $1 AND appointment_id = $2"
_UPCOMING = {
    "confirm_attendance": CONFIRMABLE,
    "reschedule_appointment": RESCHEDULABLE,
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An audit record about the appointment."""

    at: datetime
    actor: Actor
    operation: str
    outcome: str
    consent: Consent | None  # None: nobody was asked
    reason: str | None = None  # of an undo
    override: AppliedOverride | None = None


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
    history: Sequence[HistoryEntry]
    may: frozenset[str]  # operations, and statuses that can be recorded
    undo_without_reason: bool  # the last step was taken just now
    records_attendance: bool
    override: AppliedOverride | None  # that the appointment stands by now


@dataclass(frozen=True, slots=True)
class Appointments:
    database: Database
    engine: Engine

    async def read(self, context: ActionContext, appointment_id: str) -> AppointmentView:
        system = await self.engine.systems(context.staff.caller())
        found = (
            await system.appointments.get_appointment(appointment_id) if APPOINTMENT_ID.match(appointment_id) else None
        )
        if found is None:
            raise Problem("not_found", "There is no such appointment.")
        patient = await system.patients.get_patient(found.patient_id)
        directory = await system.directory()
        rows = await self.database.fetch(_HISTORY, context.practice_id, [found.id])
        async with self.database.transaction(context.practice_id) as connection:
            reasons = {
                row["at"]: row["reason"] for row in await connection.fetch(_REASONS, context.practice_id, found.id)
            }
        booked_by = found.booked_by or next(
            (r["actor"] for r in rows if r["operation"] == "book_appointment" and r["outcome"] == "executed"), None
        )
        named = {*(row["actor"] for row in rows), *filter(None, [booked_by])}
        actors = await actors_of(self.database, context.practice_id, named)
        overrides = await overrides_of(self.database, context.practice_id, [found.id])
        applied = {each.at: each for each in overrides.get(found.id, ())}
        await context.record("console.appointment", found.id, found.patient_id, read=True)
        time_zone = directory.locations[found.location_id].time_zone
        return AppointmentView(
            appointment=found,
            patient=patient,
            zone=time_zone,
            start=found.starts_at.astimezone(zone(time_zone)),
            end=found.ends_at.astimezone(zone(time_zone)),
            booked_by=None if booked_by is None else actors[booked_by],
            history=[
                from_row(
                    HistoryEntry,
                    row,
                    actor=actors[row["actor"]],
                    reason=reasons.get(row["at"]) if row["operation"] == RESTORE.name else None,
                    override=applied.get(row["at"]) if row["operation"] in OVERRIDES else None,
                )
                for row in rows
            ],
            undo_without_reason=context.now - found.updated_at <= UNDO,
            may=allowed(found, directory, context.now, system.capabilities),
            override=current_overrides(overrides).get(found.id),
            records_attendance=Capability.RECORD_ATTENDANCE in system.capabilities,
            **names_of(found, directory),
        )

    async def restore(self, context: ActionContext, appointment_id: str, reason: str, key: str) -> Mapping[str, object]:
        """Takes back the last state or the cancellation; the same key does so once."""
        call = context.call(RESTORE, {"appointmentId": appointment_id, **({"reason": reason} if reason else {})}, key)
        return (await self.engine.execute(call)).body

    async def record(self, context: ActionContext, appointment_id: str, status: str, key: str) -> Mapping[str, object]:
        """Records attendance; the same key does so once."""
        operation = RECORDINGS.get(status)
        if operation is None:
            raise Problem("not_found", "There is no such status.")
        call = context.call(operation, {"appointmentId": appointment_id}, key)
        return (await self.engine.execute(call)).body


def allowed(
    appointment: Appointment, directory: Directory, now: datetime, capabilities: frozenset[Capability]
) -> frozenset[str]:
    supports = supported(capabilities)
    may = {
        operation
        for operation, states in _UPCOMING.items()
        if operation in supports and appointment.status in states and appointment.starts_at > now
    }
    if appointment.status == "confirmed":
        may.discard("confirm_attendance")
    if "cancel_appointment" in supports and appointment.status in CANCELLABLE:
        may.add("cancel_appointment")
    if Capability.RECORD_ATTENDANCE in capabilities and appointment.status in RESTORABLE:
        may.add("restore")
    time_zone = directory.locations[appointment.location_id].time_zone
    for status, states in RECORDABLE.items() if Capability.RECORD_ATTENDANCE in capabilities else ():
        legal = appointment.status in states and appointment.status != status
        if legal and has_come(appointment, time_zone, now, status):
            may.add(status)
    return frozenset(may)
