"""Generated dialogues in which no person agrees: whatever the model and its host send, nothing is executed."""

import os
import random
from collections import Counter
from typing import Any

import httpx
import orjson
import pytest

from tests.doors.elicitation_hosts import (
    CANCEL,
    CARDS,
    DECLINE,
    FORMS,
    NOT_TICKED,
    YES,
    modern_call,
    posted,
)
from tests.engine.test_consent import HARBOR, demand
from tests.support.world import UNLIMITED, World, book, patient_id, slots

SILENCE = (None, {}, {"action": "accept"}, {"action": "accept", "content": {}}, {"action": "yes"}, "yes", 1, [])
QUICK, MANY = 40, int(os.environ.get("DIALOGUES", "10000"))


class Model:
    """A model that wants its writes executed, and a host that answers anything but a person's yes."""

    def __init__(
        self, chance: random.Random, agent: httpx.AsyncClient, writes: list[tuple[str, dict[str, Any]]]
    ) -> None:
        self._chance = chance
        self._agent = agent
        self._writes = writes
        self.outcomes: Counter[str] = Counter()

    async def dialogue(self) -> None:
        tool, arguments = self._chance.choice(self._writes)
        known: dict[str, Any] = {}
        for _ in range(self._chance.randint(1, 5)):
            turn = self._chance.choice((self._propose, self._answer, self._forge, self._resend, self._swap))
            await turn(tool, arguments, known)

    async def _call(self, tool: str, arguments: dict[str, Any], capabilities: Any, **more: Any) -> dict[str, Any]:
        answer = await posted(self._agent, modern_call(tool, arguments, capabilities, **more))
        if answer.status_code == 400:
            self.outcomes["forged"] += 1
            return {}
        result = _framed(answer)
        code = result.get("structuredContent", {}).get("code", result.get("resultType"))
        self.outcomes[str(code)] += 1
        return result

    async def _propose(self, tool: str, arguments: dict[str, Any], known: dict[str, Any]) -> None:
        result = await self._call(tool, arguments, self._chance.choice((FORMS, CARDS, {}, {**FORMS, **CARDS})))
        known["state"] = result.get("requestState", known.get("state"))
        # What a model sees: everything but _meta.
        seen = result.get("structuredContent", {})
        known["token"] = seen.get("confirmationToken", known.get("token"))

    async def _answer(self, tool: str, arguments: dict[str, Any], known: dict[str, Any]) -> None:
        answer = self._chance.choice((DECLINE, CANCEL, NOT_TICKED, *SILENCE))
        given = {"inputResponses": {"confirm": answer}, "requestState": known.get("state")}
        await self._call(tool, arguments, FORMS, **given)
        if answer in (DECLINE, CANCEL, NOT_TICKED) and known.get("state"):  # too late to change one's mind
            await self._call(tool, arguments, FORMS, inputResponses={"confirm": YES}, requestState=known["state"])

    async def _forge(self, tool: str, arguments: dict[str, Any], known: dict[str, Any]) -> None:
        state = known.get("state") or "x" * 40
        at = self._chance.randrange(len(state))
        forged = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
        await self._call(tool, arguments, FORMS, inputResponses={"confirm": YES}, requestState=forged)

    async def _resend(self, tool: str, arguments: dict[str, Any], known: dict[str, Any]) -> None:
        """Goes on by itself with whatever it has seen, or makes up."""
        made_up = f"{self._chance.choice(('', 'card-', 'elicitation-'))}{self._chance.getrandbits(128):032x}"
        token = self._chance.choice((known.get("token") or made_up, known.get("state") or made_up, made_up))
        await self._call(tool, {**arguments, "confirmationToken": token}, self._chance.choice((FORMS, CARDS, {})))

    async def _swap(self, tool: str, arguments: dict[str, Any], known: dict[str, Any]) -> None:
        """The agreement to another write: the same state, other arguments."""
        others = [(name, given) for name, given in self._writes if given != arguments]
        other, given = self._chance.choice(others)
        if known.get("state"):
            await self._call(other, given, FORMS, inputResponses={"confirm": YES}, requestState=known["state"])


def _framed(answer: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(answer.content.split(b"data: ", 1)[1])["result"]
    return found


async def _executed(world: World) -> int:
    async with world.database.transaction(HARBOR) as connection:
        count: int = await connection.fetchval(
            """SELECT count(*) FROM audit_record WHERE practice_id = $1 AND consent IS NOT NULL
               AND outcome IN ('executed', 'unchanged')""",
            HARBOR,
        )
    return count


async def _dialogues(world: World, count: int, seed: int) -> Counter[str]:
    agent = await world.client(access_limits=UNLIMITED, trusted_to_ask=True)
    appointment = await book(agent)
    before = await _executed(world)
    ada, free = await patient_id(agent), await slots(agent)
    writes: list[tuple[str, dict[str, Any]]] = [
        ("book_appointment", {"patientId": ada, "slotId": free[2]["id"]}),
        ("book_appointment", {"patientId": ada, "slotId": free[4]["id"]}),
        ("cancel_appointment", {"appointmentId": appointment}),
        ("cancel_appointment", {"appointmentId": appointment, "reason": "Travelling"}),
        ("confirm_attendance", {"appointmentId": appointment}),
        ("reschedule_appointment", {"appointmentId": appointment, "slotId": free[6]["id"]}),
    ]
    demands = ("elicitation", "card", "staff")
    model = Model(random.Random(seed), agent, writes)
    for number in range(count):
        turn, begun = divmod(number, max(count // 6, 1))
        if begun == 0:  # now one demand, now another
            first, second = demands[turn % 3], demands[(turn + 1) % 3]
            await demand(
                world,
                bookAppointment=first,
                cancelAppointment=second,
                confirmAttendance=first,
                rescheduleAppointment=second,
            )
        await model.dialogue()
    assert await _executed(world) == before, f"seed {seed}"
    assert (await agent.get(f"/api/appointments/{appointment}")).json()["status"] == "booked"
    return model.outcomes


async def test_no_dialogue_without_a_yes_executes_anything(world: World) -> None:
    outcomes = await _dialogues(world, QUICK, seed=18)
    assert {"input_required", "confirmation_required", "consent_required", "forged"} <= outcomes.keys()


@pytest.mark.heavy
async def test_ten_thousand_dialogues_without_a_yes_execute_nothing(world: World) -> None:
    print(await _dialogues(world, MANY, seed=random.randrange(2**32)))
