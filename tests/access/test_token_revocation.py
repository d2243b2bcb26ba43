"""Stolen access tokens: what an operator does about a theft ends them for good, on every node within five seconds."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.access.clients.authentication import STATUS_TTL_SECONDS, Authenticator
from frontdesk.access.clients.records import (
    add_client,
    change_client,
    disable_client,
    enable_client,
    revoke_tokens,
    rotate_secret,
    show_client,
)
from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.ring import KeyRing
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock

SCOPES = ("slots:read", "patients:read")


class Victim:
    """A client whose tokens and secret somebody else may have, and two nodes that hear of no change by themselves."""

    def __init__(self, database: Database, ring: KeyRing, tokens: Tokens, clock: StoppedClock) -> None:
        self.database, self.ring, self.tokens, self.clock = database, ring, tokens, clock
        self.nodes = [Authenticator(database, tokens, monotonic=clock.monotonic) for _ in range(2)]
        self.client_id = self.secret = ""

    async def token(self) -> str:
        client = await authenticate(self.database, self.ring, self.client_id, self.secret, clock=self.clock)
        return self.tokens.issue(client, client.scopes).text

    async def rotate_at_once(self) -> None:
        _, self.secret = await rotate_secret(
            self.database, self.ring, self.client_id, retire_old_after=timedelta(0), clock=self.clock
        )

    async def disable_and_enable(self) -> None:
        await disable_client(self.database, self.client_id, clock=self.clock)
        await enable_client(self.database, self.client_id, clock=self.clock)


@pytest.fixture
async def victim(database: Database, ring: KeyRing, practice: str, tokens: Tokens, clock: StoppedClock) -> Victim:
    found = Victim(database, ring, tokens, clock)
    record, found.secret = await add_client(
        database, ring, practice=practice, name="Agent", grant="agent", scopes=SCOPES, clock=clock
    )
    found.client_id = record.client_id
    return found


async def refusal(node: Authenticator, token: str) -> str:
    with pytest.raises(Problem) as raised:
        await node.identify(token)
    return raised.value.code


async def test_a_stolen_token_stays_dead_and_one_issued_in_the_same_second_works(
    victim: Victim, clock: StoppedClock
) -> None:
    async def change(**values: Any) -> None:
        await change_client(victim.database, victim.client_id, clock=clock, **values)

    changes = (
        victim.disable_and_enable,
        victim.rotate_at_once,
        lambda: revoke_tokens(victim.database, victim.client_id, clock=clock),
        lambda: change(scopes=SCOPES[:1]),
        lambda: change(scopes=SCOPES),
        lambda: change(grant="integration"),
        lambda: change(grant="agent"),
        victim.disable_and_enable,
    )
    first, second = victim.nodes
    thefts = []
    for act in changes:
        stolen = await victim.token()
        thefts.append(stolen)
        for node in victim.nodes:
            await node.identify(stolen)
        await act()
        fresh = await victim.token()  # the clock has not moved
        await first.identify(fresh)
        assert await refusal(first, stolen) == "unauthorized", "the fresh token told this node of the change"
        clock.advance(STATUS_TTL_SECONDS)
        assert await refusal(second, stolen) == "unauthorized"
        await second.identify(fresh)
    for stolen in thefts:
        for node in victim.nodes:
            assert node.lookup(stolen) is None
            assert await refusal(node, stolen) == "unauthorized"


async def test_changes_that_concern_nobodys_access_leave_tokens_alone(victim: Victim, clock: StoppedClock) -> None:
    token, node = await victim.token(), victim.nodes[0]
    await change_client(
        victim.database, victim.client_id, name="Night agent", scopes=SCOPES[::-1], grant="agent", per_minute=5, quota=9
    )
    await rotate_secret(victim.database, victim.ring, victim.client_id, clock=clock)
    clock.advance(STATUS_TTL_SECONDS)
    await node.identify(token)
    assert (await show_client(victim.database, victim.client_id)).tokens_not_before is None


async def test_tokens_end_in_order_even_if_the_clock_of_a_node_is_behind(victim: Victim, clock: StoppedClock) -> None:
    token = await victim.token()
    await revoke_tokens(victim.database, victim.client_id, clock=clock)
    late, ended = await victim.token(), (await show_client(victim.database, victim.client_id)).tokens_not_before
    behind = clock.now - timedelta(minutes=5)
    again = await revoke_tokens(victim.database, victim.client_id, clock=lambda: behind)
    assert ended is not None
    assert again.tokens_not_before == ended + timedelta(microseconds=1)
    for dead in (token, late):
        assert await refusal(victim.nodes[0], dead) == "unauthorized"
    await victim.nodes[0].identify(await victim.token())


async def test_a_token_asked_for_with_the_old_secret_while_it_is_replaced_does_not_survive(victim: Victim) -> None:
    """The secret is checked before the change commits, and the token is issued after it."""
    client = await authenticate(victim.database, victim.ring, victim.client_id, victim.secret, clock=victim.clock)
    await victim.rotate_at_once()
    victim.clock.advance(2)
    token = victim.tokens.issue(client, client.scopes).text
    assert await refusal(victim.nodes[0], token) == "unauthorized"


async def test_a_token_never_carries_more_than_its_client_holds_now(victim: Victim, clock: StoppedClock) -> None:
    """As a node of the previous release changes clients: it does not end tokens."""
    token, node = await victim.token(), victim.nodes[0]
    assert (await node.identify(token)).scopes == set(SCOPES)
    await victim.database.write("UPDATE client SET scopes = ARRAY['slots:read']")
    clock.advance(STATUS_TTL_SECONDS)
    assert (await node.identify(token)).scopes == {"slots:read"}
    await victim.database.write("UPDATE client SET grant_kind = 'integration'")
    clock.advance(STATUS_TTL_SECONDS)
    assert await refusal(node, token) == "unauthorized"


async def test_many_ends_at_once_leave_the_newest_token_working(victim: Victim) -> None:
    stolen = await victim.token()
    await asyncio.gather(
        *(revoke_tokens(victim.database, victim.client_id, clock=victim.clock) for _ in range(4)),
        disable_client(victim.database, victim.client_id, clock=victim.clock),
    )
    await enable_client(victim.database, victim.client_id)
    await victim.nodes[0].identify(await victim.token())
    assert await refusal(victim.nodes[0], stolen) == "unauthorized"
