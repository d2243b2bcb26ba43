"""Sleeping and locking for threads and for tasks; these cannot be generated from one source."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

sleep = time.sleep
async_sleep = asyncio.sleep


class Turn:
    """A lock for threads with a TimeoutError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, longest_wait: float) -> Iterator[None]:
        if not self._lock.acquire(timeout=longest_wait):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()


class AsyncTurn:
    """A lock for tasks with a TimeoutError."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, longest_wait: float) -> AsyncIterator[None]:
        async with asyncio.timeout(longest_wait):
            await self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()
