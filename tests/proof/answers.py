"""What an answer shows of the state: the parts of the model that it concerns, and what must hold of each."""

from collections.abc import Iterator
from typing import Any

from tests.proof import lanes, model
from tests.proof.facts import Facts, Key, Slot
from tests.proof.lanes import When
from tests.proof.linearize import Read
from tests.proof.practices import CAPACITY, DAY_CELLS, PROCEDURES, cell_of
from tests.proof.recorder import NEVER, Op

_ALL_DAY = (1 << DAY_CELLS) - 1


def refused(facts: Facts, op: Op, but: str | None) -> Iterator[tuple[Key, Read]]:
    """What a refusal or a challenge shows of the state."""
    code, name = op.code, op.name
    if "holdId" in op.given or name == "hold_slot":
        yield from _refused_hold(facts, op)
        if name != "book_appointment" or code == "slot_unavailable":
            return
    if name in ("book_appointment", "reschedule_appointment") and code != "conflict":
        slot = facts.slot(op)
        if name == "book_appointment":
            patient = op.given["patientId"]
        elif op.given["appointmentId"] in facts.booked:
            patient = facts.booked[op.given["appointmentId"]].op.given["patientId"]
        else:
            return
        procedure = PROCEDURES[slot.procedure]
        wanted, when = _cells(slot), When(op.invoked, op.answered)
        times = (slot.start, slot.start + procedure.cells, but)
        if code == "slot_unavailable":
            yield facts.day(op.practice, slot), lanes.shows_taken(wanted, but, when)
        elif code == "validation" and op.status == 422:
            yield ("diary", patient), model.has_no_time(*times)
        elif code == "confirmation_required":
            if "holdId" not in op.given:
                yield facts.day(op.practice, slot), lanes.shows_free(wanted, but, when)
            yield ("diary", patient), model.has_time(*times)
            if name == "reschedule_appointment":
                yield ("appointment", but), model.is_live
    elif name == "create_patient" and code in ("conflict", "confirmation_required"):
        created = model.is_created(model.Record("", op.given["firstName"], op.given["phone"], None))
        exists = code == "conflict"
        yield (
            ("person", op.practice, op.given["lastName"]),
            lambda people: (created(people) is None) == exists,
        )
    elif name == "update_patient" and code == "confirmation_required":
        updated = model.is_updated(op.given["patientId"], {})
        yield facts.person(op.given["patientId"]), lambda people: updated(people) is not None
    elif "appointmentId" in op.given:
        if code == "conflict":
            yield ("appointment", op.given["appointmentId"]), model.is_cancelled
        elif code == "confirmation_required":
            yield ("appointment", op.given["appointmentId"]), model.is_live


def _refused_hold(facts: Facts, op: Op) -> Iterator[tuple[Key, Read]]:
    """What a refusal to hold a slot shows, or to book or release a hold."""
    when = When(op.invoked, op.answered)
    if "holdId" in op.given:
        yield from _hold(facts, op, op.given["holdId"], is_live=op.code in ("confirmation_required", "validation"))
    elif op.code == "conflict":
        yield ("holds", op.client), model.are_too_many(when)
    elif op.code in ("slot_unavailable", "confirmation_required"):
        slot = facts.slot(op)
        shows = lanes.shows_taken if op.code == "slot_unavailable" else lanes.shows_free
        yield facts.day(op.practice, slot), shows(_cells(slot), None, when)


def _hold(facts: Facts, op: Op, hold: str, *, is_live: bool) -> Iterator[tuple[Key, Read]]:
    expiry, when = facts.expiry(hold), When(op.invoked, op.answered)
    if not is_live:
        yield ("hold", hold), model.is_over(may_have_expired=expiry.may_have_come(when))
    elif expiry.has_come(when):
        yield ("hold", hold), model.never
    else:
        yield ("hold", hold), model.is_held


def _cells(slot: Slot) -> int:
    return lanes.cells(slot.start % DAY_CELLS, PROCEDURES[slot.procedure].busy)


def shown(facts: Facts, op: Op) -> Iterator[tuple[Key, Read]]:
    """What the answer of a read shows of the state."""
    name, body, given = op.name, op.body, op.given
    if name == "match_patient":
        found = frozenset(item["id"] for item in body["items"]) if op.status == 200 else frozenset[str]()
        yield ("person", op.practice, given["lastName"]), model.matches(given["firstName"], given["phone"], found)
    elif name == "get_hold" and op.status in (200, 404):
        yield from _hold(facts, op, given["holdId"], is_live=op.status == 200)
        if op.status == 200 and body["slotId"] != facts.held[given["holdId"]].op.given["slotId"]:
            yield ("answer", op.request_id), model.never
    elif op.status != 200:
        yield ("answer", op.request_id), model.never
    elif name == "search_slots":
        day = cell_of(f"{given['from']}T00:00:00+00:00") // DAY_CELLS
        listed = sum(1 << cell_of(item["start"]) % DAY_CELLS for item in body["items"])
        yield (
            ("day", op.practice, given["providerId"], day),
            lanes.shows_open(PROCEDURES[given["procedureId"]], listed, _ALL_DAY, When(op.invoked, op.answered)),
        )
    elif name == "find_first_available":
        yield from _earliest(op)
    elif name == "get_slot":
        slot = facts.slot(op)
        day, wanted, when = facts.day(op.practice, slot), _cells(slot), When(op.invoked, op.answered)
        shows = lanes.shows_free if body["available"] else lanes.shows_taken
        yield day, shows(wanted, None, when)
        if body.get("held"):
            yield day, lanes.shows_held(wanted, when)
    elif name == "get_patient":
        record = model.Record(body["id"], body["firstName"], body["phone"], body.get("email"))
        yield facts.person(body["id"]), model.is_on_file(record)
    elif name == "get_appointment":
        yield ("appointment", body["id"]), model.is_exactly(shown_appointment(body))
    else:
        yield from _listed(facts, op)


def _earliest(op: Op) -> Iterator[tuple[Key, Read]]:
    """The answer covers, of each provider, what comes before its last item."""
    day, items = cell_of(f"{op.given['from']}T00:00:00+00:00") // DAY_CELLS, op.body["items"]
    last = (NEVER, 0)
    if len(items) == op.body["limit"]:
        last = (cell_of(items[-1]["start"]), items[-1]["providerId"])
    for provider in CAPACITY if "providerId" not in op.given else (op.given["providerId"],):
        listed = sum(
            1 << cell % DAY_CELLS
            for item in items
            if item["providerId"] == provider and (cell := cell_of(item["start"])) // DAY_CELLS == day
        )
        covered = min(DAY_CELLS, max(0, last[0] - day * DAY_CELLS + (provider <= last[1])))
        yield (
            ("day", op.practice, provider, day),
            lanes.shows_open(
                PROCEDURES[op.given["procedureId"]], listed, (1 << covered) - 1, When(op.invoked, op.answered)
            ),
        )


def _listed(facts: Facts, op: Op) -> Iterator[tuple[Key, Read]]:
    items = {item["id"]: item for item in op.body["items"]}
    for appointment, item in items.items():
        yield ("appointment", appointment), model.is_exactly(shown_appointment(item))
    if "nextCursor" in op.body:
        return
    if "patientId" in op.given:
        for appointment in facts.of_patient[op.given["patientId"]] - items.keys():
            yield ("appointment", appointment), model.is_elsewhere(None, None, DAY_CELLS)
    else:
        provider, day = op.given["providerId"], cell_of(f"{op.given['from']}T00:00:00+00:00") // DAY_CELLS
        for appointment in facts.of_day["day", op.practice, provider, day] - items.keys():
            yield ("appointment", appointment), model.is_elsewhere(provider, day, DAY_CELLS)


def shown_appointment(item: Any) -> model.Appointment:
    return model.Appointment(
        item["patientId"], item["providerId"], cell_of(item["start"]), item["procedureId"], item["status"]
    )
