"""An unavailable FHIR server of one practice does not slow down other practices."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from frontdesk.host_lookups import HostLookups
from frontdesk.practice_file import parse
from frontdesk.store.practices import import_practice, practice_id_of
from tests.fhir.calls import ZAPHOD, booking, challenged, search
from tests.fhir.misbehaving import lose_answers
from tests.fhir.practice import Upstream, file_text, give
from tests.support.running import running
from tests.support.world import PRACTICE, World, book

EVERYBODY = 60  # more than all that one practice may have under way


@pytest.fixture
async def town(fhir: World, healthy: Upstream) -> World:
    """Beside the practice of the tests one with a calendar of ours, and one with a FHIR server of its own."""
    await import_practice(fhir.database, parse(PRACTICE.replace("SLUG", "native")), fhir.clock.now)
    await import_practice(fhir.database, parse(file_text("healthy", healthy.door.address)), fhir.clock.now)
    return fhir


async def test_a_server_that_hangs_keeps_nobody_else_waiting(town: World, upstream: Upstream) -> None:
    await town.import_file(file_text("harbor", upstream.door.address, timeoutSeconds=60))
    sick, native, well = await town.client(), await town.client("native"), await town.client("healthy")
    assert {await search(client) for client in (sick, native, well)} == {200}
    upstream.door.slow = 120
    upstream.door.harm = lambda request: "delay"
    stuck = [asyncio.create_task(search(sick)) for _ in range(EVERYBODY)]
    try:
        await upstream.door.stuck.wait()
        answers = await asyncio.gather(*(search(client) for client in (native, well) for _ in range(5)))
        booked = [await book(client) for client in (native, well)]
        still = sum(not task.done() for task in stuck)
    finally:
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
    assert set(answers) == {200}
    assert all(booked)
    assert still, "they were answered while others were still stuck"
    assert not any(task.result() == 200 for task in stuck if not task.cancelled())


@dataclass
class DeadName:
    """A host name that nobody answers for, as long as the test runs."""

    name: str = "ehr.example.com"
    lookups: int = 0
    waiting: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadName]:
    made, look_up = DeadName(), socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if host in (made.name, made.name.encode()):
            made.lookups += 1
            made.over.wait(90)
            raise socket.gaierror("nobody answers")
        return look_up(host, *arguments, **options)

    addresses = HostLookups.addresses

    async def counted(lookups: HostLookups, host: str) -> list[str]:
        made.waiting += host == made.name
        return await addresses(lookups, host)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(HostLookups, "addresses", counted)
    yield made
    made.over.set()


async def test_a_name_that_is_not_found_keeps_nobody_else_waiting(
    town: World, healthy: Upstream, dead: DeadName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lookups take threads, and of those that everybody shares there are few."""
    # Everybody waits for the first statement, and only then for a lookup of their own.
    monkeypatch.setattr("frontdesk.systems.fhir.upstream.FIRST_STATEMENT_SECONDS", 1.0)
    settings = {"timeoutSeconds": 60, "maxConcurrent": 64, "schedulingOperations": "none"}
    await town.import_file(file_text("harbor", f"https://{dead.name}/fhir", **settings))
    by_name = healthy.door.address.replace("127.0.0.1", "localhost")
    await town.import_file(file_text("healthy", by_name))
    sick, well = await town.client(), await town.client("healthy")
    stuck = [asyncio.create_task(sick.post("/api/patients/match", json=ZAPHOD)) for _ in range(EVERYBODY)]
    try:
        async with asyncio.timeout(60):
            while dead.waiting < (os.cpu_count() or 1) + 4:  # as many threads as are shared
                await asyncio.sleep(0.01)
        async with asyncio.timeout(30):
            assert await search(well) == 200
            assert await asyncio.to_thread(lambda: "here") == "here"
        assert dead.lookups == 1, "they share a thread"
    finally:
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_lost_writes_are_settled_beside_a_server_that_hangs(
    town: World, upstream: Upstream, healthy: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.systems.fhir.writing.reconciler.PAUSE_SECONDS", 0.05)
    sick, well = await town.client(), await town.client("healthy")
    lost = {}
    for client, server in ((sick, upstream), (well, healthy)):
        lost[client] = await challenged(client, "/api/appointments", await booking(client))
        server.door.harm = lose_answers
        answer = await client.post("/api/appointments", json=lost[client])
        assert answer.json()["code"] == "confirmation_incomplete"
    upstream.door.slow = 120
    upstream.door.reset()
    upstream.door.harm = lambda request: "delay"
    healthy.door.reset()
    give(town, 60)
    town.clock.advance(seconds=60)
    town.service.fhir.reconciler._limit = asyncio.Semaphore(1)
    first = await practice_id_of(town.database, "harbor")
    assert first is not None
    hanging = asyncio.create_task(town.service.fhir.reconciler.settle(first))
    await upstream.door.stuck.wait()
    try:
        async with running(town.service.fhir.reconciler.step), asyncio.timeout(40):
            while (await well.post("/api/appointments", json=lost[well])).status_code != 201:
                await asyncio.sleep(0.05)
    finally:
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
