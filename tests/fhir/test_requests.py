"""How many requests a FHIR server gets, where it takes several in one."""

from collections.abc import AsyncIterator

import orjson
import pytest

from frontdesk.systems.fhir.transport.batches import MAX_STRAY_REFUSALS
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


def _number_of_batches(upstream: Upstream) -> int:
    return len([request for request in upstream.door.seen if request.target == "/fhir"])


UNKNOWN = {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "not-supported"}]}


@pytest.mark.parametrize(
    "refusal", [Answer(405, {}, b""), Answer(501, {}, b""), Answer(400, {}, orjson.dumps(UNKNOWN))]
)
async def test_a_server_that_knows_no_batches_is_asked_one_by_one(
    fhir: World, upstream: Upstream, refusal: Answer
) -> None:
    async def refuse_batches(request: Request, answer: Answer) -> Answer:
        return refusal if request.target == "/fhir" else answer

    upstream.door.rewrite = refuse_batches
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent, procedureId=102))
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert _number_of_batches(upstream) <= 2, "one of reads, one of updates"


@pytest.mark.parametrize(
    "stray",
    [
        Answer(400, {}, orjson.dumps({"resourceType": "OperationOutcome", "issue": []})),
        Answer(404, {}, b"<html>"),
        Answer(405, {}, b"<html>"),
        Answer(200, {}, b"<html>"),
    ],
)
async def test_one_stray_answer_does_not_end_batches(fhir: World, upstream: Upstream, stray: Answer) -> None:
    agent = await fhir.client()
    await slots(agent)
    left = [stray, stray]

    async def stray_answers(request: Request, answer: Answer) -> Answer:
        return left.pop() if left and request.target == "/fhir" else answer

    upstream.door.rewrite = stray_answers
    for _ in range(2):
        assert (await agent.get(f"/api/slots/{(await booking(agent))['slotId']}")).status_code == 200
    assert not left
    body = await challenged(agent, "/api/appointments", await booking(agent, procedureId=102))
    upstream.door.reset()
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
    assert len(upstream.door.seen) <= 4


async def test_a_server_that_never_answers_a_batch_is_asked_one_by_one(fhir: World, upstream: Upstream) -> None:
    async def refuse_batches(request: Request, answer: Answer) -> Answer:
        return Answer(400, {}, b"") if request.target == "/fhir" else answer

    agent = await fhir.client()
    body = await booking(agent)
    upstream.door.rewrite = refuse_batches
    upstream.door.reset()
    for _ in range(MAX_STRAY_REFUSALS + 2):
        assert (await agent.get(f"/api/slots/{body['slotId']}")).status_code == 200
    assert _number_of_batches(upstream) == MAX_STRAY_REFUSALS
