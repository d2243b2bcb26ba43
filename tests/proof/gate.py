"""Keeps calls from beginning for a while."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Gate:
    """Lets calls pass while it is open. It is closed when none is under way any more."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._is_open = True
        self._passing = 0

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_open)
            self._passing += 1
        try:
            yield
        finally:
            async with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    @contextlib.asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        async with self._changed:
            self._is_open = False
            await self._changed.wait_for(lambda: self._passing == 0)
        try:
            yield
        finally:
            async with self._changed:
                self._is_open = True
                self._changed.notify_all()
