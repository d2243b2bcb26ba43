"""Slots in answers."""

import orjson

from frontdesk.operations._operation import Context
from frontdesk.systems.port import FoundSlots


def slot_items(context: Context, found: FoundSlots, limit: int) -> tuple[orjson.Fragment, list[int] | None]:
    """The first `limit` slots as a JSON array, and the position of the last one if there are more."""
    items: list[bytes] = []
    last: list[int] | None = None
    if found.procedure is not None:
        for slots in found.by_provider:
            remaining = limit - len(items)
            if remaining == 0:
                return _array(items), last
            starts = slots.starts[:remaining]
            items += context.slot_json.items(context.slot_ids, slots, found.visit_type_id, found.procedure, starts)
            last = [starts[-1], slots.provider_id, slots.location_id]
            if len(slots.starts) > remaining:
                return _array(items), last
    return _array(items), None


def _array(items: list[bytes]) -> orjson.Fragment:
    return orjson.Fragment(b"[%b]" % b",".join(items))
