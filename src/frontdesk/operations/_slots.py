"""Slots in answers. Ids and local times are made for a whole page at once, which is faster."""

from typing import Any

from frontdesk.domain.local_time import iso_local, weekday
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations._operation import Context
from frontdesk.systems.port import FoundSlots, SlotState


def slot_items(context: Context, found: FoundSlots, limit: int) -> tuple[list[dict[str, Any]], list[int] | None]:
    """The first `limit` slots, and the position of the last one if there are more."""
    items: list[dict[str, Any]] = []
    procedure = found.procedure
    if procedure is None:
        return items, None
    last: list[int] | None = None
    for slots in found.by_provider:
        room = limit - len(items)
        if room == 0:
            return items, last
        starts = slots.starts[:room]
        duration = procedure.duration_minutes
        ids = context.slot_ids.encode_many(
            slots.provider_id, slots.location_id, found.visit_type_id, procedure.id, duration, starts
        )
        begins = iso_local(starts, slots.time_zone)
        ends = iso_local([start + duration for start in starts], slots.time_zone)
        for slot_id, begin, end in zip(ids, begins, ends, strict=True):
            items.append(
                {
                    "id": slot_id,
                    "start": begin,
                    "end": end,
                    "providerId": slots.provider_id,
                    "locationId": slots.location_id,
                    "visitTypeId": found.visit_type_id,
                    "procedureId": procedure.id,
                }
            )
        last = [starts[-1], slots.provider_id, slots.location_id]
        if len(slots.starts) > room:
            return items, last
    return items, None


def slot_body(slot_id: str, slot: SlotRef, state: SlotState) -> dict[str, Any]:
    """A slot with the names of its provider, location, visit type and procedure."""
    location = state.directory.locations[slot.location_id]
    start, end = iso_local([slot.start, slot.start + slot.duration_minutes], location.time_zone)
    return {
        "id": slot_id,
        "start": start,
        "end": end,
        "providerId": slot.provider_id,
        "locationId": slot.location_id,
        "visitTypeId": slot.visit_type_id,
        "procedureId": slot.procedure_id,
        "providerName": state.directory.providers[slot.provider_id].name,
        "locationName": location.name,
        "visitTypeName": state.visit_type.name,
        "procedureName": state.procedure.name,
        "timeZone": location.time_zone,
    }


def slot_read_back(slot_id: str, slot: SlotRef, state: SlotState) -> dict[str, Any]:
    """What is read to the patient before the slot is booked."""
    body = slot_body(slot_id, slot, state)
    spoken = ("start", "end", "timeZone", "providerName", "locationName", "visitTypeName", "procedureName")
    return {
        "slotId": slot_id,
        **{name: body[name] for name in spoken},
        "weekday": weekday(slot.start, body["timeZone"]),
    }
