"""Which combinations of provider, location, visit type and procedure a practice offers, whatever its calendar says."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory, Location, Procedure, Provider, VisitType
from frontdesk.domain.holds import Hold
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.port import OpenSlots, SlotPosition, SlotQuery


def is_offered(provider: Provider, visit_type: VisitType, procedure: Procedure, location: Location) -> bool:
    """Whether this combination can be booked at all, at any time."""
    return (
        provider.active
        and location.active
        and visit_type.active
        and procedure.active
        and provider.performs(procedure.id)
        and (provider.accepts_new_patients or visit_type.patient_kind != "new")
    )


def offered_pairs(
    directory: Directory, visit_type: VisitType, procedure: Procedure, query: SlotQuery
) -> Iterator[tuple[Provider, Location]]:
    """The providers and locations that a query may find slots at."""
    providers = (
        directory.providers.values()
        if query.provider_id is None
        else filter(None, [directory.providers.get(query.provider_id)])
    )
    for provider in providers:
        for location_id in provider.location_ids:
            location = directory.locations.get(location_id)
            if location is None or query.location_id not in (None, location_id):
                continue
            if is_offered(provider, visit_type, procedure, location):
                yield provider, location


def directory_records(
    directory: Directory, slot: SlotRef | Appointment | Hold
) -> tuple[Provider, Location, VisitType, Procedure] | None:
    """The records that a slot id, an appointment or a hold refers to, or None if one does not exist."""
    provider = directory.providers.get(slot.provider_id)
    location = directory.locations.get(slot.location_id)
    visit_type = directory.visit_types.get(slot.visit_type_id)
    procedure = visit_type.procedure(slot.procedure_id) if visit_type is not None else None
    if provider is None or location is None or visit_type is None or procedure is None:
        return None
    return provider, location, visit_type, procedure


def by_place(found: Sequence[SlotPosition], directory: Directory) -> list[OpenSlots]:
    """Slots in the same order, those in a row at one provider and location together."""
    return [
        OpenSlots(
            provider_id, location_id, directory.locations[location_id].time_zone, [start for start, _, _ in group]
        )
        for (provider_id, location_id), group in groupby(found, itemgetter(1, 2))
    ]
