"""The connection to PostgreSQL harmed at every message of every write: each resend gives the one true answer."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.proof.cuts.proxy import Fault
from tests.proof.cuts.stage import CUT_EVERY, WAYS, Stage, stage
from tests.proof.cuts.writes import WRITES

IMPATIENCE_SECONDS = 1.5
FEWEST_MESSAGES = 10


@pytest.fixture(scope="module")
async def cut_off(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    async with stage(cluster, template, tmp_path_factory.mktemp("cuts")) as built:
        yield built


async def test_a_challenge_that_is_cut_off_is_issued_once(cut_off: Stage) -> None:
    assert await cut_off.sweep("book", "challenge", "rest", "cut") > FEWEST_MESSAGES


async def test_a_booking_is_not_called_unexecuted_after_its_commit_was_lost(cut_off: Stage) -> None:
    assert await cut_off.sweep("book", "confirmation", "rest", "down") > FEWEST_MESSAGES


async def test_a_tool_call_that_cannot_be_counted_is_not_executed(cut_off: Stage) -> None:
    client_id = cut_off.callers["integration"].headers["X-Test-Client"]
    cut_off.harmed.service.limiter.on_change("client", client_id)  # its calls are counted before the next one
    assert await cut_off.call("reschedule", "key", "mcp", {0: "down"})


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRITES)
async def test_a_cut_at_any_message_leaves_one_execution_and_one_answer(cut_off: Stage, name: str, way: str) -> None:
    assert await cut_off.sweep(name, way, "rest", "cut") > FEWEST_MESSAGES


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", ["cut_client", "down", "delay", "end_twice"])
async def test_any_fault_at_any_message_leaves_one_execution_and_one_answer(
    cut_off: Stage, way: str, fault: Fault
) -> None:
    assert await cut_off.sweep("book", way, "rest", fault, every=CUT_EVERY) > FEWEST_MESSAGES


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["confirmation", "plain"])
async def test_silence_from_any_message_on_leaves_one_execution_and_one_answer(
    cut_off: Stage, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_up_soon(cut_off, monkeypatch)
    assert await cut_off.sweep("book", way, "rest", "drop", every=CUT_EVERY) > FEWEST_MESSAGES


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS)
async def test_a_cut_during_a_tool_call_leaves_one_execution_and_one_answer(cut_off: Stage, way: str) -> None:
    assert await cut_off.sweep("reschedule", way, "mcp", "cut", every=CUT_EVERY) > FEWEST_MESSAGES


@pytest.mark.heavy
@pytest.mark.parametrize(
    "way", [way for way in WAYS if way != "plain"]
)  # never sent twice, so it does not connect again
async def test_a_cut_while_connecting_again_leaves_one_execution_and_one_answer(cut_off: Stage, way: str) -> None:
    assert await cut_off.sweep("book", way, "rest", "cut", every=CUT_EVERY, lost_before=True) > FEWEST_MESSAGES


def _give_up_soon(cut_off: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that is not answered is given up soon, while the service is harmed."""
    create_pool = asyncpg.create_pool

    def create(*args: Any, **options: Any) -> Any:
        return create_pool(*args, **options | ({"command_timeout": IMPATIENCE_SECONDS} if cut_off.impatient else {}))

    monkeypatch.setattr(asyncpg, "create_pool", create)
