"""What features show on the pages of a patient and of an appointment."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from frontdesk.console.guard import ConsoleRequest


@dataclass(frozen=True, slots=True)
class About:
    """The page that a panel is shown on."""

    patient_id: str
    appointment_id: str | None  # None: the page of the patient
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class Panel:
    template: str  # a card; it finds its values as `panel.values`
    values: Callable[[ConsoleRequest, About], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ShownPanel:
    template: str
    values: Mapping[str, Any]


async def panels_on(request: ConsoleRequest, about: About) -> list[ShownPanel]:
    panels = [panel for feature in request.features for panel in feature.parts.panels]
    return [ShownPanel(panel.template, await panel.values(request, about)) for panel in panels]
