"""The remembered JSON of slots: the same as made anew, and bounded."""

import random

import orjson

from frontdesk.domain.directory import Procedure
from frontdesk.domain.slot_ids import SlotIds
from frontdesk.operations import SlotJson
from frontdesk.systems.port import OpenSlots

NEW_YORK, LONDON = "America/New_York", "Europe/London"
FIRST = 29_700_000  # a minute of 2026


def procedure(minutes: int) -> Procedure:
    return Procedure(id=101, name="Visit", duration_minutes=minutes)


def items(memory: SlotJson, ids: SlotIds, starts: list[int], zone: str = NEW_YORK, minutes: int = 15) -> list[bytes]:
    return memory.items(ids, OpenSlots(10, 1, zone, starts), 21, procedure(minutes), starts)


def test_remembered_slots_equal_those_made_anew() -> None:
    chosen, memory = random.Random(7), SlotJson(max_slots=300)
    one, other = SlotIds(bytes(32)), SlotIds(bytes([1] * 32))
    for _ in range(200):
        first = FIRST + 15 * chosen.randrange(400)
        starts = [first + 15 * number for number in range(chosen.randrange(1, 60))]
        ids, zone, minutes = chosen.choice([one, other]), chosen.choice([NEW_YORK, LONDON]), chosen.choice([15, 30])
        assert items(memory, ids, starts, zone, minutes) == items(SlotJson(), ids, starts, zone, minutes)
        weights = [len(known) for known in memory._known.values()]
        assert sum(weights) == memory._known.weight
        assert memory._known.weight <= 300 or len(weights) == 1


def test_an_item_has_the_fields_of_a_slot() -> None:
    ids = SlotIds(bytes(32))
    item = orjson.loads(items(SlotJson(), ids, [FIRST])[0])
    slot_id = ids.encode_many(10, 1, 21, 101, 15, [FIRST])[0]
    assert item == {
        "id": slot_id,
        "start": "2026-06-20T20:00:00-04:00",
        "end": "2026-06-20T20:15:00-04:00",
        "providerId": 10,
        "locationId": 1,
        "visitTypeId": 21,
        "procedureId": 101,
    }
