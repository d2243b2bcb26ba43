"""`frontdesk backup` and `frontdesk restore` for the embedded database.

A restore is verified in a temporary directory and put in place with one rename; a failure leaves the target empty.
"""

import argparse
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frontdesk import __version__
from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import CommandContext, on_database, owner_dsn, prepare_data_dir, start_database, wait_for
from frontdesk.cli.output import BadInput, CommandError, answer, details, instant

if TYPE_CHECKING:
    from frontdesk.settings import Settings

_STAGING = ".restoring"


def add_commands(commands: Commands) -> None:
    command = add_command(commands, "backup", _backup, "Write the embedded database to a file; the service may run.")
    command.add_argument(
        "file", metavar="FILE", type=Path, help="created with mode 0600; an existing file is never overwritten"
    )
    command.add_argument(
        "--with-secret-key",
        action="store_true",
        help="include the secret key file; anyone who has the backup can then decrypt its keys",
    )

    command = add_command(commands, "restore", _restore, "Restore a backup into an empty data directory.")
    command.add_argument("file", metavar="FILE", type=Path, help="a file made by frontdesk backup")


def _backup(args: argparse.Namespace) -> None:
    from tempfile import TemporaryDirectory

    from frontdesk.store.embedded.backups import SECRET_KEY, dump, pack

    settings = _embedded_settings("backed up with its own tools, such as pg_dump")
    if args.file.exists():
        raise BadInput(f"{args.file} exists already and is not overwritten.")
    if not settings.postgres_dir.exists():
        raise CommandError(f"There is no database in {settings.data_dir}.")
    secret_key = _secret_key_file(settings) if args.with_secret_key else None
    start_database(settings, lambda _step: None)
    now = instant(datetime.now(UTC).replace(microsecond=0)) or ""

    with TemporaryDirectory(dir=args.file.parent, prefix=f".{args.file.name}.") as name:
        folder = Path(name)  # mode 0600, like the final file
        if secret_key is not None:
            shutil.copyfile(secret_key, folder / SECRET_KEY)

        async def work(context: CommandContext) -> Any:
            await context.record_everywhere("command.backup")  # before the dump, which then contains the record
            return await dump(owner_dsn(settings), folder)

        content = wait_for(on_database(settings, work))
        manifest = pack(folder, args.file, content, __version__, now)
    document = {
        "file": str(args.file),
        "bytes": args.file.stat().st_size,
        "createdAt": manifest.created_at,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "secretKey": secret_key is not None,
    }
    text = details([("File", args.file), ("Size", f"{document['bytes']:,} bytes"), ("Rows", manifest.rows)])
    if secret_key is not None:
        advice = "The secret key is included: anyone who has this file can decrypt every key of the service."
    else:
        advice = (
            "The secret key is not included, and without it the keys in this backup cannot be opened: keep "
            f"{_where_the_secret_is(settings)} somewhere else, or use --with-secret-key."
        )
    answer(args, document, f"{text}\n\n{advice}")


def _restore(args: argparse.Namespace) -> None:
    from frontdesk.store.embedded.backups import BackupError

    settings = _embedded_settings("restored with its own tools, such as pg_restore")
    if not args.file.is_file():
        raise BadInput(f"There is no file {args.file}.")
    prepare_data_dir(settings.data_dir)
    staging = settings.data_dir / _STAGING
    if staging.exists():
        raise BadInput(f"{staging} is under way, or left from a restore that was interrupted: remove it then.")
    if any(settings.data_dir.iterdir()):
        raise BadInput(
            f"The data directory {settings.data_dir} is not empty: restore into a new one, named by FRONTDESK_DATA_DIR."
        )
    staging.mkdir(mode=0o700)
    try:
        document = _restore_aside(args.file, staging, settings)
        for name in ("secret.key", "postgres"):  # the database last: it completes the restore
            if (staging / name).exists():
                (staging / name).rename(settings.data_dir / name)
    except BackupError as error:
        raise CommandError(f"{error} Nothing was restored.") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _sync(settings.data_dir)
    facts = [
        ("Made", document["createdAt"]),
        ("Rows", document["rows"]),
        ("Practices", document["practices"]),
        ("Audit trails", "whole"),
    ]
    secret = "The keys can be decrypted." if document["keysOpen"] else (
        f"The keys are not usable yet: put the secret key that belongs to them into {settings.data_dir}/secret.key "
        "(mode 0600) or FRONTDESK_SECRET_KEY before the service starts."
    )  # fmt: skip
    answer(args, document, f"{details(facts)}\n\n{secret}")


def _restore_aside(file: Path, staging: Path, settings: "Settings") -> dict[str, Any]:
    """Restore into a temporary data directory, start it once and verify it; returns the report."""

    from frontdesk.store.embedded.backups import DUMP, SECRET_KEY, load, unpack
    from frontdesk.store.embedded.server import EmbeddedPostgres
    from frontdesk.store.migrate import migrate

    manifest = unpack(file, staging)
    aside = settings.model_copy(update={"data_dir": staging})
    postgres = EmbeddedPostgres(aside.postgres_dir)

    async def fill() -> int:
        await load(owner_dsn(aside), staging / DUMP, manifest)
        await migrate(owner_dsn(aside))
        return await on_database(aside, lambda context: _check(context, keys=opens))

    opens = SECRET_KEY in manifest.members or settings.secret_key is not None
    try:
        postgres.start()
        practices = wait_for(fill())
    finally:
        postgres.end()
    return {
        "createdAt": manifest.created_at,
        "version": manifest.version,
        "rows": manifest.rows,
        "practices": practices,
        "keysOpen": opens,
    }


async def _check(context: CommandContext, *, keys: bool) -> int:
    """Verify every audit trail and, with a secret, the keys; record the restore; returns the number of practices."""
    from frontdesk.audit.verify import verify_chain
    from frontdesk.store.practices import practice_ids

    found = await practice_ids(context.database)
    ring = await context.ring() if keys else None
    for practice_id in found.values():
        report = await verify_chain(context.database, practice_id, datetime.now(UTC), keys=ring)
        if report.faults:
            raise CommandError(
                f"The audit trail in this backup is broken: {report.faults[0].message} Nothing was restored."
            )
    await context.record_everywhere("command.restore")
    return len(found)


def _embedded_settings(otherwise: str) -> "Settings":
    from frontdesk.settings import load_settings

    settings = load_settings()
    if settings.database_url is not None:
        raise BadInput(f"This is for the embedded database; the database of FRONTDESK_DATABASE_URL is {otherwise}.")
    return settings


def _secret_key_file(settings: "Settings") -> Path:
    path = settings.data_dir / "secret.key"
    if settings.secret_key is not None or not path.exists():
        raise BadInput(f"There is no secret key file to include: keep {_where_the_secret_is(settings)} by other means.")
    return path


def _where_the_secret_is(settings: "Settings") -> str:
    return "FRONTDESK_SECRET_KEY" if settings.secret_key is not None else str(settings.data_dir / "secret.key")


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
