"""Background steps that run during a block of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frontdesk.background import Background, Step


@asynccontextmanager
async def running(*steps: Step) -> AsyncIterator[Background]:
    background = Background(steps)
    background.start()
    try:
        yield background
    finally:
        await background.stop()
