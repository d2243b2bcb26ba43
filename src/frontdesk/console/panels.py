"""What features show on pages of others: of patients, appointments, clients, the calendar, blocked time and links."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Generic, Literal, TypeVar
from zoneinfo import ZoneInfo

from frontdesk.access.clients.records import ClientRecord
from frontdesk.audit.trail import AuditContext, AuditTrail
from frontdesk.console.guard import ConsoleRequest
from frontdesk.desk.appointments import AppointmentView
from frontdesk.domain.directory import Directory
from frontdesk.feature import Feature, Services

Place = Literal["page", "actions", "tools", "notices"]
Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True)
class About:
    """The page that a panel is shown on."""

    patient_id: str
    appointment: AppointmentView | None  # None: the page of the patient
    zone: ZoneInfo

    @property
    def appointment_id(self) -> str | None:
        return None if self.appointment is None else self.appointment.appointment.id


@dataclass(frozen=True, slots=True)
class ShownDays:
    """The days that the calendar shows."""

    first: date
    last: date
    directory: Directory


@dataclass(frozen=True, slots=True)
class Panel(Generic[Subject]):
    template: str  # finds its values as `panel.values`
    values: Callable[[ConsoleRequest, Subject], Awaitable[Mapping[str, object] | None]]  # None: not shown
    place: Place = "page"
    """On its own, beside the buttons of an appointment or of the calendar, or above the calendar."""


@dataclass(frozen=True, slots=True)
class ShownPanel:
    template: str
    place: Place
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PatientsVisit:
    """A patient, who has been identified, on a page about one of their appointments."""

    practice_id: int
    patient_id: str
    appointment_id: str
    features: Sequence[Feature]  # of the practice
    services: Services
    audit: AuditContext
    trail: AuditTrail

    async def record(self, operation: str, subjects: Sequence[str]) -> None:
        """Records what is disclosed beyond the page."""
        await self.trail.append(self.audit.entry(self.practice_id, operation, subjects), read=True)


@dataclass(frozen=True, slots=True)
class PanelFile:
    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PatientsPanel:
    """Its template posts `pass` and the name of a `file` to `file_path`."""

    template: str
    values: Callable[[PatientsVisit], Awaitable[Mapping[str, object] | None]]  # None: not shown
    file: Callable[[PatientsVisit, str], Awaitable[PanelFile | None]]  # by the name; None: it has no such file


async def patients_panels(visit: PatientsVisit) -> list[ShownPanel]:
    shown = []
    for panel in _patients_panels(visit):
        values = await panel.values(visit)
        if values is not None:
            shown.append(ShownPanel(panel.template, "page", values))
    return shown


async def patients_file(visit: PatientsVisit, name: str) -> PanelFile | None:
    for panel in _patients_panels(visit):
        found = await panel.file(visit, name)
        if found is not None:
            return found
    return None


def _patients_panels(visit: PatientsVisit) -> list[PatientsPanel]:
    return [panel for feature in visit.features for panel in feature.parts.patients_panels]


async def panels_on(request: ConsoleRequest, about: About) -> list[ShownPanel]:
    return await _shown(request, [panel for feature in request.features for panel in feature.parts.panels], about)


async def calendar_panels(request: ConsoleRequest, days: ShownDays | None) -> list[ShownPanel]:
    """`days` is None for a month."""
    panels = [panel for feature in request.features for panel in feature.parts.calendar_panels]
    return await _shown(request, panels, days)


async def block_panels(request: ConsoleRequest, given: Mapping[str, str]) -> list[ShownPanel]:
    """Shown with the appointments in a time that is to be blocked; `given` are the fields of the form."""
    panels = [panel for feature in request.features for panel in feature.parts.block_panels]
    return await _shown(request, panels, given)


async def client_panels(request: ConsoleRequest, client: ClientRecord) -> list[ShownPanel]:
    panels = [panel for feature in request.features for panel in feature.parts.client_panels]
    return await _shown(request, panels, client)


async def _shown(request: ConsoleRequest, panels: Sequence[Panel[Subject]], subject: Subject) -> list[ShownPanel]:
    shown = []
    for panel in panels:
        values = await panel.values(request, subject)
        if values is not None:
            shown.append(ShownPanel(panel.template, panel.place, values))
    return shown
