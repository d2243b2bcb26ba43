"""Sizes of the tables and of the server, without any row."""

from frontdesk.store.connection import Connection
from frontdesk.store.database import Database

_TABLES = """
SELECT relname AS name, n_live_tup AS rows, n_dead_tup AS "deadRows", pg_table_size(relid) AS bytes,
       pg_indexes_size(relid) AS "indexBytes", seq_scan AS "fullReads", idx_scan AS "indexReads"
FROM pg_stat_user_tables WHERE schemaname = 'frontdesk' AND relname !~ '_[0-9]+$' ORDER BY relname
"""
_SESSIONS = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL), current_setting('max_connections')::integer
"""


async def table_sizes(connection: Connection) -> list[dict[str, object]]:
    return [dict(row) for row in await connection.fetch(_TABLES)]


async def count_sessions(database: Database) -> tuple[int, int]:
    """The sessions of the server, and how many it allows."""
    row = await database.fetchrow(_SESSIONS)
    assert row is not None
    return row[0], row[1]
