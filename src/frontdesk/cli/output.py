"""Output of commands: a JSON document or tables, one-line errors, and exit statuses.

Messages of databases and libraries are never printed, because they may quote patient data.
"""

import argparse
import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130
NO_PRACTICE = "There is no practice yet. Write a file to start from: frontdesk practice init practice.yaml"

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class CommandError(Exception):
    """The command failed; the message is one sentence."""

    status = FAILURE


class BadInput(CommandError):
    """The input is invalid; the message is one sentence."""

    status = BAD_INPUT


def answer(args: argparse.Namespace, document: object, text: str) -> None:
    """Print the result as JSON or text."""
    print(to_json(document) if args.json else text)


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 location, 2 locations."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def to_json(document: object, *, indent: int | None = 2) -> str:
    return json.dumps(document, ensure_ascii=False, indent=indent)


def to_document(record: "DataclassInstance", **keys: str) -> dict[str, object]:
    """The fields of a dataclass under camelCase keys or the given ones, without the practice's internal id."""
    keys["practice_slug"] = "practice"
    return {
        keys.get(field.name) or _camel_case(field.name): _plain(getattr(record, field.name))
        for field in fields(record)
        if field.name != "practice_id"
    }


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_document(value) if is_dataclass(value) and not isinstance(value, type) else value


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> str:
    """A table with right-aligned numbers, or `empty` if there are no rows."""
    if not rows:
        return empty
    cells = [list(headings), *([_cell(value) for value in row] for row in rows)]
    numeric = [all(isinstance(row[column], int) for row in rows) for column in range(len(headings))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headings))]
    lines = (
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        )
        for line in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def details(facts: Sequence[tuple[str, object]]) -> str:
    """One record, one line per field."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name.ljust(width)}  {_cell(value)}".rstrip() for name, value in facts)


def instant(moment: datetime | None) -> str | None:
    from frontdesk.domain.local_time import iso_utc

    return None if moment is None else iso_utc(moment)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def report(error: BaseException, *, as_json: bool) -> int:
    """Print the error; returns the exit status."""
    if isinstance(error, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    sentence, status = (str(error), error.status) if isinstance(error, CommandError) else _explain(error)
    try:
        if as_json:
            print(to_json({"error": sentence}))
        flush()
    except OSError:  # it may be what failed
        discard()
    print(sentence, file=sys.stderr)
    return status


def flush() -> None:
    print(end="", flush=True)  # nothing if standard output is closed


def discard() -> None:
    """Write nothing more to standard output, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: BaseException) -> tuple[str, int]:
    from frontdesk.access.clients.validation import ClientError
    from frontdesk.access.keys.encryption import SecretKeyError
    from frontdesk.access.staff.members import StaffError
    from frontdesk.outbound.targets import TargetError
    from frontdesk.outbound.webhooks.endpoints import WebhookError
    from frontdesk.privileges import AccountError
    from frontdesk.serving import ServingError
    from frontdesk.settings import SettingsError
    from frontdesk.store.database import OutcomeUnknown
    from frontdesk.store.embedded.server import EmbeddedPostgresError
    from frontdesk.store.embedded.table_data import BackupError
    from frontdesk.store.migrate import MigrationError

    match error:
        case SettingsError() | ClientError() | StaffError() | WebhookError() | TargetError():
            return str(error), BAD_INPUT
        case (
            EmbeddedPostgresError()
            | MigrationError()
            | SecretKeyError()
            | BackupError()
            | ServingError()
            | AccountError()
        ):
            return str(error), FAILURE
        case _ if isinstance(error.__cause__, UnicodeEncodeError):  # asyncpg's, for what it cannot send
            return "An argument is not UTF-8 text.", BAD_INPUT
        case OutcomeUnknown():
            return "The connection to the database was lost, and it is not known whether the change was made.", FAILURE
        case OSError() if error.errno in _FULL_DISK:
            return "There is no disk space left.", FAILURE
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}.", FAILURE
    return _explain_database(error), FAILURE


def _explain_database(error: BaseException) -> str:
    from asyncpg import exceptions as pg

    from frontdesk.store.database import DatabaseUnavailable

    match error:
        case pg.DiskFullError() | DatabaseUnavailable(__cause__=pg.DiskFullError()):
            return "There is no disk space left for the database."
        case DatabaseUnavailable():
            return "The database is unavailable now; nothing was changed."
        case pg.PostgresError():
            return f"The database refused this (SQLSTATE {error.sqlstate})."
    # The location only: the message may quote stored data.
    traceback.print_tb(error.__traceback__)
    return f"frontdesk failed unexpectedly ({type(error).__name__})."
