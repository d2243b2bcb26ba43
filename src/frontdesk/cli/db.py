"""`frontdesk db`: migrates the database, distributes it over a Citus cluster and shows its state."""

import argparse
from typing import TYPE_CHECKING, Any

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import explain_database_errors, owner_dsn, started_settings, wait_for
from frontdesk.cli.output import answer, instant, table

if TYPE_CHECKING:
    from frontdesk.store.migrate import Migration, SchemaState


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "db", "The database: migrate, distribute, status.")
    command = add_command(group, "migrate", _migrate, "Bring the database up to this version of frontdesk.")
    command.add_argument(
        "--phase",
        choices=("before", "after"),
        help="before: only what the previous version works with, too; after: the rest, once all nodes are upgraded",
    )
    add_command(group, "distribute", _distribute, "Distribute the database over the workers of its Citus cluster.")
    add_command(group, "status", _status, "Show which migrations and functions the database has.")


def _migrate(args: argparse.Namespace) -> None:
    from frontdesk.store.migrate import migrate

    settings = started_settings()
    with explain_database_errors(settings, owner=True):
        before = wait_for(migrate(owner_dsn(settings), phase=args.phase))
    migrations, functions = before.due_migrations(args.phase), before.pending_functions
    lines = [f"Applied {m.label}." for m in migrations] + [f"Applied functions/{f.name}." for f in functions]
    document = {
        "applied": [_document(m) for m in migrations],
        "functions": [f.name for f in functions],
    }
    answer(args, document, "\n".join(lines) or "The database is up to date.")


def _distribute(args: argparse.Namespace) -> None:
    from frontdesk.store.migrate import distribute

    def progress(step: int, steps: int) -> None:
        if not args.json:
            print(f"Step {step} of {steps}.", flush=True)

    settings = started_settings()
    with explain_database_errors(settings, owner=True):
        state = wait_for(distribute(owner_dsn(settings), progress))
    assert state.distribution is not None
    answer(args, {"workers": list(state.distribution.workers)}, _distribution_text(state))


def _distribution_text(state: "SchemaState") -> str:
    if state.distribution is None:
        return "on one server"
    if unfinished := state.distribution.unfinished:
        return f"{unfinished} of {state.distribution.steps} steps left: run frontdesk db distribute"
    return f"distributed over {', '.join(state.distribution.workers)}"


def _status(args: argparse.Namespace) -> None:
    from frontdesk.store.migrate import status

    settings = started_settings()
    with explain_database_errors(settings, owner=True):
        state = wait_for(status(owner_dsn(settings)))
    schema = schema_document(state)
    document = {"database": "given" if settings.database_url else "embedded", **schema}
    where = "given by FRONTDESK_DATABASE_URL" if settings.database_url else f"embedded, in {settings.data_dir}"
    deferred = state.deferred_migrations
    rows = []
    for m in state.release.migrations:
        otherwise = "deferred" if m in deferred else "pending"
        rows.append((m.label, instant(state.migration_applied_at(m)) or otherwise))
    rows += [(f"functions/{f['name']}", f["appliedAt"] or "pending") for f in schema["functions"]]
    text = f"Database: {where}; {_distribution_text(state)}; {state.pending or 'nothing'} pending.\n\n"
    if deferred:
        text += "Once all nodes run this version: frontdesk db migrate --phase after\n\n"
    answer(args, document, text + table(("MIGRATION", "APPLIED"), rows, ""))


def _document(migration: "Migration") -> dict[str, object]:
    return {"feature": migration.feature or None, "number": migration.number, "name": migration.name}


def schema_document(state: "SchemaState") -> dict[str, Any]:
    migrations = [
        {**_document(m), "appliedAt": instant(state.migration_applied_at(m))} for m in state.release.migrations
    ]
    functions = [(f, instant(state.function_applied_at(f))) for f in state.functions]
    distribution = state.distribution
    return {
        "pending": state.pending,
        "deferred": len(state.deferred_migrations),
        "workers": None if distribution is None else list(distribution.workers),
        "unfinishedSteps": 0 if distribution is None else distribution.unfinished,
        "migrations": migrations,
        "functions": [{"name": f.name, "appliedAt": at} for f, at in functions],
    }
