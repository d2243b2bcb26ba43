"""`frontdesk backup` makes and verifies encrypted backups of the embedded database."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk import __version__
from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import (
    CommandContext,
    check_embedded_database,
    on_database,
    owner_dsn,
    prepare_data_dir,
    start_database,
    wait_for,
)
from frontdesk.cli.output import BadInput, CommandError, answer, details, instant

if TYPE_CHECKING:
    from pyrage.x25519 import Identity, Recipient

    from frontdesk.settings import Settings
    from frontdesk.store.embedded.backup_file import Backup, Manifest

_PROTECTED = (b"age-encryption.org/v1\n", b"-----BEGIN AGE ENCRYPTED FILE-----")


def add_commands(commands: Commands) -> None:
    command = add_command(
        commands, "backup", _backup_or_verify, "Write the embedded database to an encrypted file; the service may run."
    )
    command.add_argument(
        "action", nargs="?", choices=["verify"], metavar="verify", help="check a backup instead of making one"
    )
    command.add_argument(
        "file", metavar="FILE", type=Path, help="created with mode 0600; an existing file is never overwritten"
    )
    command.add_argument(
        "--recipient",
        action="append",
        default=[],
        metavar="KEY",
        help="encrypt to this public key of age (age1...) instead of the secret key; may be repeated",
    )
    command.add_argument(
        "--with-secret-key",
        action="store_true",
        help="include the secret key file; needs --recipient, because the secret key cannot protect itself",
    )
    add_identity_option(command)


def add_identity_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--identity", metavar="FILE", type=Path, help="age identity file that opens a backup made with --recipient"
    )


def _backup_or_verify(args: argparse.Namespace) -> None:
    if args.action == "verify":
        _verify(args)
    else:
        _backup(args)


def _backup(args: argparse.Namespace) -> None:
    from frontdesk.access.keys.backups import read_backup_keys
    from frontdesk.store.embedded.backup_file import write_backup

    settings = embedded_settings("backed up with its own tools, such as pg_dump")
    if args.identity is not None:
        raise BadInput("--identity opens a backup; --recipient encrypts one.")
    if args.file.name == "verify":
        raise BadInput("Name the file: frontdesk backup verify FILE.")
    if args.file.exists():
        raise BadInput(f"{args.file} exists already and is not overwritten.")
    if not args.file.parent.is_dir():
        raise BadInput(f"There is no folder {args.file.parent}.")
    check_embedded_database(settings)
    recipients = [_recipient(text) for text in args.recipient]
    secret_key = _secret_key_file(settings, recipients) if args.with_secret_key else None
    keys = read_backup_keys(settings)
    start_database(settings, lambda _step: None)
    now = instant(datetime.now(UTC).replace(microsecond=0)) or ""

    async def save(context: CommandContext) -> "Manifest":
        await _require_matching_secret_key(context)
        await context.record_everywhere("command.backup")  # before the rows are read, which then contain the record
        return await write_backup(
            args.file,
            owner_dsn(settings),
            keys=keys[0],
            recipients=recipients,
            secret_key=secret_key,
            work=settings.data_dir,
            version=__version__,
            created_at=now,
        )

    manifest = wait_for(on_database(settings, save))
    size = args.file.stat().st_size
    document = {
        "file": str(args.file),
        "bytes": size,
        "createdAt": manifest.created_at,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "secretKey": secret_key is not None,
    }
    text = details([("File", args.file), ("Size", f"{size:,} bytes"), ("Rows", manifest.rows)])
    answer(args, document, f"{text}\n\n{_needed_to_restore(settings, recipients, secret_key)}")


def _needed_to_restore(settings: "Settings", recipients: list["Recipient"], secret_key: bytes | None) -> str:
    secret = "FRONTDESK_SECRET_KEY" if settings.secret_key is not None else str(settings.secret_key_file)
    if not recipients:
        return (
            f"The backup is encrypted with the secret key. Nobody can restore it without {secret}: keep a copy of it "
            "elsewhere, separate from the backups."
        )
    if secret_key is None:
        return (
            "The backup is encrypted to the recipient. Nobody can restore it without the recipient's identity file and "
            f"{secret}: keep copies of both elsewhere."
        )
    return (
        "The backup is encrypted to the recipient and includes the secret key: anyone who has it and the recipient's "
        "identity file can decrypt every key of the service."
    )


def _verify(args: argparse.Namespace) -> None:
    from frontdesk.store.embedded.table_data import release_of

    settings = embedded_settings("verified with its own tools")
    if args.recipient or args.with_secret_key:
        raise BadInput("--recipient and --with-secret-key are for making a backup.")
    check_file(args)
    with used_data_dir(settings), opened_backup(args, settings, settings.data_dir) as backup:
        manifest = backup.manifest
        release_of(manifest.content)
    facts = [("Made", manifest.created_at), ("Version", manifest.version), ("Rows", manifest.rows)]
    text = f"{details(facts)}\n\nThe backup is complete and unaltered, and this version can restore it."
    answer(args, facts_of(manifest) | {"verified": True}, text)


@contextmanager
def used_data_dir(settings: "Settings") -> Iterator[None]:
    """The data directory. One that was made for this, and is empty afterwards, is removed."""
    is_new = not settings.data_dir.exists()
    prepare_data_dir(settings.data_dir)
    try:
        yield
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                settings.data_dir.rmdir()


def check_file(args: argparse.Namespace) -> None:
    if not args.file.is_file():
        raise BadInput(f"There is no file {args.file}.")


@contextmanager
def opened_backup(
    args: argparse.Namespace, settings: "Settings", work: Path, *, unverified: bool = False
) -> Iterator["Backup"]:
    """The backup that the arguments name, once it is known to be authentic and complete."""
    from frontdesk.access.keys.backups import read_backup_keys
    from frontdesk.access.keys.encryption import has_secret_key
    from frontdesk.store.embedded.backup_file import open_backup

    keys = read_backup_keys(settings) if has_secret_key(settings) else []
    identities = [] if args.identity is None else _identities(args.identity)
    if not keys and not identities:
        raise BadInput(
            "The backup cannot be opened without the secret key of the service that made it: put that into "
            f"{settings.secret_key_file} (mode 0600), or set FRONTDESK_SECRET_KEY."
        )
    file = args.file.open("rb")
    with file, open_backup(file, work, keys, identities) as backup:
        if not (backup.is_authentic or unverified):
            raise CommandError(
                "The backup cannot be authenticated: it was altered, or made with another secret key than the one set "
                "here. If you trust its origin, frontdesk restore --unverified restores it anyway."
            )
        backup.check()
        yield backup


def embedded_settings(otherwise: str) -> "Settings":
    from frontdesk.settings import load_settings

    settings = load_settings()
    if settings.database_url is not None:
        raise BadInput(f"This is for the embedded database; the database of FRONTDESK_DATABASE_URL is {otherwise}.")
    return settings


def facts_of(manifest: "Manifest") -> dict[str, object]:
    return {"createdAt": manifest.created_at, "version": manifest.version, "rows": manifest.rows}


async def _require_matching_secret_key(context: CommandContext) -> None:
    """A backup under a key that is not the service's could not be restored later."""
    from frontdesk.access.keys.encryption import KeyCipher, read_secrets
    from frontdesk.access.keys.ring import examine_keys

    await examine_keys(context.database, KeyCipher(read_secrets(context.settings)))


def _secret_key_file(settings: "Settings", recipients: list["Recipient"]) -> bytes:
    if not recipients:
        raise BadInput("The secret key cannot protect itself: add --recipient, or keep the key apart from the backup.")
    if settings.secret_key is not None:
        raise BadInput("There is no secret key file to include: keep FRONTDESK_SECRET_KEY by other means.")
    return settings.secret_key_file.read_bytes()


def _recipient(text: str) -> "Recipient":
    from pyrage import RecipientError
    from pyrage.x25519 import Recipient

    try:
        return Recipient.from_str(text)
    except RecipientError:
        raise BadInput("--recipient must be a public key of age, as age-keygen prints it: age1...") from None


def _identities(path: Path) -> list["Identity"]:
    from pyrage import IdentityError
    from pyrage.x25519 import Identity

    content = path.read_bytes()
    if content.startswith(_PROTECTED):
        content = _unprotected(content)
    try:
        lines = [line.strip() for line in content.decode().splitlines()]
        found = [Identity.from_str(line) for line in lines if line and not line.startswith("#")]
    except (IdentityError, UnicodeDecodeError):
        found = []
    if not found:
        raise BadInput(f"{path} is not an identity file of age, as age-keygen writes it.")
    return found


def _unprotected(identities: bytes) -> bytes:
    """An identity file that is protected by a passphrase, which the terminal or standard input gives."""
    from getpass import getpass

    from pyrage import DecryptError, passphrase

    asked = sys.stdin.isatty()
    given = getpass("Passphrase of the identity file: ") if asked else sys.stdin.readline().rstrip("\n")
    try:
        return passphrase.decrypt(identities, given)
    except DecryptError:
        raise BadInput("The passphrase does not open the identity file.") from None
