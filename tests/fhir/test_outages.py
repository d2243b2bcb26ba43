"""A server that is slow, dead or rude: bounded, told as documented, and over when it is over."""

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from frontdesk.store.database import Database
from frontdesk.systems.fhir.transport import breaker
from tests.fhir.calls import SEARCH, ZAPHOD, booking, challenged, search
from tests.fhir.door import Answer, Door, Fault, Request
from tests.fhir.fake import Fake
from tests.fhir.misbehaving import Gathering, IgnoringIdentifiers, lose_answers
from tests.fhir.practice import Upstream, fhir_world, forgive, give, settle
from tests.support.running import running
from tests.support.world import World, book, confirmed, patient_id, slots


@pytest.mark.parametrize("fault", ["delay", "drip", "cut_before", "half", "garbage", "error_before", "gateway", "busy"])
async def test_a_read_that_fails_is_upstream_unavailable_in_bounded_time(
    fhir: World, upstream: Upstream, fault: Fault
) -> None:
    agent = await fhir.client()
    assert await search(agent) == 200
    upstream.door.slow = 60
    upstream.door.harm = lambda request: fault
    give(fhir, 30.0 if fault == "garbage" else 1.0)
    began = time.monotonic()
    answer = await agent.get("/api/slots", params=SEARCH)
    assert time.monotonic() - began < 30, "the server would have kept it for longer"
    assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable")
    # "garbage" is a page of some other server, which soon afterwards a retry would get as well.
    assert int(answer.headers["retry-after"]) >= (300 if fault == "garbage" else 1)


async def test_requests_of_one_call_share_its_time(fhir: World, upstream: Upstream) -> None:
    """Each is answered soon enough for itself; together they are too many."""
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))

    async def slowly(request: Request, answer: Answer) -> Answer:
        await asyncio.sleep(0.7)
        return answer

    upstream.door.rewrite = slowly
    give(fhir, 0.9)
    began = time.monotonic()
    failed = await agent.post("/api/appointments", json=body)
    assert time.monotonic() - began < 30
    assert (failed.status_code, failed.json()["code"]) == (502, "upstream_unavailable")
    assert await upstream.live_appointments() == []


async def test_a_refused_connection_leaves_the_token_valid(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    await upstream.door.close()
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    await upstream.door.open()
    forgive(fhir)
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201


async def _page_of_a_proxy(_request: Request, _answer: Answer) -> Answer:
    return Answer(404, {"Content-Type": "text/html"}, b"<html>Not found</html>")


@pytest.mark.parametrize("how", ["closed", "replaced"])
async def test_a_server_that_is_gone_is_unavailable_whatever_was_read_before(
    fhir: World, upstream: Upstream, how: str
) -> None:
    agent = await fhir.client()
    free, other = (await slots(agent))[:2]
    moved = (await booking(agent))["slotId"]
    path = f"/api/appointments/{await book(agent)}"
    body = {"patientId": await patient_id(agent), "slotId": other["id"]}
    beyond = {**SEARCH, "from": "2027-06-01", "to": "2027-06-10"}
    without_schedule = {**SEARCH, "providerId": 12, "locationId": 1}
    assert (await agent.get("/api/slots", params=beyond)).json()["items"] == []
    if how == "closed":
        await upstream.door.close()
    else:
        upstream.door.rewrite = _page_of_a_proxy
    for method, address, sent in (
        ("GET", f"/api/slots?{urlencode(SEARCH)}", None),
        ("GET", f"/api/slots?{urlencode(beyond)}", None),
        ("GET", f"/api/slots?{urlencode(without_schedule)}", None),
        ("GET", "/api/slots/first-available?visitTypeId=21&procedureId=101", None),
        ("GET", f"/api/slots/{free['id']}", None),
        ("GET", f"/api/slots/{other['id']}", None),
        ("POST", "/api/appointments", body),
        ("GET", "/api/appointments", None),
        ("GET", path, None),
        ("POST", f"{path}/reschedule", {"slotId": moved}),
        ("POST", f"{path}/cancel", {}),
        ("GET", f"/api/patients/{body['patientId']}", None),
    ):
        forgive(fhir)
        answer = await agent.request(method, address, json=sent)
        assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable"), address


async def test_the_servers_wish_to_be_left_alone_is_respected(fhir: World, upstream: Upstream) -> None:
    _search_with_one_request(upstream)
    agent = await fhir.client()
    await slots(agent)
    now = forgive(fhir)
    upstream.door.reset({0: "busy"})
    answer = await agent.get("/api/slots", params=SEARCH)
    assert (answer.status_code, answer.headers["retry-after"]) == (502, "1")
    assert await search(agent) == 502
    assert len(upstream.door.seen) == 1, "nobody asked in between"
    now.advance(1.0)
    assert await search(agent) == 200


async def test_the_breaker_opens_and_heals(fhir: World, upstream: Upstream) -> None:
    _search_with_one_request(upstream)
    agent = await fhir.client()
    await slots(agent)
    now = forgive(fhir)
    upstream.door.reset()
    upstream.door.harm = lambda request: "error_before"
    for _ in range(breaker.FAILURES + 3):
        assert await search(agent) == 502
    assert len(upstream.door.seen) == breaker.FAILURES
    now.advance(breaker.FIRST_PAUSE_SECONDS)
    assert await search(agent) == 502
    assert await search(agent) == 502
    assert len(upstream.door.seen) == breaker.FAILURES + 1, "one tries"
    upstream.door.reset()
    now.advance(2 * breaker.FIRST_PAUSE_SECONDS)
    assert await search(agent) == 200
    assert await search(agent) == 200


async def test_at_most_so_many_requests_are_under_way(database: Database, tmp_path: Path, upstream: Upstream) -> None:
    async with fhir_world(database, tmp_path, upstream.door, maxConcurrent=3) as world:
        agent = await world.client()
        await slots(agent)
        upstream.door.max_under_way = 0
        upstream.door.rewrite = all_of_them = Gathering(3)
        answers = await asyncio.gather(*(search(agent) for _ in range(12)))
        assert set(answers) == {200}
        assert all_of_them.met, "and that many are"
        assert upstream.door.max_under_way == 3


async def test_the_reconciler_settles_by_itself(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    upstream.door.harm = lose_answers
    lost = await agent.post("/api/appointments", json=body)
    assert lost.json()["code"] == "confirmation_incomplete"
    async with running(replace(fhir.service.fhir.reconciler.step, every=0.05)):
        await asyncio.sleep(0.3)  # the server still does not answer
        upstream.door.reset()
        async with asyncio.timeout(60):
            while (await agent.post("/api/appointments", json=body)).status_code != 201:
                fhir.clock.advance(seconds=3)
                await asyncio.sleep(0.05)
    assert len(await upstream.live_appointments()) == 1


async def test_a_slot_that_could_not_be_given_back_is_given_back_later(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    appointment = await book(agent)
    upstream.door.harm = lambda request: "error_before" if "/Slot/" in request.target else None
    cancelled = await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    assert cancelled.status_code == 200, "the appointment is cancelled, whatever becomes of its slot"
    assert len(await upstream.busy_slots()) == 1
    upstream.door.reset()
    await settle(fhir)
    assert await upstream.busy_slots() == set()


async def test_nothing_about_a_person_and_no_secret_is_logged(
    database: Database,
    tmp_path: Path,
    upstream: Upstream,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HARBOR_TOKEN", "a-very-secret-token")
    auth = {"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"}
    async with fhir_world(database, tmp_path, upstream.door, auth=auth) as world:
        agent = await world.client()
        faults: tuple[Fault | None, ...] = (None, "error_before", "cut_after", "garbage")
        for fault, letter in zip(faults, "abcd", strict=True):
            _harm_writes(upstream.door, fault)
            named = {**ZAPHOD, "lastName": f"Beeblebrox{letter}"}
            await agent.post("/api/patients", json=await challenged(agent, "/api/patients", named))
            await agent.post("/api/patients/match", json=named)
        assert upstream.door.seen[-1].headers["authorization"] == "Bearer a-very-secret-token"
    assert caplog.records
    for mark in ("Zaphod", "Beeblebrox", "0155", "1978-08-26", "a-very-secret-token"):
        assert mark not in caplog.text


def _search_with_one_request(upstream: Upstream) -> None:
    assert isinstance(upstream.door.backend, Fake)
    upstream.door.backend.batches = True


def _harm_writes(door: Door, fault: Fault | None) -> None:
    door.harm = lambda request: fault if request.is_write else None


async def test_what_a_conditional_create_returns_is_left_alone_if_it_is_another_record(
    fhir: World, upstream: Upstream
) -> None:
    """A server that ignores the condition returns any record that it has."""
    agent = await fhir.client()
    before = await upstream.read("Appointment/past-ada")
    body = await challenged(agent, "/api/appointments", await booking(agent, "Alan"))
    upstream.door.backend = IgnoringIdentifiers(upstream.door.backend, "Appointment")
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable"), refused.text
    assert "operator" in refused.json()["detail"]
    assert await upstream.read("Appointment/past-ada") == before
    assert await upstream.busy_slots() == set()
