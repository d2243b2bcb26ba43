"""The checker explains a history that a practice can have had, and no other."""

import gc
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.proof import lanes
from tests.proof.checker import Checker
from tests.proof.lanes import Expiry, When
from tests.proof.linearize import Either, Read, Step, Write, impossible
from tests.proof.recorder import NEVER, History, Offset, Op
from tests.proof.synthetic import Synthetic

NOW = When(0, 0)


def read(invoked: int, answered: int, run: Read) -> Step:
    return Step(invoked, answered, False, run, None)


def write(invoked: int, answered: int, run: Write) -> Step:
    return Step(invoked, answered, True, run, None)


def sets(value: str) -> Write:
    return lambda _state: value


def shows(value: str) -> Read:
    return lambda state: state == value


@pytest.mark.parametrize(
    ("steps", "possible"),
    [
        ([write(0, 1, sets("a")), read(2, 3, shows("a"))], True),
        ([write(0, 1, sets("a")), read(2, 3, shows("b"))], False),  # stale
        ([write(0, 9, sets("a")), read(2, 3, shows("b")), read(4, 5, shows("a"))], True),  # while it ran
        ([write(0, 9, sets("a")), read(2, 3, shows("a")), read(4, 5, shows("b"))], False),  # back and forth
        ([write(0, 3, sets("a")), write(1, 2, sets("c")), read(4, 5, shows("c"))], True),  # not in order of the answers
        ([write(0, 3, sets("a")), write(1, 2, sets("c")), read(4, 5, shows("b"))], False),
        ([write(0, NEVER, sets("a")), read(2, 3, shows("b"))], True),  # a lost write may not have happened
        ([write(0, NEVER, sets("a")), read(2, 3, shows("b")), read(4, 5, shows("a"))], True),  # or happen later
        ([write(0, NEVER, sets("a")), read(2, 3, shows("a")), read(4, 5, shows("b"))], False),
        ([read(0, 9, shows("b")), write(1, 2, sets("a")), write(3, 4, sets("c")), read(5, 6, shows("c"))], True),
    ],
)
def test_calls_are_put_in_an_order_that_explains_them_all(steps: list[Step], *, possible: bool) -> None:
    assert (impossible(steps, "b") is None) is possible


def test_an_appointment_takes_a_lane_that_is_free_throughout() -> None:
    day: Any = lanes.empty_day(2)
    for appointment, first in (("a", 0), ("b", 0), ("c", 2)):
        [day] = lanes.occupies(appointment, lanes.cells(first, 2), NOW)(day)
    day = lanes.without(day, "a")  # the first lane is free in cell 0 and 1, the second in 2 and 3: nowhere 1 and 2
    assert not lanes.is_free(day.lanes, lanes.cells(1, 2))
    assert lanes.occupies("d", lanes.cells(1, 2), NOW)(day) == Either()
    assert lanes.is_free(day.lanes, lanes.cells(0, 2))


def test_a_hold_takes_a_lane_until_it_expires_or_is_booked() -> None:
    wanted, day = lanes.cells(0, 2), lanes.empty_day(2)
    [day] = lanes.begins_hold("h", wanted, Expiry(20, 30), NOW)(day)
    [day] = lanes.occupies("a", wanted, NOW)(day)  # in the second lane
    for when, may_be_free, may_be_taken in (
        (When(5, 19), False, True),
        (When(5, 20), True, True),
        (When(31, 32), True, False),
    ):
        assert lanes.shows_free(wanted, None, when)(day) is may_be_free
        assert lanes.shows_taken(wanted, None, when)(day) is may_be_taken
        assert (lanes.occupies("b", wanted, when)(day) == Either()) is not may_be_free
        assert (lanes.occupies("b", wanted, when, "h")(day) is None) is not may_be_taken
    [booked] = lanes.occupies("b", wanted, NOW, "h")(day)
    assert not booked.held
    assert lanes.shows_taken(wanted, None, When(31, 32))(booked)
    # Where a hold may have expired, either lane may be taken.
    [alone] = lanes.begins_hold("h", wanted, Expiry(20, 30), NOW)(lanes.empty_day(2))
    assert [after.taken for after in lanes.occupies("a", wanted, When(25, 26))(alone)] == [
        {("a", 0, wanted)}, {("a", 1, wanted)},
    ]  # fmt: skip


@pytest.fixture(scope="module")
def history() -> History:
    return Synthetic(seed=1).generate(2000)


def anomalies(history: History) -> list[str]:
    return [anomaly.kind for anomaly in Checker(history, frozenset()).check().anomalies]


def test_a_possible_history_has_no_anomaly(history: History) -> None:
    assert anomalies(history) == []


def _is(name: str, status: int) -> Callable[[Op], bool]:
    return lambda op: op.name == name and op.status == status


@pytest.mark.parametrize(
    ("wanted", "answer", "kind"),
    [
        (_is("get_slot", 200), lambda op: {"available": not op.body["available"]}, "not linearizable (day)"),
        (_is("search_slots", 200), lambda op: {**op.body, "items": op.body["items"][1:]}, "not linearizable (day)"),
        (_is("get_appointment", 200), lambda op: {**op.body, "status": "cancelled"}, "not linearizable (appointment)"),
        (_is("get_patient", 200), lambda op: {**op.body, "email": "x@example.com"}, "not linearizable (person)"),
        (_is("confirm_attendance", 200), lambda op: {**op.body, "status": "booked"}, "not linearizable (appointment)"),
    ],
)
def test_one_wrong_answer_is_found(
    history: History, wanted: Callable[[Op], bool], answer: Callable[[Op], dict[str, Any]], kind: str
) -> None:
    at, op = [(at, op) for at, op in enumerate(history.ops) if wanted(op)][-10]
    ops = [*history.ops]
    ops[at] = replace(op, body=answer(op))
    assert kind in anomalies(replace(history, ops=ops))


def test_two_results_of_one_key_are_found(history: History) -> None:
    keys: dict[str | None, Op] = {op.key: op for op in history.ops if op.key is not None}
    again = next(op for op in history.ops if op.key is not None and keys[op.key] is not op)
    ops = [replace(op, body={"appointmentId": "apt_x"}) if op is keys[again.key] else op for op in history.ops]
    assert "not linearizable (result)" in anomalies(replace(history, ops=ops))


def test_two_holds_of_one_key_are_found(history: History) -> None:
    released = next(op for op in history.ops if op.name == "release_hold")
    held = next(op for op in history.ops if op.succeeded and op.body.get("holdId") == released.given["holdId"])
    first = replace(held, key="k", body={"holdId": "hld_x"}, answered=held.answered - 1)
    ops = [first, *(replace(op, key="k") if op is held else op for op in history.ops)]
    assert "not linearizable (result)" in anomalies(replace(history, ops=ops))


def test_a_booking_that_is_refused_like_a_change_is_found(history: History) -> None:
    refused = next(op for op in history.ops if op.name == "book_appointment" and op.code == "slot_unavailable")
    ops = [replace(op, body={**op.body, "code": "conflict"}) if op is refused else op for op in history.ops]
    assert "an answer that nothing explains" in anomalies(replace(history, ops=ops))


@pytest.mark.parametrize(("clock", "found"), [(0.0, ["a token confirmed another request"]), (900.0, [])])
def test_a_token_of_another_request_is_a_mismatch_until_it_expires(
    history: History, clock: float, found: list[str]
) -> None:
    booked = next(op for op in history.ops if op.name == "book_appointment" and op.succeeded)
    refused = next(op for op in history.ops if op.name == "book_appointment" and op.code == "slot_unavailable")
    expires_at = datetime.fromtimestamp(refused.answered / 1e9 + history.wall_clock + 300, UTC).isoformat()
    asked = replace(booked, client=refused.client, status=428)
    asked.body = {"code": "confirmation_required", "confirmationToken": "t", "expiresAt": expires_at}
    ops = [asked, *(replace(op, token="t") if op is refused else op for op in history.ops)]
    assert anomalies(replace(history, ops=ops, offsets=[Offset(0, 0.0, clock)])) == found


@pytest.mark.parametrize("name", ["book_appointment", "hold_slot"])
def test_a_resend_with_the_result_of_another_operation_is_found(history: History, name: str) -> None:
    done = next(op for op in history.ops if op.name == name and op.succeeded)
    first = replace(done, key="k")
    again = replace(first, body={"status": "cancelled"}, invoked=done.answered + 1, answered=done.answered + 2)
    ops = [*(first if op is done else op for op in history.ops), again]
    assert "an answer of another operation" in anomalies(replace(history, ops=ops))


def test_a_hold_that_is_found_after_its_release_is_found(history: History) -> None:
    released = next(op for op in history.ops if op.name == "release_hold")
    read = next(op for op in history.ops if op.name == "get_hold" and op.given == released.given)
    ops = [*history.ops, replace(read, invoked=released.answered + 1, answered=released.answered + 2)]
    assert anomalies(replace(history, ops=ops)) == ["not linearizable (hold)"]


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_million_operations_take_little_longer_to_check_than_to_make_up() -> None:
    operations = int(os.environ.get("CHECKED_OPERATIONS", 1_000_000))
    began = time.process_time()
    history = Synthetic(seed=1).generate(operations)
    making = time.process_time() - began
    gc.collect()
    gc.freeze()
    began = time.process_time()
    found = anomalies(history)
    seconds = time.process_time() - began
    gc.unfreeze()
    print(f"{operations:,} operations checked in {seconds:.1f} s")
    assert found == []
    assert seconds < 3 * making
