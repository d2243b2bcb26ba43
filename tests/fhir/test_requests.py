"""How many requests a FHIR server gets, where it takes several in one."""

from collections.abc import AsyncIterator

import pytest

from tests.fhir.calls import booking, challenged, search
from tests.fhir.door import Answer, Door, Request
from tests.fhir.practice import Upstream, opened
from tests.support.world import World, slots


@pytest.fixture(params=["fake-batch", "proposing-batch", pytest.param("medplum-batch", marks=pytest.mark.heavy)])
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with opened(request.param) as door:
        yield door


async def test_a_search_is_one_request_a_challenge_at_most_three_a_confirmation_at_most_four(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    await slots(agent)  # from here on the capabilities and schedules are known
    for query in ({}, {"procedureId": 102}):  # an appointment of one slot, and one of three
        upstream.door.reset()
        assert await search(agent) == 200
        assert len(upstream.door.seen) == 1
        body = await booking(agent, **query)
        upstream.door.reset()
        body = await challenged(agent, "/api/appointments", body)
        assert len(upstream.door.seen) <= 3
        upstream.door.reset()
        assert (await agent.post("/api/appointments", json=body)).status_code == 201
        assert len(upstream.door.seen) <= 4


async def _refuse_batches(request: Request, answer: Answer) -> Answer:
    return Answer(405, {}, b"") if request.target == "/fhir" else answer


async def test_a_server_that_refuses_its_batches_is_asked_one_by_one(fhir: World, upstream: Upstream) -> None:
    upstream.door.rewrite = _refuse_batches
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent, procedureId=102))
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert len([request for request in upstream.door.seen if request.target == "/fhir"]) == 1
