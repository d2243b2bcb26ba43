"""Bookings while the database fails over: how long no write succeeds, and that none that was told is lost."""

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from tests.crash.harness import BOOKERS, Ledger, book_for_ever, find_patients, get_token, resend

MAX_OUTAGE = 20.0 if "CI" in os.environ else 10.0  # seconds; beside other suites everything takes longer


@contextlib.asynccontextmanager
async def booking(url: str, agent: dict[str, str]) -> AsyncIterator[Ledger]:
    """Bookers at work during the block; then all that they did not hear of is settled."""
    ledger, chance = Ledger(), random.Random(3)
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        await get_token(client, agent)
        patients = await find_patients(client)
        bookers = [asyncio.create_task(book_for_ever(client, patients, ledger, chance)) for _ in range(BOOKERS)]
        try:
            await _until(lambda: len(ledger.booked) >= 10)
            yield ledger
        finally:
            for booker in bookers:
                booker.cancel()
            await asyncio.gather(*bookers, return_exceptions=True)
        await resend(client, ledger)


async def outage(ledger: Ledger, fail_over: Callable[[], Awaitable[object]]) -> float:
    """Seconds from the fault until writes succeed again."""
    began, before = time.monotonic(), len(ledger.booked)
    await fail_over()
    await _until(lambda: len(ledger.booked) > before + BOOKERS)  # so many answers may have been on their way
    seconds = time.monotonic() - began
    await _until(lambda: len(ledger.booked) > before + 20)
    return seconds


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.02)
