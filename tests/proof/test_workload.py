"""The clients of the proof."""

from typing import Any, cast

from tests.proof.recorder import Caller, Op
from tests.proof.workload import Actor, Desk


class Confused:
    """A service that answers every write with the result of another operation."""

    is_agent = False

    async def call(self, name: str, given: dict[str, Any], **_: Any) -> Op:
        return Op("north", "client", "rest", name, given, 0, 1, status=201, body={"status": "cancelled"})


async def test_a_client_goes_on_after_the_result_of_another_operation() -> None:
    """The checker names it."""
    desk = Desk("north", slots=["slt_1"])
    actor = Actor(cast(Caller, Confused()), desk)
    await actor.create_patient()
    assert desk.patients == {}
    await actor.hold()
    assert desk.holds == []
    desk.patients["pat_1"] = cast(Any, None)
    await actor.book()
    assert desk.appointments == []
