"""Bookings and searches a second on the cluster and on one server, in turns, so that both meet the same load."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.citus.cluster import CitusCluster, named_address
from tests.conftest import quick_settings
from tests.store.embedded_processes import copy_of, superuser_login
from tests.support.shared_database import shared_world
from tests.support.world import MONDAY, World, confirmed, patient_id, slots

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(named_address() is None, reason="make citus-test DATABASE=... names a cluster"),
]
CALLERS, CALLS, ROUNDS = 4, 16, 8  # calls of a round, by all callers together
CALLS_A_DAY = 12
# Of one server's calls: about half of what is usual, as others use the cores.
MIN_BOOKINGS, MIN_SEARCHES = 0.2, 0.35

Work = Callable[[httpx.AsyncClient, dict[str, Any]], Awaitable[None]]
Prepared = Callable[[httpx.AsyncClient, int], Awaitable[list[dict[str, Any]]]]


@pytest.fixture
async def worlds(
    cluster: CitusCluster, template: str, made_server: Path, tmp_path: Path
) -> AsyncIterator[tuple[World, World]]:
    """One on the cluster and one on one server, without waits for a disk."""
    with copy_of(made_server) as home, superuser_login(), quick_settings():
        postgres = EmbeddedPostgres(home)
        postgres.start(timeout=240)
        try:
            async with (
                shared_world(cluster, template, tmp_path / "cluster") as distributed,
                shared_world(postgres, "frontdesk", tmp_path / "plain") as plain,
            ):
                yield distributed, plain
        finally:
            postgres.stop_and_await_end()


async def bookings(client: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    patient, found = await patient_id(client), list[dict[str, Any]]()
    for week in range(-(-count // CALLS_A_DAY)):
        day = (MONDAY + timedelta(weeks=week)).isoformat()
        found += (await slots(client, **{"from": day, "to": day}))[:CALLS_A_DAY]
    return [{"patientId": patient, "slotId": slot["id"]} for slot in found]


async def book(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    """In two phases."""
    answer = await confirmed(client, "POST", "/api/appointments", body)
    assert answer.status_code == 201, answer.text


async def searches(_: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """Each asks for other days."""
    ranges = ((MONDAY + timedelta(days=n % 30), timedelta(days=n // 30)) for n in range(count))
    return [{"from": first.isoformat(), "to": (first + more).isoformat()} for first, more in ranges]


async def search(client: httpx.AsyncClient, query: dict[str, Any]) -> None:
    await slots(client, **query)


@pytest.mark.parametrize(
    ("prepared", "work", "least"), [(bookings, book, MIN_BOOKINGS), (searches, search, MIN_SEARCHES)]
)
async def test_a_cluster_answers_a_good_part_of_what_one_server_does(
    worlds: tuple[World, World], prepared: Prepared, work: Work, least: float
) -> None:
    clients = [await world.client() for world in worlds]
    calls = [iter(await prepared(client, CALLS * (ROUNDS + 1))) for client in clients]
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS + 1):
        for client, waiting, found in zip(clients, calls, rates, strict=True):
            found.append(await calls_a_second(client, work, islice(waiting, CALLS)))
    cluster, one = (found[1:] for found in rates)  # the first round opens connections and plans statements
    ratio = statistics.median(ours / theirs for ours, theirs in zip(cluster, one, strict=True))
    print(
        f"{prepared.__name__}: {statistics.median(cluster):.0f} a second on the cluster, "
        f"{statistics.median(one):.0f} on one server: {ratio:.2f}"
    )
    assert ratio >= least


async def calls_a_second(client: httpx.AsyncClient, work: Work, calls: Iterable[dict[str, Any]]) -> float:
    waiting = list(calls)
    count, began = len(waiting), time.perf_counter()

    async def caller() -> None:
        while waiting:
            await work(client, waiting.pop())

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return count / (time.perf_counter() - began)
