"""An outage of the database, as a problem to retry."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from frontdesk.domain.errors import Problem
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown

CREDENTIALS = "Credentials cannot be checked at the moment."


@contextmanager
def outage_as_problem(detail: str | None = None) -> Iterator[None]:
    """Nothing was executed, or what may have been is safe to repeat."""
    try:
        yield
    except (DatabaseUnavailable, OutcomeUnknown) as error:
        raise Problem("upstream_unavailable", detail, retry_after=2) from error


@asynccontextmanager
async def transaction_or_problem(database: Database, detail: str) -> AsyncIterator[Connection]:
    with outage_as_problem(detail):
        async with database.transaction() as connection:
            yield connection
