"""`frontdesk feed`: manages calendar feeds. An address is printed only once."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BadInput, answer, details, instant, table, to_document

if TYPE_CHECKING:
    from frontdesk.features.calendar_feeds.feeds import Feed

_NO_FEED = "There is no calendar feed yet. Add one: frontdesk feed add --practice SLUG --provider ID"


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "feed", "Calendar feeds of providers: add, list, revoke.")

    command = add_command(group, "add", _add, "Add a calendar feed; its secret address is shown only once.")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--provider", metavar="ID", type=int, required=True)
    command.add_argument("--with-names", action="store_true", help="include patient names; default: busy times only")

    command = add_command(group, "list", _list, "Show a practice's calendar feeds.")
    command.add_argument("--practice", metavar="SLUG", required=True)

    add_command(group, "revoke", _revoke, "Revoke a feed permanently.", "id")


def _add(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[Feed, str]":
        from frontdesk.features.calendar_feeds.actions import ADD_BY_COMMAND, ADD_WITH_NAMES
        from frontdesk.features.calendar_feeds.feeds import add_feed
        from frontdesk.store.directories import load_directory

        practice_id = await context.practice_id(args.practice)
        directory = (await load_directory(context.database, practice_id)).directory
        feed, path = await add_feed(
            context.database,
            practice_id,
            directory,
            args.provider,
            with_names=args.with_names,
            now=context.audit.now,
            recorder=context.audit.recorder((ADD_WITH_NAMES if args.with_names else ADD_BY_COMMAND).name),
        )
        return feed, context.settings.public_url + path

    with _bad_input():
        feed, url = with_database(work)
    text = details([("Feed", feed.feed_id), ("Address", url)])
    note = "Save the address now: it is not stored and cannot be shown again. Anyone who has it can read the calendar."
    answer(args, {**to_document(feed), "url": url}, f"{text}\n\n{note}")


def _list(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "list[Feed]":
        from frontdesk.features.calendar_feeds.feeds import list_feeds

        return await list_feeds(context.database, await context.practice_id(args.practice))

    feeds = with_database(work)
    rows = [(f.feed_id, f.provider_id, f.with_names, instant(f.created_at), _state(f)) for f in feeds]
    headings = ("FEED", "PROVIDER", "NAMES", "CREATED", "STATE")
    answer(args, [to_document(feed) for feed in feeds], table(headings, rows, _NO_FEED))


def _revoke(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "Feed":
        from frontdesk.features.calendar_feeds.actions import REVOKE_BY_COMMAND
        from frontdesk.features.calendar_feeds.feeds import revoke_feed

        recorder = context.audit.recorder(REVOKE_BY_COMMAND.name)
        return await revoke_feed(context.database, args.id, context.audit.now, recorder=recorder)

    with _bad_input():
        feed = with_database(work)
    answer(args, to_document(feed), f"The feed {feed.feed_id} was revoked.")


@contextmanager
def _bad_input() -> Iterator[None]:
    from frontdesk.features.calendar_feeds.feeds import FeedError

    try:
        yield
    except FeedError as error:
        raise BadInput(str(error)) from error


def _state(feed: "Feed") -> str:
    return "open" if feed.revoked_at is None else "revoked"
