"""What a patient does by their own link: see the appointment, confirm it, cancel it.

Nothing is shown before the date of birth. What is shown then has neither the patient's name nor the kind of visit.
"""

from dataclasses import dataclass
from datetime import date, datetime

from frontdesk.audit.trail import AuditContext
from frontdesk.console.panels import PatientsVisit
from frontdesk.desk.appointments import allowed
from frontdesk.desk.context import call_of
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.consent import meets
from frontdesk.domain.directory import Practice
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import zone
from frontdesk.engine.execute import Call, Engine
from frontdesk.feature import features_of
from frontdesk.features.patient_links.actions import READ
from frontdesk.features.patient_links.links import UsedLink, count_date, find_link, find_link_again
from frontdesk.operations import BY_NAME
from frontdesk.store.database import Database
from frontdesk.systems.port import SchedulingSystem

BY_LINK = ("confirm_attendance", "cancel_appointment")


@dataclass(frozen=True, slots=True)
class MyAppointment:
    link: UsedLink
    patient_id: str
    practice: Practice
    status: str
    start: datetime  # in the zone of the location
    end: datetime
    provider: str
    location: str
    may: frozenset[str]  # of BY_LINK


@dataclass(frozen=True, slots=True)
class MyAppointments:
    database: Database
    engine: Engine

    async def open(self, token: str, born: date, request_id: str) -> MyAppointment:
        """`unauthorized` for a link that does not work, and for a wrong date: they cannot be told apart."""
        link = await find_link(self.database, token)
        if link is None:
            raise Problem("unauthorized")
        system, appointment = await self._appointment(link)
        patient = await system.patients.get_patient(appointment.patient_id)
        is_right = patient is not None and patient.dob == born
        context = self._context(link, request_id)
        outcome = "executed" if is_right else "unauthorized"
        subjects = [appointment.id, appointment.patient_id]
        entry = context.audit.entry(link.practice_id, READ.name, subjects, outcome)
        opens = await count_date(self.database, link, entry, is_right=is_right)
        self.engine.audit.seal_soon(link.practice_id)
        if not opens:
            raise Problem("unauthorized")
        return await self._view(link, system, appointment)

    async def find(self, practice_id: int, appointment_id: str, link_id: str, request_id: str) -> MyAppointment:
        """An appointment that was opened before; `unauthorized` if its link has ended since."""
        link = await find_link_again(self.database, practice_id, appointment_id, link_id)
        if link is None:
            raise Problem("unauthorized")
        system, appointment = await self._appointment(link)
        context = self._context(link, request_id)
        entry = context.audit.entry(practice_id, READ.name, [appointment.id, appointment.patient_id])
        await self.engine.audit.append(entry, read=True)
        return await self._view(link, system, appointment)

    async def execute(self, link: UsedLink, operation: str, reason: str, key: str, request_id: str) -> None:
        """Confirms or cancels; the same key does so once."""
        arguments = {"appointmentId": link.appointment_id, **({"reason": reason} if reason else {})}
        context = self._context(link, request_id)
        await self.engine.execute(context.call(operation, arguments, key))

    def visit(self, found: MyAppointment, request_id: str) -> PatientsVisit:
        """For what other features show on the page."""
        link = found.link
        return PatientsVisit(
            link.practice_id,
            found.patient_id,
            link.appointment_id,
            features_of(found.practice.features),
            self.engine.services,
            self._context(link, request_id).audit,
            self.engine.audit,
        )

    def _context(self, link: UsedLink, request_id: str) -> "_LinkContext":
        return _LinkContext(link, self.engine.clock(), request_id)

    async def _appointment(self, link: UsedLink) -> tuple[SchedulingSystem, Appointment]:
        """A link ends when its appointment starts, wherever it was moved."""
        system = await self.engine.systems(link.caller())
        appointment = await system.appointments.get_appointment(link.appointment_id)
        if appointment is None or appointment.starts_at <= self.engine.clock():
            raise Problem("unauthorized")
        return system, appointment

    async def _view(self, link: UsedLink, system: SchedulingSystem, appointment: Appointment) -> MyAppointment:
        directory = await system.directory()
        location = directory.locations[appointment.location_id]
        may = allowed(appointment, directory, self.engine.clock(), system.capabilities)
        return MyAppointment(
            link=link,
            patient_id=appointment.patient_id,
            practice=directory.practice,
            status=appointment.status,
            start=appointment.starts_at.astimezone(zone(location.time_zone)),
            end=appointment.ends_at.astimezone(zone(location.time_zone)),
            provider=directory.providers[appointment.provider_id].name,
            location=location.name,
            may=frozenset(each for each in BY_LINK if each in may and meets("link", link.demands.get(each))),
        )


@dataclass(frozen=True, slots=True)
class _LinkContext:
    """One request of somebody who has a patient's link."""

    link: UsedLink
    now: datetime
    request_id: str

    @property
    def audit(self) -> AuditContext:
        return AuditContext(self.link.link_id, self.now, self.request_id)

    def call(self, operation: str, arguments: dict[str, str], key: str) -> Call:
        return call_of(self.link.caller(), BY_NAME[operation], arguments, self.request_id, key)
