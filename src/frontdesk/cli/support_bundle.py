"""`frontdesk support-bundle`: collects what a bug report needs in one file, without patient data and secrets."""

import argparse
import io
import json
import platform
import sys
import tarfile
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk import __version__
from frontdesk.cli import doctor
from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.config import settings_document
from frontdesk.cli.connection import explain_database_errors, owner_dsn, service_dsn, wait_for
from frontdesk.cli.db import schema_document
from frontdesk.cli.output import BadInput, CommandError, answer, to_json
from frontdesk.cli.output_files import new_file
from frontdesk.cli.running_service import ask_service

if TYPE_CHECKING:
    from frontdesk.settings import Settings

_MAX_LINES = 2000
_MAX_LINE_LENGTH = 20_000
_LEVELS = ("debug", "info", "warning", "error", "critical")


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands,
        "support-bundle",
        _support_bundle,
        "Collect what a bug report needs, without patient data or secrets.",
    )
    command.add_argument(
        "--output", metavar="FILE", type=Path, help="default: frontdesk-support-TIME.tar.gz in this folder; mode 0600"
    )
    command.add_argument(
        "--log", metavar="FILE", type=Path, help=f"log of the service, of which the last {_MAX_LINES} lines are added"
    )


def _support_bundle(args: argparse.Namespace) -> None:
    file = args.output or Path(f"frontdesk-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz")
    if file.exists():
        raise BadInput(f"{file} exists already and is not overwritten.")
    log = None if args.log is None else log_lines(args.log)
    contents = collect() | ({} if log is None else {"log.jsonl": log})
    try:
        _write(file, contents)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
    document = {"file": str(file), "contents": sorted(contents)}
    answer(args, document, f"{file} contains {', '.join(sorted(contents))}. Look through it before you send it.")


def collect() -> dict[str, str]:
    """The files of the bundle. A part that cannot be collected says why."""
    from frontdesk.settings import SettingsError, load_with_sources

    contents = {
        "versions.json": to_json(_versions()),
        "doctor.json": to_json(doctor.as_document(doctor.examine())),  # first: it also starts the embedded database
    }
    try:
        loaded = load_with_sources()
    except SettingsError:  # doctor says what is wrong
        return contents
    settings = loaded.settings
    parts: dict[str, Callable[[], str]] = {
        "config.json": lambda: to_json(settings_document(loaded)),
        "ready.json": lambda: _asked(settings, "/readyz"),
        "metrics.txt": lambda: _asked(settings, "/metrics", settings.metrics_token),
        "migrations.json": lambda: to_json(wait_for(_migrations(settings))),
        "tables.json": lambda: to_json(wait_for(_tables(settings))),
        "queues.json": lambda: to_json(wait_for(_queues(settings))),
    }
    for name, read in parts.items():
        try:
            contents[name] = read()
        except Exception as error:
            contents[name] = f"This could not be collected: {doctor.sentence(error)}\n"
    return contents


def log_lines(file: Path) -> str:
    """The last lines of a log that the service has written itself; others may contain anything."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        newest = deque((line for line in lines if _is_ours(line)), _MAX_LINES)
    return "".join(newest)


def _is_ours(line: str) -> bool:
    if not line.startswith('{"at":') or len(line) > _MAX_LINE_LENGTH:
        return False
    try:
        document = json.loads(line)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("level") in _LEVELS and isinstance(document.get("message"), str)


def _versions() -> dict[str, object]:
    from importlib.metadata import distributions

    return {
        "frontdesk": __version__,
        "collectedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version,
        "platform": platform.platform(),
        "packages": {found.name: found.version for found in sorted(distributions(), key=lambda found: found.name)},
    }


def _asked(settings: "Settings", path: str, token: str | None = None) -> str:
    if path == "/metrics" and token is None:
        return "FRONTDESK_METRICS_TOKEN is not set.\n"
    found = ask_service(settings, path, token)
    if found is None:
        return f"The service does not answer at port {settings.port}.\n"
    status, text = found
    return text if status == 200 or path == "/readyz" else f"{path} answers {status}.\n"


async def _migrations(settings: "Settings") -> dict[str, object]:
    from frontdesk.store.migrate import status

    with explain_database_errors(settings, owner=True):
        return schema_document(await status(owner_dsn(settings)))


async def _tables(settings: "Settings") -> list[dict[str, object]]:
    from frontdesk.store.hosts import Hosts
    from frontdesk.store.sizes import table_sizes

    with explain_database_errors(settings, owner=True):
        connection = await Hosts(owner_dsn(settings)).connect(timeout=10)
    try:
        return await table_sizes(connection)
    finally:
        await connection.close()


async def _queues(settings: "Settings") -> dict[str, float]:
    from frontdesk.store.database import Database
    from frontdesk.store.queues import measure_queues

    with explain_database_errors(settings):
        database = Database(service_dsn(settings), pool_size=1, pooled=settings.direct_database_url is not None)
        await database.open()
    try:
        measured = await measure_queues(database)
    finally:
        await database.close()
    return {f"{name} {state}".strip(): value for (name, state), value in measured.items()}


def _write(file: Path, contents: dict[str, str]) -> None:
    folder = file.name.removesuffix(".gz").removesuffix(".tar")
    with new_file(file, 0o600) as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in contents.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            body = text.encode()
            entry.size, entry.mtime, entry.mode = len(body), int(time.time()), 0o600
            archive.addfile(entry, io.BytesIO(body))
