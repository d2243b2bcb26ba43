"""What runs statements: the types of connections, and of what answers questions in their place."""

from typing import Any, Protocol, TypeAlias, Union

import asyncpg
from asyncpg.pool import PoolConnectionProxy

# Quoted, because only the stubs of asyncpg are generic.
Connection: TypeAlias = Union["asyncpg.Connection[asyncpg.Record]", "PoolConnectionProxy[asyncpg.Record]"]


class Reader(Protocol):
    """A connection or a `Database`."""

    async def fetch(self, sql: str, /, *args: object) -> list[asyncpg.Record]: ...
    async def fetchrow(self, sql: str, /, *args: object) -> asyncpg.Record | None: ...
    async def fetchval(self, sql: str, /, *args: object) -> Any: ...  # of the type that PostgreSQL gives it
