"""A database whose statements are spans of the trace of their call."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from frontdesk.store.database import Database
from frontdesk.tracing import Tracing


def traced_database(tracing: Tracing) -> type[Database]:
    class TracedDatabase(Database):
        async def fetch(self, sql: str, *args: Any) -> list[asyncpg.Record]:
            with tracing.statement(sql):
                return await super().fetch(sql, *args)

        async def fetchrow(self, sql: str, *args: Any) -> asyncpg.Record | None:
            with tracing.statement(sql):
                return await super().fetchrow(sql, *args)

        async def fetchval(self, sql: str, *args: Any) -> Any:
            with tracing.statement(sql):
                return await super().fetchval(sql, *args)

        async def write(self, sql: str, *args: Any) -> asyncpg.Record | None:
            with tracing.statement(sql):
                return await super().write(sql, *args)

        @contextlib.asynccontextmanager
        async def transaction(self, practice_id: int | None = None) -> AsyncIterator[Any]:
            with tracing.statement("TRANSACTION"):
                async with super().transaction(practice_id) as connection:
                    yield connection

    return TracedDatabase
