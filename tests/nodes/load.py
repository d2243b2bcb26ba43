"""Bookings under load: every request has to succeed at once, and every booking that was told has to be stored."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx

from tests.crash.harness import Ledger, find_patients, get_token

BOOKERS = 6
_QUERY = {"locationId": 1, "visitTypeId": 20, "procedureId": 100}
_EXPECTED = {200, 201, 409, 422, 428}  # the slot was taken, or the patient has an appointment at that time


@dataclass
class Load:
    """What was sent, and what was answered."""

    ledger: Ledger = field(default_factory=Ledger)
    answers: Counter[int] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return self.answers.total() + len(self.failed)


@contextlib.asynccontextmanager
async def booking_load(url: str, agent: dict[str, str], reads_per_booking: int = 2) -> AsyncIterator[Load]:
    """Books during the block; what is in flight at its end is finished."""
    load, chance, stopping = Load(), random.Random(17), asyncio.Event()
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        await get_token(client, agent)
        patients = await find_patients(client)

        async def send(method: str, path: str, **options: object) -> httpx.Response | None:
            try:
                answer = await client.request(method, path, **options)  # type: ignore[arg-type]
            except httpx.TransportError as error:
                load.failed.append(f"{method} {path}: {type(error).__name__}")
                return None
            load.answers[answer.status_code] += 1
            if answer.status_code not in _EXPECTED:
                load.failed.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
                return None
            return answer

        async def book() -> None:
            while not stopping.is_set():
                day = (datetime.now(UTC) + timedelta(days=chance.randint(1, 60))).date().isoformat()
                found = None
                for _ in range(reads_per_booking):
                    query = {**_QUERY, "providerId": chance.choice((10, 11)), "from": day, "to": day}
                    found = await send("GET", "/api/slots", params=query)
                if found is None or not found.json()["items"]:
                    continue
                body = {"patientId": chance.choice(patients), "slotId": chance.choice(found.json()["items"])["id"]}
                challenge = await send("POST", "/api/appointments", json=body)
                if challenge is None or challenge.status_code != 428:
                    continue
                body["confirmationToken"] = challenge.json()["confirmationToken"]
                answer = await send("POST", "/api/appointments", json=body)
                if answer is not None:
                    load.ledger.hear(body, answer)

        bookers = [asyncio.create_task(book()) for _ in range(BOOKERS)]
        try:
            yield load
        finally:
            stopping.set()
            await asyncio.gather(*bookers)
