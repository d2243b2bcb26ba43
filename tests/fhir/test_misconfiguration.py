"""A server that refuses us for good, or an address where no FHIR server is: told as such, to the operator."""

import asyncio
import logging
from typing import Any

import pytest

from frontdesk.systems.port import MISCONFIGURED_RETRY_SECONDS, Misconfigured
from tests.console.admin_pages import text_of
from tests.console.signing_in import signed_in
from tests.fhir.calls import SEARCH, booking, challenged, search
from tests.fhir.door import Answer, Request
from tests.fhir.practice import Upstream
from tests.support.world import World

REFUSED = b'{"resourceType": "OperationOutcome", "issue": [{"severity": "error", "diagnostics": "no access to Ada"}]}'
WAYS = {
    "forbidden": (Answer(403, {}, REFUSED), "status 403"),
    "unauthorized": (Answer(401, {}, REFUSED), "status 401"),
    "wrong base": (Answer(404, {}, b""), "status 404"),
    "proxy": (Answer(200, {"content-type": "text/html"}, b"<html>Welcome</html>"), "status 200"),
    "redirect": (Answer(302, {"location": "https://elsewhere.example.com/"}, b""), "status 302"),
}


async def _until(world: World, path: str, wanted: str, *, there: bool) -> str:
    """The page once it shows the text, or no longer does: what was met is stored after the answer."""
    admin = await signed_in(world, role="admin")
    async with asyncio.timeout(20):
        while (wanted in (text := text_of(await admin.get(path)))) is not there:
            await asyncio.sleep(0.02)
    return text


async def test_a_server_that_refuses_us_is_told_as_misconfigured(
    fhir: World, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await fhir.client()
    body = await booking(agent)
    for name, (answer, reason) in WAYS.items():
        token = await challenged(agent, "/api/appointments", body)
        caplog.clear()

        async def refuse(_request: Request, _answer: Answer, refused: Answer = answer) -> Answer:
            return refused

        upstream.door.rewrite = refuse
        for sent in (
            agent.get("/api/slots", params=SEARCH),
            agent.post("/api/appointments", json=body),
            agent.post("/api/appointments", json=token),
        ):
            response = await sent
            assert (response.status_code, response.json()["code"]) == (502, "upstream_unavailable"), (
                name,
                response.text,
            )
            assert response.json()["detail"] == Misconfigured.detail
            assert response.headers["retry-after"] == str(MISCONFIGURED_RETRY_SECONDS), name
        reasons = [getattr(record, "reason", "") for record in caplog.records if record.levelno == logging.ERROR]
        assert any(reason in each for each in reasons), (name, reasons)
        assert "Ada" not in repr([record.__dict__ for record in caplog.records])
        text = await _until(fhir, "/console/practice/system", "have to be corrected:", there=True)
        assert reason in text
        assert "State Misconfigured" in text
        upstream.door.rewrite = None
        assert (await agent.post("/api/appointments", json=body)).status_code == 428, "and over when it is over"
        await _until(fhir, "/console/practice/system", "have to be corrected:", there=False)
    assert (await agent.post("/api/appointments", json=token)).status_code == 201, "the token stays valid"


@pytest.mark.parametrize("refused", ["Slot", "Appointment"])
async def test_a_write_without_the_right_to_it_is_told_as_misconfigured(
    fhir: World, upstream: Upstream, refused: str
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    inner: Any = upstream.door.backend

    class Forbidding:
        async def answer(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Answer:
            if method in ("POST", "PUT") and target.startswith(f"/{refused}"):
                return Answer(403, {}, REFUSED)
            answer: Answer = await inner.answer(method, target, headers, content)
            return answer

    upstream.door.backend = Forbidding()
    response = await agent.post("/api/appointments", json=body)
    assert (response.status_code, response.json()["detail"]) == (502, Misconfigured.detail)
    assert response.headers["retry-after"] == str(MISCONFIGURED_RETRY_SECONDS)
    upstream.door.backend = inner
    assert await upstream.live_appointments() == []
    assert await search(agent) == 200
    assert (await agent.post("/api/appointments", json=body)).status_code == 201
