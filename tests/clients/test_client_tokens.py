"""Access tokens: fetched once for all callers, renewed before they expire, and once more when refused."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from frontdesk_client import AnswerLost, AsyncFrontdesk, ConfirmationRequired, Frontdesk, Unauthorized

from tests.clients.fault_proxy import FaultProxy, answered, cut_before, silence
from tests.clients.running_desk import Credentials, Desk
from tests.support.world import World, patient_id

TOKEN, PRACTICE = "/oauth/token", "/api/practice"


@pytest.fixture
def client(desk: Desk, proxy: FaultProxy) -> Iterator[Frontdesk]:
    with desk.agent.client(proxy.url) as opened:
        yield opened


class Recording(httpx.AsyncBaseTransport):
    """The service in this process, and which paths were asked for."""

    def __init__(self, world: World) -> None:
        self.inner = world.transport
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        await asyncio.sleep(0.01)  # others get to send meanwhile, as they would over a network
        return await self.inner.handle_async_request(request)


@pytest.fixture
def recording(world: World) -> Recording:
    return Recording(world)


@pytest.fixture
async def agent(world: World, recording: Recording) -> AsyncIterator[AsyncFrontdesk]:
    client_id = (await world.client()).headers["X-Test-Client"]
    secret = world.secrets[client_id]
    async with AsyncFrontdesk("http://test", client_id=client_id, client_secret=secret, transport=recording) as opened:
        yield opened


def test_a_token_serves_many_calls(client: Frontdesk, proxy: FaultProxy) -> None:
    for _ in range(3):
        client.get_practice()
    assert len(proxy.sent(TOKEN)) == 1
    assert len({seen.headers["authorization"] for seen in proxy.sent(PRACTICE)}) == 1


def test_threads_that_start_together_fetch_one_token(client: Frontdesk, proxy: FaultProxy) -> None:
    proxy.reset(cut_before)
    with ThreadPoolExecutor(8) as pool:
        names = {answer.name for answer in pool.map(lambda _: client.get_practice(), range(8))}
    assert len(names) == 1
    assert [seen.path for seen in proxy.requests].count(TOKEN) == 2, "the one that was lost, and its repetition"


async def test_tasks_that_start_together_fetch_one_token(agent: AsyncFrontdesk, recording: Recording) -> None:
    await asyncio.gather(*(agent.get_practice() for _ in range(8)))
    assert recording.paths.count(TOKEN) == 1
    assert recording.paths.count(PRACTICE) == 8


async def test_a_token_that_expired_unnoticed_is_renewed(
    world: World, agent: AsyncFrontdesk, recording: Recording
) -> None:
    await agent.get_practice()
    world.clock.advance(hours=2)
    assert (await agent.get_practice()).id == "harbor"
    assert recording.paths == [TOKEN, PRACTICE, PRACTICE, TOKEN, PRACTICE]


async def test_tasks_whose_token_is_refused_together_renew_it_once(
    world: World, agent: AsyncFrontdesk, recording: Recording
) -> None:
    await agent.get_practice()
    world.clock.advance(hours=2)
    await asyncio.gather(*(agent.get_practice() for _ in range(8)))
    assert recording.paths.count(TOKEN) == 2
    assert recording.paths.count(PRACTICE) == 1 + 8 + 8


def test_a_token_that_is_refused_again_is_an_error(client: Frontdesk, proxy: FaultProxy) -> None:
    refused = answered(401, {"code": "unauthorized", "detail": "Disabled."})
    proxy.reset(None, refused, None, refused)
    with pytest.raises(Unauthorized, match="Disabled"):
        client.get_practice()
    assert [seen.path for seen in proxy.requests] == [TOKEN, PRACTICE, TOKEN, PRACTICE]


def test_a_token_is_renewed_shortly_before_it_expires(
    client: Frontdesk, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("frontdesk_client._tokens.monotonic", lambda: now)
    client.get_practice()
    now += 3600 - 31
    client.get_practice()
    assert len(proxy.sent(TOKEN)) == 1
    now += 2
    client.get_practice()
    assert len(proxy.sent(TOKEN)) == 2


def test_wrong_credentials_are_an_error_at_once(desk: Desk, proxy: FaultProxy) -> None:
    with (
        Credentials(desk.agent.client_id, "wrong").client(proxy.url) as client,
        pytest.raises(Unauthorized),
    ):
        client.get_practice()
    assert [seen.path for seen in proxy.requests] == [TOKEN]


def test_waiting_for_somebody_elses_token_ends_at_the_deadline(desk: Desk, proxy: FaultProxy) -> None:
    proxy.reset(*[silence] * 4)
    with (
        desk.agent.client(proxy.url, deadline=0.4) as client,
        ThreadPoolExecutor(3) as pool,
    ):
        calls = [pool.submit(client.get_practice) for _ in range(3)]
        for call in calls:
            with pytest.raises(AnswerLost):
                call.result(timeout=60)


async def test_an_expired_proposal_executes_nothing_and_says_so(world: World, agent: AsyncFrontdesk) -> None:
    person = await patient_id(await world.client())
    slots = await agent.find_first_available(visit_type_id=22, procedure_id=103)
    proposal = await agent.book_appointment(patient_id=person, slot_id=slots.items[0].id)
    world.clock.advance(minutes=11)
    for _ in range(2):
        with pytest.raises(ConfirmationRequired):
            await proposal.confirm()
    assert not proposal.executed
    assert (await agent.list_appointments(patient_id=person)).items == ()

    fresh = await agent.book_appointment(patient_id=person, slot_id=slots.items[0].id)
    booked = await fresh.confirm()
    world.clock.advance(minutes=11)
    again = await agent.book_appointment(
        patient_id=person, slot_id=slots.items[0].id, confirmation_token=fresh.confirmation_token
    )
    assert await again.confirm() == booked, "what was executed is answered long after expiry"
