"""Distributes the tables over the workers of a Citus cluster, by practice; see decision 22.

The plan is stored before its first step, and each step commits with its mark: what was interrupted can be continued.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from frontdesk.store.connection import Connection, Reader
from frontdesk.store.database import SCHEMA, SERVICE_ROLE, Database, DatabaseUnavailable, within

BY_COLUMN = {"token_failure": "subject"}  # without row-level security, and written too often for every worker
AT_COORDINATOR = ("migration", "function_file", "distribution", "sealed_key")
KEEP_NO_PLANS = "force_custom_plan"
_ANCHOR = "location"  # the other tables of a practice are kept on the same worker

_CREATE = (
    "CREATE TABLE distribution (step integer PRIMARY KEY, statement text NOT NULL, done boolean NOT NULL DEFAULT false)"
)
_PROGRESS = "SELECT count(*) FILTER (WHERE NOT done) AS unfinished, count(*) AS steps FROM distribution"
_WORKERS = """
SELECT nodename || ':' || nodeport AS name FROM pg_dist_node
WHERE groupid <> 0 AND noderole = 'primary' AND isactive ORDER BY 1
"""
_REACHES = "SELECT citus_check_connection_to_node($1, $2::integer)"
_WORKER_SECONDS = 2.0
_TABLES = """
SELECT c.relname AS name, c.relforcerowsecurity AS by_practice FROM pg_class c
WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND c.relname !~ '_[0-9]+$' AND c.relname <> ALL ($2)
  AND NOT EXISTS (
      SELECT FROM pg_dist_partition p
      WHERE p.logicalrelid = c.oid AND (p.partmethod <> 'n' OR p.repmodel = 't')  -- others refer to a reference table
  )
ORDER BY c.relname <> $3, c.relname
"""
_FOREIGN_KEYS = """
SELECT conrelid::regclass::text AS child, quote_ident(conname) AS name, pg_get_constraintdef(k.oid) AS definition
FROM pg_constraint k
WHERE contype = 'f' AND connamespace = $1::regnamespace
  AND ARRAY[(SELECT relname FROM pg_class WHERE oid = conrelid), (SELECT relname FROM pg_class WHERE oid = confrelid)]
      && $2::name[]
ORDER BY 1, 2
"""
_STATEMENT_TRIGGERS = """
SELECT tgrelid::regclass::text AS of, tgname AS name FROM pg_trigger
WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = $1::regnamespace)
  AND (tgnewtable IS NOT NULL OR tgoldtable IS NOT NULL)
"""
_FUNCTIONS = """
SELECT p.oid::regprocedure::text AS name, p.proargnames[1] = 'p_practice' AND NOT p.prosecdef AS by_practice,
       p.proconfig::text LIKE '%plan_cache_mode%' AS has_generic_plans
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = $1::regnamespace AND l.lanname IN ('sql', 'plpgsql') AND p.prorettype <> 'trigger'::regtype
"""
_OTHER_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'frontdesk' AND pid <> pg_backend_pid()
"""
_IS_SUPERUSER = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
_PLAN_MODE = """
SELECT substring(option FROM 'plan_cache_mode=(.*)')
FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) option
WHERE d.datname = current_database() AND s.setrole = $1::regrole AND option LIKE 'plan_cache_mode=%'
"""
# Since its pull request 8371 (13.2.1, 12.1.12, 14.0) Citus plans the statements of a function at each call and keeps
# the plans as long as the connection lasts. Releases that mend it have to be added here.
_REUSES_PLANS = re.compile(r"Citus 13\.(?:0\.[0-5]|1\.[01]|2\.0)\b")
_PART = re.compile(r"--[^\n]*|'(?:[^']|'')*'|(?P<quote>\$\w*\$).*?(?P=quote)|(?P<end>;)|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Distribution:
    workers: tuple[str, ...]
    steps: int
    unfinished: int


async def read_distribution(connection: Reader) -> Distribution | None:
    """The state of the distribution; None for a database on one server."""
    if not await connection.fetchval("SELECT to_regclass('distribution') IS NOT NULL"):
        return None
    row = await connection.fetchrow(_PROGRESS)
    assert row is not None
    workers = tuple(row["name"] for row in await connection.fetch(_WORKERS))
    return Distribution(workers, row["steps"], row["unfinished"])


async def lost_workers(database: Database, distribution: Distribution | None) -> list[str]:
    """The workers that the coordinator does not reach: calls for their practices fail."""
    workers = () if distribution is None else distribution.workers

    async def is_lost(worker: str) -> bool:
        host, _, port = worker.rpartition(":")
        try:
            return not await within(_WORKER_SECONDS, database.fetchval(_REACHES, host, int(port)))
        except DatabaseUnavailable:
            return True

    lost = await asyncio.gather(*(is_lost(worker) for worker in workers))
    return [worker for worker, is_lost in zip(workers, lost, strict=True) if is_lost]


async def obstacle(connection: Connection) -> str | None:
    """What an operator has to do before a database can be distributed."""
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        return "This database has no Citus: run CREATE EXTENSION citus on the coordinator and on each worker."
    if not await connection.fetchval(_IS_SUPERUSER):
        return "Distributing needs a superuser's login: set FRONTDESK_MIGRATION_DATABASE_URL to one."
    if not await connection.fetch(_WORKERS):
        return "The cluster has no workers: run citus_set_coordinator_host and citus_add_node on the coordinator."
    if await connection.fetchval(_OTHER_SESSIONS):
        return "Stop all nodes of frontdesk first."
    return None


async def prepare(connection: Connection) -> None:
    """Stores the plan; an earlier one is kept."""
    if await read_distribution(connection) is not None:
        return
    async with connection.transaction():
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        statements = [*session_settings_of(name), *await _plan(connection)]
        await connection.execute(_CREATE)
        await connection.execute(f"GRANT SELECT ON distribution TO {SERVICE_ROLE}")
        rows = list(enumerate(statements, 1))
        await connection.executemany("INSERT INTO distribution (step, statement) VALUES ($1, $2)", rows)


async def execute(connection: Connection, progress: Callable[[int, int], None]) -> None:
    await set_for_changes(connection)
    total = await connection.fetchval("SELECT count(*) FROM distribution")
    for row in await connection.fetch("SELECT step, statement FROM distribution WHERE NOT done ORDER BY step"):
        async with connection.transaction():
            await connection.execute(row["statement"])
            await connection.execute("UPDATE distribution SET done = true WHERE step = $1", row["step"])
        progress(row["step"], total)


async def set_for_changes(connection: Connection) -> None:
    """Triggers are allowed that stay within a practice; several tables may be changed in a transaction."""
    await connection.execute("SET citus.enable_unsafe_triggers = on")
    await connection.execute("SET citus.multi_shard_modify_mode = sequential")
    await connection.execute("SET citus.propagate_set_commands = 'local'")


async def distribute_new_tables(connection: Connection) -> None:
    """Distributes the tables that a migration has made, in its transaction."""
    for statement in await _plan(connection):
        await connection.execute(statement)


async def distribute_functions(connection: Connection) -> None:
    """Functions of a practice run at its worker, in one round trip."""
    for row in await connection.fetch(_FUNCTIONS, SCHEMA):
        if row["has_generic_plans"]:  # a generic plan cannot know the worker
            await connection.execute(f"ALTER FUNCTION {row['name']} RESET plan_cache_mode")
        if row["by_practice"]:
            await connection.execute(
                "SELECT create_distributed_function($1::text::regprocedure, '$1', colocate_with := $2)",
                row["name"],
                f"{SCHEMA}.{_ANCHOR}",
            )
        else:
            await connection.execute("SELECT create_distributed_function($1::text::regprocedure)", row["name"])


def session_settings_of(database: str) -> list[str]:
    """Statements that set what sessions need. At the coordinator, SET LOCAL reaches workers, and looking up types does
    not take a second to hide shards. At workers they set what the service's own connections ask for."""
    service = _of_service(database)
    return [
        f"ALTER DATABASE {database} SET citus.propagate_set_commands = 'local'",
        f"ALTER DATABASE {database} SET citus.override_table_visibility = off",
        f"{service} search_path = {SCHEMA}, public",
        f"{service} timezone = 'UTC'",
        f"{service} jit = off",
    ]


def _of_service(database: str) -> str:
    return f"ALTER ROLE {SERVICE_ROLE} IN DATABASE {database} SET"


async def plan_modes(connection: Reader) -> tuple[str, str]:
    """The plan_cache_mode that suits this version of Citus, and the one that is set: "auto" lets workers keep plans."""
    reuses = _REUSES_PLANS.match(await connection.fetchval("SELECT citus_version()"))
    wanted = "auto" if reuses else KEEP_NO_PLANS
    return wanted, await connection.fetchval(_PLAN_MODE, SERVICE_ROLE) or "auto"


async def set_plan_mode(connection: Connection) -> None:
    """Sets the plan mode that the version of Citus needs, at each start, because Citus may have been upgraded.

    It takes a superuser's login; without one, `doctor` tells the operator.
    """
    wanted, current = await plan_modes(connection)
    if wanted != current and await connection.fetchval(_IS_SUPERUSER):
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"{_of_service(name)} plan_cache_mode = {wanted}")


async def execute_text(connection: Connection, sql: str) -> None:
    """Executes SQL statement by statement, in a transaction: Citus passes the whole text of a message on to workers."""
    await connection.execute(f"SET LOCAL search_path = {SCHEMA}, public")  # at workers, too
    for statement in statements_of(sql):
        await connection.execute(statement)


def statements_of(sql: str) -> list[str]:
    found = [""]
    for part in _PART.finditer(sql):
        if part["end"]:
            found.append("")
        elif not part[0].startswith("--"):
            found[-1] += part[0]
    return [statement.strip() for statement in found if statement.strip()]


async def _plan(connection: Connection) -> list[str]:
    tables = await connection.fetch(_TABLES, SCHEMA, list(AT_COORDINATOR), _ANCHOR)
    if not tables:
        return []
    names = [row["name"] for row in tables]
    await connection.execute("SET LOCAL search_path = pg_catalog")  # so that all names are qualified
    keys = await connection.fetch(_FOREIGN_KEYS, SCHEMA, names)
    triggers = await connection.fetch(_STATEMENT_TRIGGERS, SCHEMA)
    await connection.execute(f"SET LOCAL search_path = {SCHEMA}, public")
    columns = {row["name"]: "practice_id" for row in tables if row["by_practice"]} | BY_COLUMN
    beside = {
        name: f"{SCHEMA}.{_ANCHOR}" for name, column in columns.items() if column == "practice_id" and name != _ANCHOR
    }
    return [
        *(f"DROP TRIGGER {row['name']} ON {row['of']}" for row in triggers),
        *(f"ALTER TABLE {row['child']} DROP CONSTRAINT {row['name']}" for row in keys),
        *(f"SELECT create_reference_table('{SCHEMA}.{name}')" for name in names if name not in columns),
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{name}', '{columns[name]}', "
            f"colocate_with := '{beside.get(name, 'none')}')"
            for name in names
            if name in columns
        ),
        *(f"SELECT truncate_local_data_after_distributing_table('{SCHEMA}.{name}')" for name in names),
        *(f"ALTER TABLE {row['child']} ADD CONSTRAINT {row['name']} {row['definition']}" for row in keys),
    ]
