"""The arrivals board: today's appointments by where the patient is, and the steps between."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from frontdesk.desk.applied_overrides import AppliedOverride, current_overrides, overrides_of
from frontdesk.desk.appointments import Appointments, allowed
from frontdesk.desk.calendar import CalendarQuery, shown_appointments, shown_locations
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import names_of
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Location
from frontdesk.domain.local_time import local_date, minute_of, zone
from frontdesk.domain.patients import Contact
from frontdesk.engine.execute import Systems
from frontdesk.feature import Services, features_of
from frontdesk.operations import CALL_IN, RETURN_TO_WAITING
from frontdesk.store.database import Database
from frontdesk.systems.port import Capability

Place = Literal["late", "expected", "waiting", "with_provider", "done", "no_show"]
PLACES: tuple[Place, ...] = ("late", "expected", "waiting", "with_provider", "done", "no_show")
_CALLS = {"call_in": CALL_IN, "return_to_waiting": RETURN_TO_WAITING}
_ATTENDED = """
SELECT appointment_id, arrived_at, called_at FROM appointment_attendance
WHERE practice_id = $1 AND appointment_id = ANY ($2)
"""


@dataclass(frozen=True, slots=True)
class VisitMark:
    """What a feature says of a visit."""

    label: str  # marked for translation
    text: str


# For the appointments of a practice, the marks by appointment id.
MarkVisits = Callable[[Services, int, Sequence[Appointment]], Awaitable[Mapping[str, Sequence[VisitMark]]]]


@dataclass(frozen=True, slots=True)
class Visit:
    """An appointment on the board."""

    id: str
    place: Place
    patient_id: str
    patient: Contact | None  # None if the scheduling system no longer has the patient
    start: datetime
    since: datetime | None  # when the patient came to this place
    provider: str
    visit_type: str
    location: str
    steps: Sequence[str]  # that can be taken, the usual one first
    undo: str | None  # the step that takes back the last one
    marks: Sequence[VisitMark]
    override: AppliedOverride | None


@dataclass(frozen=True, slots=True)
class Board:
    day: date
    zone: str
    locations: Sequence[Location]
    places: Mapping[Place, Sequence[Visit]]
    records_attendance: bool
    is_complete: bool = True  # False: there are more appointments than a page can hold


@dataclass(frozen=True, slots=True)
class Arrivals:
    database: Database
    systems: Systems
    appointments: Appointments

    async def read(
        self,
        context: ActionContext,
        location_id: int | None = None,
        providers: tuple[int, ...] = (),
        is_known: Callable[[Board], bool] = lambda _board: False,
    ) -> Board | None:
        """Today at the location. None if the board is known already. Showing names is recorded."""
        system = await self.systems(context.staff.caller())
        directory = await system.directory()
        locations = shown_locations(directory, location_id)
        time_zone = locations[0].time_zone
        day = local_date(minute_of(context.now), time_zone)
        found, is_complete = await shown_appointments(system, CalendarQuery(providers=providers), locations, [day])
        directory = await system.directory()  # reading may have loaded a newer one
        contacts = await system.patients.contacts(list({each.patient_id for each in found})) if found else {}
        attended = await self._attended(context, found)
        overrides = current_overrides(
            await overrides_of(self.database, context.practice_id, [each.id for each in found])
        )
        marks = await self._marks(context, found)
        records_attendance = Capability.RECORD_ATTENDANCE in system.capabilities
        places: dict[Place, list[Visit]] = {place: [] for place in PLACES}
        for each in found:
            arrived_at, called_at = attended.get(each.id, (each.updated_at, None))
            place = _place(each, called_at, context.now)
            may = allowed(each, directory, context.now, system.capabilities)
            names = names_of(each, directory)
            places[place].append(
                Visit(
                    id=each.id,
                    place=place,
                    patient_id=each.patient_id,
                    patient=contacts.get(each.patient_id),
                    start=each.starts_at.astimezone(zone(time_zone)),
                    since=_since(each, place, arrived_at, called_at, time_zone),
                    provider=names["provider"],
                    visit_type=names["visit_type"],
                    location=names["location"],
                    marks=marks.get(each.id, []),
                    override=overrides.get(each.id),
                    steps=_steps(place, may) if records_attendance else [],
                    undo=_undo(place, attended=each.id in attended) if records_attendance else None,
                )
            )
        board = Board(day, time_zone, locations, places, records_attendance, is_complete)
        if is_known(board):
            return None
        await context.record("console.arrivals", *sorted(contacts), read=True)
        return board

    async def take_step(self, context: ActionContext, appointment_id: str, step: str, key: str) -> Mapping[str, object]:
        """Takes a step of the board, or takes one back; the same key does so once."""
        if step == "restore":
            return await self.appointments.restore(context, appointment_id, "", key)
        if step not in _CALLS:
            return await self.appointments.record(context, appointment_id, step, key)
        call = context.call(_CALLS[step], {"appointmentId": appointment_id}, key)
        return (await self.appointments.engine.execute(call)).body

    async def _marks(self, context: ActionContext, found: Sequence[Appointment]) -> dict[str, list[VisitMark]]:
        marks: dict[str, list[VisitMark]] = {}
        for mark_visits in filter(None, (feature.parts.mark_visits for feature in features_of(context.staff.features))):
            services = self.appointments.engine.services
            for appointment_id, added in (await mark_visits(services, context.practice_id, found)).items():
                marks.setdefault(appointment_id, []).extend(added)
        return marks

    async def _attended(
        self, context: ActionContext, found: Sequence[Appointment]
    ) -> dict[str, tuple[datetime, datetime | None]]:
        attended = [each.id for each in found if each.status in ("arrived", "completed")]
        if not attended:
            return {}
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_ATTENDED, context.practice_id, attended)
        return {row["appointment_id"]: (row["arrived_at"], row["called_at"]) for row in rows}


def _place(appointment: Appointment, called_at: datetime | None, now: datetime) -> Place:
    if appointment.status == "arrived":
        return "waiting" if called_at is None else "with_provider"
    if appointment.status == "completed":
        return "done"
    if appointment.status == "noShow":
        return "no_show"
    return "late" if appointment.starts_at < now else "expected"


def _since(
    appointment: Appointment, place: Place, arrived_at: datetime, called_at: datetime | None, time_zone: str
) -> datetime | None:
    if place == "expected":
        return None
    began = {"late": appointment.starts_at, "waiting": arrived_at, "with_provider": called_at}
    return (began.get(place) or appointment.updated_at).astimezone(zone(time_zone))


def _steps(place: Place, may: frozenset[str]) -> list[str]:
    offered = {
        "late": ("arrived", "noShow"),
        "expected": ("arrived",),
        "waiting": ("call_in",),
        "with_provider": ("completed",),
        "done": (),
        "no_show": ("arrived",),
    }[place]
    return [step for step in offered if step == "call_in" or step in may]


def _undo(place: Place, *, attended: bool) -> str | None:
    if place == "with_provider":
        return "return_to_waiting"
    if place == "done" and attended:
        return "arrived"
    return "restore" if place in ("waiting", "done", "no_show") else None
