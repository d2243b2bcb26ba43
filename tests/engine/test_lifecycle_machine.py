"""The whole life of appointments and confirmation tokens, driven at random through REST against a simple model."""

import asyncio
import itertools
import os
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.support.world import NOW, PRACTICE, UNLIMITED, World, build_world, patient_id, slots

T = TypeVar("T")
TOKEN_LIFE, RESULT_LIFE = timedelta(minutes=10), timedelta(hours=24)
_numbers = itertools.count(1)


class Loop:
    """An event loop in a thread of its own, so that the machine, which is synchronous, can call the service."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@dataclass
class Appointment:
    patient: str
    slot: int
    status: str


@dataclass
class Challenge:
    token: str
    client: int
    method: str
    path: str
    body: dict[str, str]
    write: tuple[str, Any, Any]  # what the model would do
    expires_at: datetime
    result: tuple[int, dict[str, str], datetime] | None = None


@dataclass
class ValidationContext:
    loop: Loop
    world: World


surroundings: ValidationContext


@pytest.fixture
def _surroundings(database_dsn: str, tmp_path: Path) -> Iterator[None]:
    global surroundings
    loop = Loop()
    database = Database(database_dsn, pool_size=4)
    loop.run(database.open())
    surroundings = ValidationContext(loop, loop.run(build_world(database, tmp_path)))
    yield
    loop.run(surroundings.world.close())
    loop.run(database.close())
    loop.close()


class Lifecycle(RuleBasedStateMachine):
    challenges: Bundle[Challenge] = Bundle("challenges")

    @initialize()
    def start(self) -> None:
        self.world, self.run = surroundings.world, surroundings.loop.run
        self.world.clock.now = NOW
        slug = f"machine-{next(_numbers)}"
        self.run(import_practice(self.world.database, parse(PRACTICE.replace("SLUG", slug)), NOW))
        self.agents: list[httpx.AsyncClient] = [
            self.run(self.world.client(slug, access_limits=UNLIMITED)) for _ in range(2)
        ]
        self.integration = self.run(self.world.client(slug, grant="integration"))
        self.patients = [self.run(patient_id(self.integration, name)) for name in ("Ada", "José", "Alan")]
        self.slots = self.run(slots(self.integration))[:4]
        self.appointments: dict[str, Appointment] = {}

    # what the model expects

    def _refusal(self, write: tuple[str, Any, Any]) -> str | None:
        kind, subject, slot = write
        if kind == "book":
            return "slot_unavailable" if self._taken(slot, but=None) else None
        status = self.appointments[subject].status
        if status == "cancelled":
            return "conflict"
        if kind == "reschedule" and self._taken(slot, but=subject):
            return "slot_unavailable"
        return None

    def _taken(self, slot: int, but: str | None) -> bool:
        live = (a for key, a in self.appointments.items() if a.status != "cancelled" and key != but)
        return any(a.slot == slot for a in live)

    def _apply(self, write: tuple[str, Any, Any], body: dict[str, str]) -> None:
        kind, subject, slot = write
        if kind == "book":
            self.appointments[body["appointmentId"]] = Appointment(subject, slot, "booked")
        elif kind == "reschedule":
            if self.appointments[subject].slot != slot:  # to its own slot, nothing changes
                self.appointments[subject].slot, self.appointments[subject].status = slot, "booked"
        else:
            self.appointments[subject].status = {"cancel": "cancelled", "confirm": "confirmed"}[kind]
        if kind != "book":
            assert body == {"appointmentId": subject, "status": self.appointments[subject].status}

    # how the service is called

    def _request(self, write: tuple[str, Any, Any]) -> tuple[str, str, dict[str, str]]:
        kind, subject, slot = write
        if kind == "book":
            return "POST", "/api/appointments", {"patientId": subject, "slotId": self.slots[slot]["id"]}
        body = {"slotId": self.slots[slot]["id"]} if kind == "reschedule" else {}
        return "POST", f"/api/appointments/{subject}/{kind}", body

    def _challenge(self, client: int, write: tuple[str, Any, Any], token: str | None = None) -> Any:
        method, path, body = self._request(write)
        sent = body if token is None else {**body, "confirmationToken": token}
        answer = self.run(self.agents[client].request(method, path, json=sent))
        refusal = self._refusal(write)
        if refusal is not None:
            assert answer.json()["code"] == refusal, answer.text
            return multiple()
        assert answer.status_code == 428, answer.text
        fresh = answer.json()["confirmationToken"]
        assert fresh != token
        return Challenge(fresh, client, method, path, body, write, self.world.clock.now + TOKEN_LIFE)

    @rule(target=challenges, client=st.integers(0, 1), patient=st.integers(0, 2), slot=st.integers(0, 3))
    def propose_booking(self, client: int, patient: int, slot: int) -> Any:
        return self._challenge(client, ("book", self.patients[patient], slot))

    @rule(
        target=challenges,
        client=st.integers(0, 1),
        kind=st.sampled_from(["cancel", "confirm", "reschedule"]),
        which=st.integers(0, 9),
        slot=st.integers(0, 3),
    )
    def propose_step(self, client: int, kind: str, which: int, slot: int) -> Any:
        if not self.appointments:
            return multiple()
        subject = list(self.appointments)[which % len(self.appointments)]  # in order of booking: ids are random
        return self._challenge(client, (kind, subject, slot))

    @rule(challenge=challenges)
    def resend_identically(self, challenge: Challenge) -> None:
        now = self.world.clock.now
        if challenge.result is not None and now < challenge.result[2]:
            answer = self._send(challenge, challenge.client)
            assert (answer.status_code, answer.json()) == challenge.result[:2]
        elif challenge.result is not None or now >= challenge.expires_at:
            self._challenge(challenge.client, challenge.write, challenge.token)
        else:
            answer = self._send(challenge, challenge.client)
            refusal = self._refusal(challenge.write)
            if refusal is not None:
                assert answer.json()["code"] == refusal, answer.text
            else:
                assert answer.status_code == (201 if challenge.write[0] == "book" else 200), answer.text
                self._apply(challenge.write, answer.json())
                challenge.result = (answer.status_code, answer.json(), now + RESULT_LIFE)

    @rule(challenge=challenges, slot=st.integers(0, 3))
    def resend_changed(self, challenge: Challenge, slot: int) -> None:
        changed = {**challenge.body, "slotId": self.slots[slot]["id"]}
        if "slotId" not in challenge.body or changed == challenge.body:
            return
        answer = self._send(challenge, challenge.client, changed)
        known = self.world.clock.now < (challenge.result[2] if challenge.result else challenge.expires_at)
        if known:
            assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_mismatch")
        else:
            assert answer.status_code == 428 or answer.json()["code"] in ("slot_unavailable", "conflict")

    @rule(challenge=challenges)
    def resend_as_another_client(self, challenge: Challenge) -> None:
        answer = self._send(challenge, 1 - challenge.client)
        assert answer.json()["code"] == (self._refusal(challenge.write) or "confirmation_required")

    @rule(which=st.integers(0, 9))
    def somebody_else_cancels(self, which: int) -> None:
        live = [key for key, a in self.appointments.items() if a.status != "cancelled"]
        if live:
            subject = live[which % len(live)]
            answer = self.run(self.integration.post(f"/api/appointments/{subject}/cancel"))
            assert answer.status_code == 200
            self.appointments[subject].status = "cancelled"

    @rule(minutes=st.sampled_from([1, 9, 10, 23 * 60, 25 * 60]))
    def time_passes(self, minutes: int) -> None:
        if self.world.clock.now + timedelta(minutes=minutes) > NOW + timedelta(hours=26):
            return  # the slots lie on the next day
        self.world.clock.advance(minutes=minutes)
        for client in (*self.agents, self.integration):
            self.run(self.world.renew(client))

    @invariant()
    def the_calendar_is_what_the_model_says(self) -> None:
        stored = self.run(self.integration.get("/api/appointments", params={"limit": 200})).json()["items"]
        assert {a["id"]: (a["patientId"], a["start"], a["status"]) for a in stored} == {
            key: (a.patient, self.slots[a.slot]["start"], a.status) for key, a in self.appointments.items()
        }

    def _send(self, challenge: Challenge, client: int, body: dict[str, str] | None = None) -> httpx.Response:
        sent = {**(challenge.body if body is None else body), "confirmationToken": challenge.token}
        return self.run(self.agents[client].request(challenge.method, challenge.path, json=sent))


@pytest.mark.usefixtures("_surroundings")
def test_the_service_behaves_like_the_model() -> None:
    run_state_machine_as_test(Lifecycle, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("_surroundings")
def test_the_service_behaves_like_the_model_for_long() -> None:
    lives = int(os.environ.get("LIVES", "300"))
    run_state_machine_as_test(Lifecycle, settings=settings(max_examples=lives, stateful_step_count=60, deadline=None))
