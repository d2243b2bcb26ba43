"""Bookings and searches on the cluster and on one server, one call each in turn, so that both meet the same load."""

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.citus.cluster import CitusCluster, named_address
from tests.conftest import quick_settings
from tests.shared_database import shared_world
from tests.store.embedded_processes import copy_of, superuser_login
from tests.world import MONDAY, World, confirmed, patient_id, slots

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(named_address() is None, reason="make citus-test DATABASE=... names a cluster"),
]
CALLS, CALLS_A_DAY = 96, 12
LEAST_OF_BOOKINGS, LEAST_OF_SEARCHES = 0.2, 0.1  # of one server's calls: half of what is usual, as others use the cores

Work = Callable[[httpx.AsyncClient, int], Awaitable[None]]


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
            postgres.end()


async def booking(client: httpx.AsyncClient, number: int) -> None:
    """Finds a time and the patient, and books in two phases."""
    day = MONDAY + timedelta(weeks=number // CALLS_A_DAY)
    slot = (await slots(client, **{"from": day.isoformat(), "to": day.isoformat()}))[0]
    body = {"patientId": await patient_id(client), "slotId": slot["id"]}
    answer = await confirmed(client, "POST", "/api/appointments", body)
    assert answer.status_code == 201, answer.text


async def search(client: httpx.AsyncClient, number: int) -> None:
    """One that was not asked before."""
    first = MONDAY + timedelta(days=number % 30)
    await slots(client, **{"from": first.isoformat(), "to": (first + timedelta(days=number // 30)).isoformat()})


@pytest.mark.parametrize(("work", "least"), [(booking, LEAST_OF_BOOKINGS), (search, LEAST_OF_SEARCHES)])
async def test_calls_on_a_cluster_cost_a_few_times_those_on_one_server(
    worlds: tuple[World, World], work: Work, least: float
) -> None:
    clients = [await world.client() for world in worlds]
    for client in clients:
        await work(client, 0)
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(1, CALLS + 1):
        for client, seconds in zip(clients, took, strict=True):
            began = time.perf_counter()
            await work(client, number)
            seconds.append(time.perf_counter() - began)
    on_cluster, on_one = (statistics.median(seconds) for seconds in took)
    print(
        f"{work.__name__}: {on_cluster * 1000:.1f} ms on the cluster, {on_one * 1000:.1f} ms on one server; "
        f"{on_one / on_cluster:.2f} of its calls a second"
    )
    assert on_one / on_cluster >= least
