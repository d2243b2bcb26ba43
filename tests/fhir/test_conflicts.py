"""A 409 or 412 of the FHIR server alone says nothing: what is there decides what the caller is told."""

import asyncio
from collections import Counter

import pytest

from frontdesk.systems.fhir.writing import steps
from tests.fhir.calls import CHEN, ZAPHOD, booking, challenged
from tests.fhir.door import Answer, Backend, Fault, Request
from tests.fhir.practice import Upstream, forgive, settle
from tests.support.world import World, book, confirmed, patient_id, slots


class Contended:
    """Could not serialize: the first `times` writes of every record or kind are answered with 409 or 412, executed or
    not."""

    def __init__(self, inner: Backend | None, status: int, *, times: int = 1, executed: bool = False) -> None:
        assert inner is not None
        self._inner, self._status, self._times, self._executed = inner, status, times, executed
        self.refused: Counter[str] = Counter()

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        write = f"{method} {target} {headers.get('if-none-exist')}"
        if method in ("POST", "PUT") and self.refused[write] < self._times:
            self.refused[write] += 1
            if self._executed:
                await self._inner.answer(method, target, headers, body)
            return Answer(self._status, {}, b"")
        return await self._inner.answer(method, target, headers, body)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "RETRY_SECONDS", 0.001)


@pytest.mark.parametrize("status", [409, 412])
@pytest.mark.parametrize("executed", [False, True], ids=["refused", "executed"])
async def test_a_transient_conflict_is_neither_a_taken_slot_nor_a_known_patient(
    fhir: World, upstream: Upstream, status: int, executed: bool
) -> None:
    integration = await fhir.client(grant="integration")
    found = await slots(integration)
    patients = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    upstream.door.backend = contended = Contended(upstream.door.backend, status, times=2, executed=executed)
    bodies = [{"patientId": patient, "slotId": slot["id"]} for patient, slot in zip(patients, found, strict=False)]
    first = await asyncio.gather(*(integration.post("/api/appointments", json=body) for body in bodies))
    people = [{**ZAPHOD, "firstName": f"Zaphod {letter}"} for letter in "abc"]
    made = await asyncio.gather(*(integration.post("/api/patients", json=person) for person in people))
    assert {answer.status_code for answer in (*first, *made)} == {201}, [answer.text for answer in (*first, *made)]
    path = f"/api/appointments/{first[0].json()['appointmentId']}/cancel"
    assert (await integration.post(path, json={})).status_code == 200
    assert len(contended.refused) >= 10
    upstream.door.backend = contended._inner
    assert len(await upstream.live_appointments()) == 2
    await settle(fhir)
    assert len(await upstream.busy_slots()) == 2


async def test_a_conflict_that_lasts_is_an_outage(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    book_it = await challenged(agent, "/api/appointments", await booking(agent))
    cancel_it = f"/api/appointments/{await book(agent, 'Alan', visitTypeId=22, procedureId=103, providerId=11)}/cancel"
    cancelling = await challenged(agent, cancel_it, {})
    upstream.door.backend = contended = Contended(upstream.door.backend, 409, times=1000)
    for path, body in (("/api/appointments", book_it), (cancel_it, cancelling)):
        failed = await agent.post(path, json=body)
        assert (failed.status_code, failed.json()["code"]) == (502, "upstream_unavailable")
        assert int(failed.headers["retry-after"]) >= 1
    upstream.door.backend = contended._inner
    for path, body in (("/api/appointments", book_it), (cancel_it, cancelling)):
        assert (await agent.post(path, json=body)).status_code in (200, 201), "the token stays valid"


async def test_a_slot_is_taken_only_if_somebody_has_it(fhir: World, upstream: Upstream) -> None:
    """Its version changes between the look at it and the claim: staff wrote a comment, or took it."""
    agent = await fhir.client()
    for change, code in (({"comment": "x"}, None), ({"status": "busy-tentative"}, "slot_unavailable")):
        body = await challenged(agent, "/api/appointments", await booking(agent, "Alan"))
        slot = await upstream.read(f"{CHEN}540")

        async def meanwhile(request: Request, answer: Answer, changed: object = {**slot, **change}) -> Answer:
            if request.method == "GET" and "/Slot?" in request.target:
                upstream.door.rewrite = None
                await upstream.put(changed)  # type: ignore[arg-type]
            return answer

        upstream.door.rewrite = meanwhile
        answer = await agent.post("/api/appointments", json=body)
        assert answer.json().get("code") == code, answer.text
        if answer.status_code == 201:
            path = f"/api/appointments/{answer.json()['appointmentId']}/cancel"
            assert (await confirmed(agent, "POST", path, {})).status_code == 200


def _deaf_after_a_claim(upstream: Upstream) -> None:
    def harm(request: Request) -> Fault | None:
        claimed = any(each.is_write and "/Slot/" in each.target for each in upstream.door.seen)
        return None if not claimed else "cut_after" if request.is_write else "cut_before"

    upstream.door.reset()
    upstream.door.harm = harm


@pytest.mark.parametrize("other", [False, True], ids=["same", "other"])
async def test_a_slot_that_an_ended_write_still_holds_is_not_somebody_elses(
    fhir: World, upstream: Upstream, other: bool
) -> None:
    agent = await fhir.client()
    ref = await booking(agent)
    body = await challenged(agent, "/api/appointments", ref)
    _deaf_after_a_claim(upstream)
    failed = await agent.post("/api/appointments", json=body)
    assert (failed.status_code, failed.json()["code"]) == (502, "upstream_unavailable")
    upstream.door.reset()
    forgive(fhir)
    assert await upstream.busy_slots() == {f"{CHEN}540"}, "our claim is still on it"
    assert (await slots(agent))[0]["id"] == ref["slotId"], "and it is offered"
    if other:
        body = await challenged(agent, "/api/appointments", {**ref, "patientId": await patient_id(agent, "Alan")})
    booked = await agent.post("/api/appointments", json=body)
    assert booked.status_code == 201, booked.text
    await settle(fhir)
    assert await upstream.busy_slots() == {f"{CHEN}540"}, "the cancelled one does not free it"
    assert len(await upstream.live_appointments()) == 1
