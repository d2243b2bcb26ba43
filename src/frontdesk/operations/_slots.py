"""Slots in answers. Ids and local times are made for a whole page at once, which is faster."""

from typing import Any

from frontdesk.domain.local_time import iso_local
from frontdesk.operations._operation import Context
from frontdesk.systems.port import FoundSlots


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
        shared = {
            "providerId": slots.provider_id,
            "locationId": slots.location_id,
            "visitTypeId": found.visit_type_id,
            "procedureId": procedure.id,
        }
        items += [
            {"id": slot_id, "start": begin, "end": end, **shared}
            for slot_id, begin, end in zip(ids, begins, ends, strict=True)
        ]
        last = [starts[-1], slots.provider_id, slots.location_id]
        if len(slots.starts) > room:
            return items, last
    return items, None
