"""`frontdesk db`: the schema of the database, and how far it is from this version's."""

import argparse
from typing import TYPE_CHECKING

from frontdesk.cli.commands import add_command, add_group
from frontdesk.cli.connection import owner_dsn, reached, started_settings, wait_for
from frontdesk.cli.output import answer, instant, table

if TYPE_CHECKING:
    from frontdesk.cli.commands import Commands


def add_db_commands(commands: "Commands") -> None:
    group = add_group(commands, "db", "The database: migrate, status.")
    add_command(group, "migrate", _migrate, "Bring the database up to this version of frontdesk.")
    add_command(group, "status", _status, "Show which migrations the database has.")


def _migrate(args: argparse.Namespace) -> None:
    from frontdesk.store.migrate import migrate

    settings = started_settings()
    applied = wait_for(reached(settings, migrate(owner_dsn(settings))))
    text = "\n".join(f"Applied {m.number:03} {m.name}." for m in applied) or "The database is up to date."
    answer(args, {"applied": [{"number": m.number, "name": m.name} for m in applied]}, text)


def _status(args: argparse.Namespace) -> None:
    from frontdesk.store.migrate import status

    settings = started_settings()
    states = wait_for(reached(settings, status(owner_dsn(settings))))
    pending = sum(state.applied_at is None for state in states)
    document = {
        "database": "given" if settings.database_url else "embedded",
        "pending": pending,
        "migrations": [{"number": s.number, "name": s.name, "appliedAt": instant(s.applied_at)} for s in states],
    }
    where = "given by FRONTDESK_DATABASE_URL" if settings.database_url else f"embedded, in {settings.data_dir}"
    rows = [(f"{state.number:03}", state.name, instant(state.applied_at) or "pending") for state in states]
    text = f"Database: {where}; {pending or 'no'} migrations pending.\n\n"
    answer(args, document, text + table(("NUMBER", "MIGRATION", "APPLIED"), rows, ""))
