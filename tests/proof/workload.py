"""Clients that call every operation at random, over every door, and resend writes whose answer was lost."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.proof.practices import CAPACITY, PROCEDURES, VISIT_TYPE, persons
from tests.proof.recorder import Caller, Op, Person

FIRST_DAY_AHEAD = 5  # far enough that no jump of the clock makes it past
CAP = 40
_DIRECTORY_READS: Sequence[tuple[str, Mapping[str, Any]]] = [
    ("get_capabilities", {}),
    ("get_practice", {}),
    ("list_locations", {}),
    ("get_location", {"locationId": 1}),
    ("list_providers", {}),
    ("get_provider", {"providerId": 10}),
    ("list_visit_types", {}),
    ("get_visit_type", {"visitTypeId": VISIT_TYPE}),
    ("list_procedures", {"visitTypeId": VISIT_TYPE}),
]
_RECOVERY = 120.0  # seconds
_PAUSE = 0.1


@dataclass
class Desk:
    """What the clients of one practice know together."""

    practice: str
    patients: dict[str, Person] = field(default_factory=dict)
    slots: list[str] = field(default_factory=list)
    appointments: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    foreign: list["Desk"] = field(default_factory=list)
    days: int = 1

    def a_day(self) -> str:
        """One of few days, so that the clients meet."""
        return (datetime.now(UTC) + timedelta(days=FIRST_DAY_AHEAD + random.randrange(self.days))).date().isoformat()

    def some_patient(self) -> str:
        return random.choice(list(self.patients))


class Actor:
    timeout_seconds = 60.0  # seconds for a write to be answered
    pause_seconds = 0.0  # on average, between two actions

    def __init__(self, caller: Caller, desk: Desk) -> None:
        self.caller = caller
        self.desk = desk
        self.stopping = False
        self._holds: list[str] = []
        self._settled: list[tuple[str, Mapping[str, Any], str | None, str | None]] = []  # writes that succeeded

    async def run(self) -> None:
        acts, weights = zip(*self.actions(), strict=True)
        while not self.stopping:
            await random.choices(acts, weights)[0]()
            await asyncio.sleep(random.uniform(0, 2 * self.pause_seconds))

    def actions(self) -> Sequence[tuple[Callable[[], Awaitable[None]], int]]:
        return (
            (self.search, 8), (self.first_available, 2), (self.look_at_slot, 3), (self.book, 8), (self.change, 7),
            (self.read_appointment, 4), (self.list_appointments, 2), (self.create_patient, 2), (self.update_patient, 3),
            (self.read_patient, 3), (self.match, 2), (self.directory, 4), (self.foreign, 1), (self.resend, 2),
            (self.hold, 3), (self.use_hold, 4),
        )  # fmt: skip

    # reads

    async def search(self) -> None:
        given = {"providerId": random.choice(list(CAPACITY)), "locationId": 1, "visitTypeId": VISIT_TYPE}
        day = self.desk.a_day()
        given |= {"procedureId": random.choice(list(PROCEDURES)), "from": day, "to": day}
        self._keep_slots(await self.caller.call("search_slots", given))

    async def first_available(self) -> None:
        given = {
            "visitTypeId": VISIT_TYPE,
            "procedureId": random.choice(list(PROCEDURES)),
            "from": self.desk.a_day(),
            "limit": 8,
        }
        if random.random() < 0.5:
            given["providerId"] = random.choice(list(CAPACITY))
        self._keep_slots(await self.caller.call("find_first_available", given))

    def _keep_slots(self, op: Op) -> None:
        if op.succeeded and op.body["items"]:
            self.desk.slots += [item["id"] for item in random.sample(op.body["items"], min(3, len(op.body["items"])))]
            del self.desk.slots[:-40]

    async def look_at_slot(self) -> None:
        if self.desk.slots:
            await self.caller.call("get_slot", {"slotId": random.choice(self.desk.slots)})

    async def read_appointment(self) -> None:
        if self.desk.appointments:
            await self.caller.call("get_appointment", {"appointmentId": self._some_appointment()})

    async def list_appointments(self) -> None:
        if random.random() < 0.5:
            await self._list_of(self.desk.some_patient())
        else:
            day = self.desk.a_day()
            given = {"providerId": random.choice(list(CAPACITY)), "from": day, "to": day, "limit": 50}
            await self.caller.call("list_appointments", given)

    async def _list_of(self, patient: str) -> Op:
        return await self.caller.call("list_appointments", {"patientId": patient, "limit": 200})

    async def read_patient(self) -> None:
        await self.caller.call("get_patient", {"patientId": self.desk.some_patient()})

    async def match(self) -> None:
        person = random.choice(list(self.desk.patients.values()))
        given = {"firstName": person.first, "lastName": person.last, "dob": person.dob, "phone": person.phone}
        await self.caller.call("match_patient", given)

    async def directory(self) -> None:
        name, given = random.choice(_DIRECTORY_READS)
        await self.caller.call(name, given)

    async def foreign(self) -> None:
        other = random.choice(self.desk.foreign)
        if other.appointments:
            await self.caller.call("get_appointment", {"appointmentId": other.appointments[-1]})
        await self.caller.call("get_patient", {"patientId": other.some_patient()})

    # writes

    async def book(self) -> None:
        if self.desk.slots:
            given = {"patientId": self.desk.some_patient(), "slotId": random.choice(self.desk.slots[-12:])}
            self._keep_appointment(await self.write("book_appointment", given))

    def _keep_appointment(self, op: Op | None) -> None:
        if op is not None and _has(op, "appointmentId"):
            self.desk.appointments.append(op.body["appointmentId"])
            del self.desk.appointments[:-60]

    async def hold(self) -> None:
        if self.desk.slots:
            op = await self.write("hold_slot", {"slotId": random.choice(self.desk.slots[-12:])})
            if op is not None and _has(op, "holdId"):
                self._holds.append(op.body["holdId"])
                self.desk.holds.append(op.body["holdId"])
                del self.desk.holds[:-20]

    async def use_hold(self) -> None:
        """Books or releases a hold, or leaves it to expire; sometimes one of somebody else."""
        # The newest of others: one that has just begun is most likely live.
        others = [hold for hold in self.desk.holds[-4:] if hold not in self._holds] if random.random() < 0.25 else []
        if not others and not self._holds:
            return
        hold = random.choice(others) if others else self._holds.pop(random.randrange(len(self._holds)))
        act = random.choice(("book", "book", "book", "release", "release", "read", "read"))
        if act == "book":
            op = await self.write("book_appointment", {"patientId": self.desk.some_patient(), "holdId": hold})
            self._keep_appointment(op)
        elif act == "release":
            await self.write("release_hold", {"holdId": hold})
        else:
            await self.caller.call("get_hold", {"holdId": hold})

    async def change(self) -> None:
        if not self.desk.appointments:
            return
        name = random.choice(
            ("cancel_appointment", "cancel_appointment", "confirm_attendance", "reschedule_appointment")
        )
        given = {"appointmentId": self._some_appointment()}
        if name == "reschedule_appointment":
            if not self.desk.slots:
                return
            given["slotId"] = random.choice(self.desk.slots[-12:])
        await self.write(name, given)

    async def create_patient(self) -> None:
        if len(self.desk.patients) > 60:
            return
        number = random.randrange(10**7)
        person = Person("New", f"{self.desk.practice} new {number}", "1990-01-01", f"777{number:07}")
        given = {"firstName": person.first, "lastName": person.last, "dob": person.dob, "phone": person.phone}
        writes = [self.write("create_patient", given) for _ in range(random.choice((1, 1, 2)))]
        for op in await asyncio.gather(*writes):
            if op is not None and _has(op, "patientId"):
                self.desk.patients[op.body["patientId"]] = person

    async def update_patient(self) -> None:
        patient, number = self.desk.some_patient(), random.randrange(10**7)
        changes = random.choice([{"phone": f"888{number:07}"}, {"email": f"p{number}@example.com"}])
        writes = [self.write("update_patient", {"patientId": patient, **changes})]
        if random.random() < 0.3:
            other = {"email": f"q{number}@example.com"} if "phone" in changes else {"phone": f"999{number:07}"}
            writes.append(self.write("update_patient", {"patientId": patient, **other}))
        await asyncio.gather(*writes)

    async def write(self, name: str, given: Mapping[str, Any]) -> Op | None:
        """One write to its end: agents confirm, sometimes twice at once; what is lost is sent again."""
        if not self.caller.is_agent:
            key = f"k{random.getrandbits(64):x}" if random.random() < 0.6 else None
            return await self._to_its_end(name, given, None, key)
        challenge = await self.caller.call(name, given)
        if challenge.status != 428:
            return challenge
        token = challenge.body["confirmationToken"]
        if "slotId" in given and random.random() < 0.1:
            changed = {**given, "slotId": random.choice(self.desk.slots)}
            if changed != given:
                await self.caller.call(name, changed, token=token)
        sent = [self._to_its_end(name, given, token, None) for _ in range(random.choice((1, 1, 1, 2)))]
        return (await asyncio.gather(*sent))[0]

    async def _to_its_end(self, name: str, given: Mapping[str, Any], token: str | None, key: str | None) -> Op:
        deadline = asyncio.get_running_loop().time() + self.timeout_seconds
        while True:
            op = await self.caller.call(name, given, token=token, key=key)
            if op.succeeded and (token or key):
                self._settled = [*self._settled[-20:], (name, given, token, key)]
            may_resend = token is not None or key is not None
            if not (op.is_unknown and may_resend) or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(_PAUSE)
        if op.is_unknown and name == "book_appointment":
            await self._list_of(given["patientId"])
        if op.status in (0, 502):
            await asyncio.sleep(_PAUSE)
        return op

    async def look_back(self) -> None:
        """Reads the appointments of every patient, after everything else; the service has to answer again."""
        for patient in list(self.desk.patients):
            deadline = asyncio.get_running_loop().time() + _RECOVERY
            while not (op := await self._list_of(patient)).succeeded:
                assert asyncio.get_running_loop().time() < deadline, f"the service does not recover: {op}"
                await asyncio.sleep(_PAUSE)

    async def resend(self) -> None:
        if self._settled:
            name, given, token, key = random.choice(self._settled)
            await self.caller.call(name, given, token=token, key=key)

    def _some_appointment(self) -> str:
        return random.choice(self.desk.appointments[-25:])


class UpstreamActor(Actor):
    """A client of a practice in another system, where times cannot be held and lost writes are settled later."""

    timeout_seconds = 5.0

    def actions(self) -> Sequence[tuple[Callable[[], Awaitable[None]], int]]:
        return [each for each in super().actions() if each[0] not in (self.hold, self.use_hold)]


class Capped(Actor):
    """Calls as fast as its rate limit lets it, and a little faster."""

    async def run(self) -> None:
        while not self.stopping:
            op = await self.caller.call("get_capabilities", {})
            if op.code == "rate_limited":
                await asyncio.sleep(0.3)


def _has(op: Op, name: str) -> bool:
    """Whether a write succeeded with that. One that answers something else goes on: the checker names it."""
    return op.succeeded and name in op.body


async def signed_in(caller: Caller) -> None:
    deadline = asyncio.get_running_loop().time() + _RECOVERY
    while not await caller.sign_in():  # as while a node is slow
        assert asyncio.get_running_loop().time() < deadline, "no node gives a token"
        await asyncio.sleep(_PAUSE)


async def on_file(caller: Caller) -> dict[str, Person]:
    """The patients of the practice file, found as a caller finds them."""
    found = {}
    for person in persons(caller.practice):
        given = {"firstName": person.first, "lastName": person.last, "dob": person.dob, "phone": person.phone}
        deadline = asyncio.get_running_loop().time() + _RECOVERY
        while not (op := await caller.call("match_patient", given)).succeeded:  # as while a FHIR server is slow
            assert asyncio.get_running_loop().time() < deadline, op
            await asyncio.sleep(_PAUSE)
        found[op.body["items"][0]["id"]] = person
    return found
