"""What features show on the pages of a patient and of an appointment."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from frontdesk.console.guard import ConsoleRequest
from frontdesk.desk.appointments import AppointmentView

Place = Literal["page", "actions"]


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
class Panel:
    template: str  # finds its values as `panel.values`
    values: Callable[[ConsoleRequest, About], Awaitable[Mapping[str, object] | None]]  # None: not shown
    place: Place = "page"  # a card of its own, or beside the buttons of an appointment


@dataclass(frozen=True, slots=True)
class ShownPanel:
    template: str
    place: Place
    values: Mapping[str, object]


async def panels_on(request: ConsoleRequest, about: About) -> list[ShownPanel]:
    shown = []
    for panel in (panel for feature in request.features for panel in feature.parts.panels):
        values = await panel.values(request, about)
        if values is not None:
            shown.append(ShownPanel(panel.template, panel.place, values))
    return shown
