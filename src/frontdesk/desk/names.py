"""Names to show: of actors, and of what an appointment refers to."""

from dataclasses import dataclass
from typing import Literal

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.holds import Hold

ActorKind = Literal["agent", "integration", "staff", "other"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of an audit record or a booking."""

    id: str
    name: str
    kind: ActorKind  # other: the name is the id, or a text
    connected_by: str | None = None  # the name of the staff member whose assistant it is


def names_of(appointment: Appointment | Hold, directory: Directory) -> dict[str, str]:
    visit_type = directory.visit_types[appointment.visit_type_id]
    procedure = visit_type.procedure(appointment.procedure_id)
    return {
        "provider": directory.providers[appointment.provider_id].name,
        "location": directory.locations[appointment.location_id].name,
        "visit_type": visit_type.name,
        "procedure": "" if procedure is None else procedure.name,
    }
