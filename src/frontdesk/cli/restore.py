"""`frontdesk restore` restores a backup of the embedded database.

A restore is verified in a temporary directory and put in place with one rename; a failure leaves the target as it was.
"""

import argparse
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.cli.backup import (
    add_identity_option,
    check_file,
    embedded_settings,
    facts_of,
    opened_backup,
    used_data_dir,
)
from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import CommandContext, on_database, owner_dsn, wait_for
from frontdesk.cli.output import BadInput, CommandError, answer, details

if TYPE_CHECKING:
    from frontdesk.settings import Settings
    from frontdesk.store.embedded.backup_file import Backup

_STAGING = ".restoring"
_WARNING = "Warning: this backup is not authenticated. The data, clients and staff in it may be forged."


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands, "restore", _restore, "Restore a backup into a data directory that holds nothing but the secret key."
    )
    command.add_argument("file", metavar="FILE", type=Path, help="a file made by frontdesk backup")
    add_identity_option(command)
    command.add_argument(
        "--unverified",
        action="store_true",
        help="restore a backup that cannot be authenticated with the secret key; you must trust its origin",
    )


def _restore(args: argparse.Namespace) -> None:
    settings = embedded_settings("restored with its own tools, such as pg_restore")
    check_file(args)
    with used_data_dir(settings):
        document = _restored(args, settings)
    facts = [
        ("Made", document["createdAt"]),
        ("Rows", document["rows"]),
        ("Practices", document["practices"]),
        ("Audit trails", "whole"),
        ("Verified", document["verified"]),
    ]
    secret = "The keys can be decrypted." if document["keysOpen"] else (
        f"The keys are not usable yet: put the secret key that belongs to them into {settings.secret_key_file} "
        "(mode 0600) or FRONTDESK_SECRET_KEY before the service starts."
    )  # fmt: skip
    answer(args, document, f"{details(facts)}\n\n{secret}")


def _restored(args: argparse.Namespace, settings: "Settings") -> dict[str, object]:
    """Puts the restored data into the data directory; returns the report."""
    from frontdesk.store.embedded.table_data import BackupError

    staging = settings.data_dir / _STAGING
    if staging.exists():
        raise BadInput(f"{staging} exists: another restore is running, or one was interrupted: then remove it.")
    if any(path != settings.secret_key_file for path in settings.data_dir.iterdir()):
        raise BadInput(
            f"The data directory {settings.data_dir} is not empty: restore into a new one, named by FRONTDESK_DATA_DIR."
        )
    staging.mkdir(mode=0o700)
    try:
        with opened_backup(args, settings, staging, unverified=args.unverified) as backup:
            if not backup.is_authentic:
                print(_WARNING, file=sys.stderr)
            document = _restore_aside(backup, staging, settings)
        for name in (settings.secret_key_file.name, settings.postgres_dir.name):  # the database completes the restore
            if (staging / name).exists():
                (staging / name).rename(settings.data_dir / name)
    except BackupError as error:
        raise CommandError(f"{error} Nothing was restored.") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _sync(settings.data_dir)
    return document


def _restore_aside(backup: "Backup", staging: Path, settings: "Settings") -> dict[str, object]:
    """Restore into a temporary data directory, start it once and verify it; returns the report."""
    from frontdesk.access.keys.encryption import has_secret_key, read_secrets
    from frontdesk.store.embedded.server import EmbeddedPostgres
    from frontdesk.store.embedded.table_data import copy_in
    from frontdesk.store.migrate import migrate

    if shutil.disk_usage(staging).free < backup.manifest.size:
        raise CommandError(f"There is not enough free disk space in {settings.data_dir} to restore the backup.")
    aside = settings.model_copy(update={"data_dir": staging})
    if has_secret_key(settings):
        aside = aside.model_copy(update={"secret_key": ",".join(read_secrets(settings))})
    elif (included := backup.secret_key()) is not None:
        _write_private(aside.secret_key_file, included)
    keys_open = has_secret_key(aside)
    postgres = EmbeddedPostgres(aside.postgres_dir)

    async def fill() -> int:
        await copy_in(owner_dsn(aside), backup.manifest.content, backup.open_table)
        await migrate(owner_dsn(aside))
        return await on_database(aside, lambda context: _check(context, keys=keys_open))

    try:
        postgres.start()
        practices = wait_for(fill())
    finally:
        postgres.stop_and_await_end()
    return facts_of(backup.manifest) | {
        "practices": practices,
        "keysOpen": keys_open,
        "verified": backup.is_authentic,
    }


async def _check(context: CommandContext, *, keys: bool) -> int:
    """Verify every audit trail and, with a secret, the keys; record the restore; returns the number of practices."""
    from frontdesk.audit.verify import verify_chain
    from frontdesk.store.practices import practice_ids

    found = await practice_ids(context.database)
    ring = await context.ring() if keys else None
    for practice_id in found.values():
        report = await verify_chain(context.database, practice_id, datetime.now(UTC), keys=ring)
        if report.violations:
            raise CommandError(
                f"The audit trail in this backup is broken: {report.violations[0].message} Nothing was restored."
            )
    await context.record_everywhere("command.restore")
    return len(found)


def _write_private(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
