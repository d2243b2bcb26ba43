"""Statistics of tables that have grown or changed since they were last analyzed; without them PostgreSQL plans for few
rows."""

from frontdesk.store.database import Database

ANALYZE_GROWN_TABLES = "SELECT analyze_grown_tables()"


async def analyze_grown_tables(database: Database) -> None:
    """Takes some tenths of a second for tables of any size, and nothing if none has grown fourfold or changed a lot."""
    await database.fetch(ANALYZE_GROWN_TABLES)
