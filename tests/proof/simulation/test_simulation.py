"""Parts that need no database, simulated: each seed is another order of events, faults and delays.

A seed that failed is added to `FAILED` and runs from then on.
"""

import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from frontdesk.access.limits import rate_limiter
from frontdesk.outbound.webhooks.sender import Sent
from frontdesk.store import calendar_versions
from frontdesk.systems.fhir.writing import reconciler
from tests.proof.simulation import webhook_deliveries as deliveries
from tests.proof.simulation.answer_freshness import answer_freshness
from tests.proof.simulation.loop import simulate
from tests.proof.simulation.rate_leases import rate_leases
from tests.proof.simulation.reconciliation import reconciliation
from tests.proof.simulation.webhook_deliveries import webhook_deliveries

SCENARIOS: dict[str, Callable[[Random], Awaitable[None]]] = {
    "rate_leases": rate_leases,
    "answer_freshness": answer_freshness,
    "webhook_deliveries": webhook_deliveries,
    "reconciliation": reconciliation,
}
FAILED: list[tuple[str, int]] = []
FEW, MANY = 30, int(os.environ.get("SEEDS", "1000"))


def run(name: str, *seeds: int) -> None:
    for seed in seeds:
        try:
            simulate(SCENARIOS[name], seed)
        except BaseException as error:
            error.add_note(f"scenario {name}, seed {seed}")
            raise


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_promises_hold_for_a_few_seeds(name: str) -> None:
    run(name, *range(FEW), *(seed for failed, seed in FAILED if failed == name))


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_promises_hold_for_many_seeds(name: str) -> None:
    run(name, *range(FEW, FEW + MANY))


async def _join_a_running_query(current: Any, practice_id: int) -> Any:
    """A later caller is served by a query that began before the change it has to see."""
    if getattr(current, "joined", None) is None:
        current.joined = calendar_versions.asyncio.create_task(current._query({1, 2}))
        current.joined.add_done_callback(lambda _: setattr(current, "joined", None))
    return (await calendar_versions.asyncio.shield(current.joined))[practice_id]


def _keep_the_lease(account: Any, granted: int, _sent_at: float, **_given: int) -> None:
    """A lease outlives its minute."""
    account.lease.left += granted
    account.lease.deadline = account.lease.renew = float("inf")


async def _believe_in_success(receiver: Any, event: int) -> Sent:
    """A failed request counts as delivered."""
    if receiver.chance.random() >= receiver.trouble:
        receiver.received.append(event)
    return Sent(200, 1, None)


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "bug"),
    [
        ("answer_freshness", calendar_versions.CurrentVersions, "read", _join_a_running_query),
        ("rate_leases", rate_limiter, "_extend", _keep_the_lease),
        ("webhook_deliveries", deliveries.Receiver, "receive", _believe_in_success),
        ("reconciliation", reconciler, "SETTLE_AFTER", timedelta(seconds=-20)),
    ],
    ids=["stale answers", "lease kept too long", "lost event", "given up too early"],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, owner: Any, attribute: str, bug: Any
) -> None:
    monkeypatch.setattr(owner, attribute, bug)
    with pytest.raises(AssertionError):
        run(name, *range(FEW))
