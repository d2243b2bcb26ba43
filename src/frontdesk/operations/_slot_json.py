"""The JSON of slots, remembered by start: it does not depend on bookings."""

from collections.abc import Sequence

from frontdesk.cache import BoundedCache
from frontdesk.domain.directory import Procedure
from frontdesk.domain.local_time import iso_local
from frontdesk.domain.slot_ids import SlotIds
from frontdesk.systems.port import OpenSlots

MAX_SLOTS = 40_000  # about 350 bytes each
_MAX_SLOTS_PER_KIND = 5_000

_Kind = tuple[SlotIds, int, int, str, int, int, int]


class SlotJson:
    def __init__(self, max_slots: int = MAX_SLOTS) -> None:
        self._known: BoundedCache[_Kind, dict[int, bytes]] = BoundedCache(max_slots)

    def items(
        self, slot_ids: SlotIds, slots: OpenSlots, visit_type_id: int, procedure: Procedure, starts: Sequence[int]
    ) -> list[bytes]:
        """The slots at these starts, each as a JSON object."""
        duration = procedure.duration_minutes
        # The object stands for the practice and its keys; holding it keeps its identity from being used again.
        kind = (slot_ids, slots.provider_id, slots.location_id, slots.time_zone, visit_type_id, procedure.id, duration)
        known = self._known.get(kind) or {}
        unknown = [start for start in starts if start not in known]
        if unknown:
            if len(known) + len(unknown) > _MAX_SLOTS_PER_KIND:
                known, unknown = {}, list(starts)
            known.update(zip(unknown, _items(*kind, unknown), strict=True))
            self._known.put(kind, known, weight=len(known))
        return [known[start] for start in starts]


def _items(
    slot_ids: SlotIds,
    provider_id: int,
    location_id: int,
    time_zone: str,
    visit_type_id: int,
    procedure_id: int,
    duration: int,
    starts: Sequence[int],
) -> list[bytes]:
    """No value needs escaping. Ids and local times are made for all slots at once, which is faster."""
    ids = slot_ids.encode_many(provider_id, location_id, visit_type_id, procedure_id, duration, starts)
    begins = iso_local(starts, time_zone)
    ends = iso_local([start + duration for start in starts], time_zone)
    shared = (
        f'"providerId":{provider_id},"locationId":{location_id},'
        f'"visitTypeId":{visit_type_id},"procedureId":{procedure_id}}}'
    )
    return [
        f'{{"id":"{slot_id}","start":"{begin}","end":"{end}",{shared}'.encode()
        for slot_id, begin, end in zip(ids, begins, ends, strict=True)
    ]
