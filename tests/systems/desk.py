"""A scheduling system as the engine uses it, with the calls that tests make of it."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.appointments import CANCELLABLE, CONFIRMABLE, RECORDABLE, RESCHEDULABLE
from frontdesk.domain.ids import new_appointment_id
from frontdesk.domain.local_time import minute_of
from frontdesk.domain.patients import Patient
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations._booking import booking_of
from frontdesk.systems.changes import Book, ChangeStatus, Reschedule
from frontdesk.systems.port import Intent, Outcome, SchedulingSystem, SlotQuery, WriteRecord
from tests.support.world import MONDAY, World

FOLLOW_UP, LONG_FOLLOW_UP, FLU_SHOT, EXAM = (21, 101), (21, 102), (22, 103), (20, 100)
NINE = minute_of(datetime(2026, 11, 16, 14, tzinfo=UTC))  # nine o'clock on Monday at the location
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
_STATES = {"cancelled": CANCELLABLE, "confirmed": CONFIRMABLE, **RECORDABLE}


@dataclass
class Desk:
    """One practice: a new system object for every call."""

    world: World
    practice_id: int

    async def system(self) -> SchedulingSystem:
        version = await self.world.database.fetchval(
            "SELECT version FROM practice WHERE practice_id = $1", self.practice_id
        )
        caller = Caller("client", self.practice_id, "harbor", frozenset(), "agent", version)
        return await self.world.service.engine.systems(caller)

    @property
    def now(self) -> datetime:
        return self.world.clock.now

    async def open_starts(self, service: tuple[int, int] = FOLLOW_UP, **wanted: Any) -> list[int]:
        found = await (await self.system()).calendar.find_slots(
            query(service, **wanted), self.now, limit=200, after=None
        )
        return [start for slots in found.by_provider for start in slots.starts]

    async def person(self, first: str = "Ada") -> Patient:
        last, phone, dob = {
            "Ada": ("Lovelace", "555 010 0199", date(1985, 12, 10)),
            "Grace": ("Hopper", "555 010 0142", date(1986, 12, 9)),
            "José": ("Nunez OBrien", "0177", date(1990, 2, 28)),
            "Alan": ("Turing", "0123", date(1990, 6, 23)),
        }[first]
        [found] = await (await self.system()).matching.match_patients(first, last, phone, dob)
        return found

    def record(self, intent: Intent | None = None) -> WriteRecord:
        keep_until = self.now + timedelta(hours=24)
        return WriteRecord("client", "an_operation", "request", self.now, keep_until, intent, traceparent=TRACEPARENT)

    async def book(
        self, patient: Patient, start: int = NINE, service: tuple[int, int] = FOLLOW_UP, intent: Intent | None = None
    ) -> Outcome:
        """Judges and performs, as a call does."""
        system = await self.system()
        slot = ref(start, service)
        checked = await system.bookings.check_booking(slot, patient.id, self.now, None)
        assert checked is not None
        change = Book(checked.slot.version, new_appointment_id(), patient.id, booking_of(slot, checked.slot))
        return with_reason(await system.changes.perform(change, self.record(intent)))

    async def booked(self, patient: Patient, start: int = NINE, service: tuple[int, int] = FOLLOW_UP) -> str:
        outcome = await self.book(patient, start, service)
        assert outcome.kind == "executed", outcome
        assert outcome.result is not None
        found: str = outcome.result["appointmentId"]
        return found

    async def set_status(self, appointment_id: str, status: str, reason: str | None = None) -> Outcome:
        system = await self.system()
        assert await system.appointments.get_appointment(appointment_id) is not None
        change = ChangeStatus(appointment_id, status, _STATES[status], only_upcoming=False, reason=reason)
        return await system.changes.perform(change, self.record())

    async def move(self, appointment_id: str, start: int, service: tuple[int, int] = FOLLOW_UP) -> Outcome:
        system = await self.system()
        moved = await system.appointments.get_appointment(appointment_id)
        assert moved is not None
        slot = ref(start, service)
        checked = await system.bookings.check_booking(slot, moved.patient_id, self.now, moved)
        assert checked is not None
        change = Reschedule(
            checked.slot.version,
            moved.id,
            moved.patient_id,
            moved.provider_id,
            RESCHEDULABLE,
            booking_of(slot, checked.slot),
        )
        return await system.changes.perform(change, self.record())


def with_reason(outcome: Outcome) -> Outcome:
    """The outcome of a booking, with a refusal as the engine finds it in what was seen."""
    if outcome.seen is None:
        return outcome
    if not outcome.seen.available:
        return replace(outcome, kind="slot_unavailable")
    return replace(outcome, kind="declined", reason="patient_overlap" if outcome.seen.patient_busy else None)


def query(service: tuple[int, int] = FOLLOW_UP, **wanted: Any) -> SlotQuery:
    asked = SlotQuery(*service, provider_id=10, location_id=1, first=MONDAY, last=MONDAY)
    return replace(asked, **wanted)


def ref(start: int, service: tuple[int, int] = FOLLOW_UP, provider: int = 10, location: int = 1) -> SlotRef:
    minutes = {101: 15, 102: 45, 103: 15, 100: 30}[service[1]]
    return SlotRef(provider, location, *service, start, minutes)


def intent(name: str = "token", *, fingerprint: bytes = b"f") -> Intent:
    return Intent(name.encode(), fingerprint, is_key=True)
