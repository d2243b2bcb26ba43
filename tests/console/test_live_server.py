"""Live updates from a real server: over real sockets and several workers, and when it is told to stop."""

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from frontdesk.access.staff.links import new_link
from frontdesk.access.staff.members import add_staff
from frontdesk.audit.trail import AuditContext
from frontdesk.store.database import Database
from tests.console.signing_in import use_link
from tests.security.real_server import RealServer, real_server

WAIT_TIMEOUT = 30.0


async def sign_in(server: RealServer) -> httpx.AsyncClient:
    audit = AuditContext("test", server.service.engine.clock(), "0" * 32)
    member = await add_staff(server.service.database, practice="harbor", name="Ana", role="staff", audit=audit)
    _, token = await new_link(server.service.database, member.staff_id, audit=audit)
    browser = httpx.AsyncClient(base_url=server.url, timeout=WAIT_TIMEOUT)
    assert (await use_link(browser, token)).status_code == 303
    return browser


async def book_first(server: RealServer) -> str:
    async with server.http(await server.token(grant="integration")) as client:
        person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
        patient = (await client.post("/api/patients/match", json=person)).json()["items"][0]["id"]
        later = datetime.now(UTC).date() + timedelta(days=1)  # today's next slot could begin before it is booked
        query: dict[str, int | str] = {
            "visitTypeId": 21, "procedureId": 101, "providerId": 10, "from": later.isoformat(),
        }  # fmt: skip
        slot = (await client.get("/api/slots/first-available", params=query)).json()["items"][0]
        answer = await client.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})
        assert answer.status_code == 201, answer.text
        return str(slot["start"][:10])


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.heavy)])
async def test_bookings_reach_open_streams_of_every_worker_and_a_stop_does_not_wait_for_them(
    database: Database, database_dsn: str, owner_dsn: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with real_server(database, database_dsn, owner_dsn, tmp_path, workers=2) as server:
        browser = await sign_in(server)
        ready, heard, ended = asyncio.Semaphore(0), asyncio.Semaphore(0), asyncio.Semaphore(0)

        async def watch() -> None:
            async with browser.stream("GET", "/console/live") as answer:
                assert answer.status_code == 200
                async for line in answer.aiter_lines():
                    if line.startswith("retry"):
                        ready.release()
                    elif line == "event: calendar":
                        heard.release()
                ended.release()  # an end and no broken connection

        watching = [asyncio.create_task(watch()) for _ in range(4)]
        async with asyncio.timeout(WAIT_TIMEOUT):
            for _ in watching:
                await ready.acquire()
        async with asyncio.timeout(WAIT_TIMEOUT):
            day = await book_first(server)
            for _ in watching:
                await heard.acquire()
        page = await browser.get("/console/calendar", params={"date": day, "location": 1})
        assert "<span>Ada</span> <span>Lovelace</span>" in page.text
        server.process.send_signal(number)
        async with asyncio.timeout(WAIT_TIMEOUT):
            for _ in watching:
                await ended.acquire()
            assert await server.process.wait() == 0
        await asyncio.gather(*watching)
        await browser.aclose()
        log = [line for line in server.log.read_text().splitlines() if "root runs the service" not in line]
        assert not [line for line in log if '"level":"error"' in line or '"level":"warning"' in line]
