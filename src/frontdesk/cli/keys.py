"""`frontdesk keys`: lists, rotates and re-encrypts the service's keys. Never prints a key."""

import argparse
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BadInput, answer, counted, instant, table, to_document

if TYPE_CHECKING:
    from frontdesk.access.keys.ring import KeyRecord


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "keys", "The service's keys: rotate, list, reencrypt.")

    command = add_command(
        group, "rotate", _rotate, "Rotate keys; tokens and ids made with old keys stay valid until they expire."
    )
    command.add_argument("--purpose", metavar="PURPOSE", help="only this purpose; default: every purpose")

    add_command(group, "list", _list, "Show every key that is kept.")
    add_command(
        group,
        "reencrypt",
        _reencrypt,
        "Encrypt every key with the first secret of FRONTDESK_SECRET_KEY, so that older secrets can be removed.",
    )


def _rotate(args: argparse.Namespace) -> None:
    from frontdesk.access.keys.ring import PURPOSES

    if args.purpose is not None and args.purpose not in PURPOSES:
        raise BadInput(f"There is no purpose {args.purpose!r}; choose one of {', '.join(PURPOSES)}.")

    async def work(context: CommandContext) -> "list[KeyRecord]":
        ring = await context.ring()
        made = [await ring.rotate(purpose) for purpose in PURPOSES if args.purpose in (None, purpose)]
        await context.record_everywhere("command.rotate_keys", *(key.purpose for key in made))
        return made

    _answer_keys(args, with_database(work))


def _list(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "list[KeyRecord]":
        return await (await context.ring()).list_keys()

    _answer_keys(args, with_database(work))


def _reencrypt(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> int:
        from frontdesk.outbound.webhooks.endpoints import reencrypt_secrets

        ring, cipher = await context.ring_and_cipher()
        count = await ring.reencrypt() + await reencrypt_secrets(context.database, cipher)
        await context.record_everywhere("command.reencrypt_keys")
        return count

    count = with_database(work)
    answer(args, {"reencrypted": count}, f"Re-encrypted {counted(count, 'key')}.")


def _answer_keys(args: argparse.Namespace, found: "list[KeyRecord]") -> None:
    rows = [(key.key_id, key.purpose, instant(key.created_at), instant(key.retired_at)) for key in found]
    text = table(("KEY", "PURPOSE", "CREATED", "REPLACED"), rows, "There is no key yet.")
    answer(args, [to_document(key) for key in found], text)
