"""One run of the proof: clients work at nodes for a while, then everything they were told is checked."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from frontdesk.access.clients.records import AccessLimits, add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.keys.encryption import load_secret_key
from frontdesk.app import Service
from frontdesk.audit.verify import verify_chain
from frontdesk.outbound.webhooks.endpoints import add_endpoint
from frontdesk.practice_file import parse
from frontdesk.store.practices import import_practice
from tests.proof.checker import Checker
from tests.proof.facts import Findings
from tests.proof.practices import NATIVE, SLUGS, UPSTREAM, practice_file
from tests.proof.receipts import issue_some, read_agreed
from tests.proof.recorder import Caller, History
from tests.proof.stored import read_stored
from tests.proof.upstream import FhirPractice
from tests.proof.workload import CAP, FIRST_DAY_AHEAD, Actor, Capped, Desk, UpstreamActor, on_file, signed_in
from tests.proof.write_limits import WRITES_PER_HOUR
from tests.webhooks.receiver import Receiver

SUBJECTS = ("appointmentId", "patientId", "clientId")  # of events
_UNLIMITED = AccessLimits(0, 0, 0, known_patients_only=False, writes_per_hour=0, upcoming_per_patient=0)


@dataclass
class Proof:
    service: Service  # for setting up and for reading what is stored
    owner_dsn: str
    nodes: list[httpx.AsyncClient]
    receiver: Receiver
    history: History = field(default_factory=History)
    actors: list[Actor] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    practices: list[int] = field(default_factory=list)
    fhir: FhirPractice | None = None
    webhook_timeout: float = 60.0  # seconds

    async def set_up(self, days: int = 1) -> None:
        """Practices, webhook endpoints and clients, who book on so many days."""
        database = self.service.database
        await self.service.ring.load()
        cipher = load_secret_key(self.service.settings)
        desks = [Desk(slug, days=days) for slug in (NATIVE if self.fhir is None else SLUGS)]
        if self.fhir is not None:
            # One day more, because a run may last beyond midnight.
            await self.fhir.open(datetime.now(UTC) + timedelta(days=FIRST_DAY_AHEAD), days + 1)
            self.history.upstream = frozenset({UPSTREAM})
        for desk in desks:
            now = datetime.now(UTC)
            system = self.fhir.settings() if self.fhir is not None and desk.practice == UPSTREAM else None
            practice_id = await import_practice(database, parse(practice_file(desk.practice, system)), now)
            self.practices.append(practice_id)
            await add_endpoint(database, cipher, practice_id, self.receiver.url(), (), now)
            desk.foreign = [other for other in desks if other is not desk]
        for desk in desks:
            grants = ("agent", "agent", "agent", "integration", "integration", "integration")
            if desk.practice == UPSTREAM:
                for grant in grants[1:-1]:
                    self.actors.append(UpstreamActor(await self._caller(desk.practice, grant, 1_000_000), desk))
            else:
                for grant in grants:
                    self.actors.append(Actor(await self._caller(desk.practice, grant, 1_000_000), desk))
        limited = await self._caller(desks[0].practice, "agent", 1_000_000, WRITES_PER_HOUR)
        self.history.write_limits[limited.client_id] = WRITES_PER_HOUR
        self.actors.append(Actor(limited, desks[0]))
        self.actors.append(Capped(await self._caller(desks[0].practice, "agent", CAP), desks[0]))

    async def begin(self) -> None:
        """Signs the clients in, and finds the patients that are on file."""
        for actor in self.actors:
            await signed_in(actor.caller)
        for actor in self.actors:
            if not actor.desk.patients:
                actor.desk.patients = await on_file(actor.caller)
                for patient, person in actor.desk.patients.items():
                    self.history.persons[actor.desk.practice, patient] = person

    async def _caller(self, practice: str, grant: str, per_minute: int, writes_per_hour: int = 0) -> Caller:
        limits = replace(_UNLIMITED, writes_per_hour=writes_per_hour)
        record, secret = await add_client(
            self.service.database, self.service.ring, practice=practice, name="Proof", grant=grant, scopes=SCOPES,
            per_minute=per_minute, quota=1_000_000_000, access_limits=limits,
        )  # fmt: skip
        if grant == "agent":
            self.agents.add(record.client_id)
        if per_minute == CAP:
            self.history.caps[record.client_id] = CAP
        caller = Caller(self.history, practice, grant, (record.client_id, secret), self.nodes)
        if self.fhir is not None and practice == UPSTREAM:
            caller.gate = self.fhir.gate
        return caller

    async def work(self, during: Awaitable[Any]) -> None:
        """The clients work until `during` is over, and finish what they have begun."""
        for actor in self.actors:
            actor.stopping = False
        tasks = [asyncio.create_task(actor.run()) for actor in self.actors]
        try:
            await during
        finally:
            for actor in self.actors:
                actor.stopping = True
            await asyncio.gather(*tasks)

    async def until(self, operations: int) -> None:
        while len(self.history.ops) < operations:
            await asyncio.sleep(0.02)

    async def verdict(self, *, reads_may_be_lost: bool = False) -> Findings:
        await self._until_delivered()
        stored = await read_stored(self.owner_dsn)
        stored.reads_may_be_lost = reads_may_be_lost
        if self.fhir is not None:
            upstream = await self.fhir.stored(self.owner_dsn)
            stored.appointments += upstream.appointments()
            stored.patients += upstream.patients()
            stored.upstream_faults = list(upstream.faults())
        stored.received = [
            (m.id, m.document["type"], next(data[name] for name in SUBJECTS if name in (data := m.document["data"])))
            for m in self.receiver.received
        ]
        for practice_id in self.practices:
            later = datetime.now(UTC) + timedelta(minutes=5)  # a record may wait a minute for its seal
            report = await verify_chain(self.service.database, practice_id, later, keys=self.service.ring)
            stored.broken_chains += [violation.message for violation in report.violations]
        stored.agreed = await read_agreed(self.owner_dsn)
        stored.receipts = await issue_some(self.service, stored.agreed)
        return Checker(self.history, frozenset(self.agents)).check(stored)

    async def _until_delivered(self) -> None:
        """Waits for the webhooks of all events; those that do not come are an anomaly."""
        deadline = time.monotonic() + self.webhook_timeout
        stored = await read_stored(self.owner_dsn)
        events = {f"evt_{row['event_id']}" for row in stored.outbox}
        while not events <= set(self.receiver.ids()) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
