"""`frontdesk events`: prints the event feed of a practice."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BadInput, to_json

if TYPE_CHECKING:
    from frontdesk.outbound.webhooks.events import Event

_MAX_SHOWN = 20
_PAGE = 500
_POLL_SECONDS = 1.0
# An id is assigned up to ten seconds before its event commits; after that nothing appears below it.
_SETTLED_SECONDS = 15.0
_MAX_EVENT_ID = 2**63 - 1


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "events", "The event feed of a practice: tail.")
    command = add_command(
        group, "tail", _tail, "Show the latest events, one a line; with --json, each line is a JSON document."
    )
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--since", metavar="ID", help="start after this event, such as evt_42")
    command.add_argument("--follow", action="store_true", help="keep printing events as they happen")


def _tail(args: argparse.Namespace) -> None:
    since = None if args.since is None else event_number(args.since)

    def show(event: "Event") -> None:
        from frontdesk.outbound.webhooks.events import event_document, event_name

        name, sent = event_name(event.event_id), event_document(event)
        document = {"id": name, **sent}
        ids = " ".join(str(value) for value in sent["data"].values())
        line = f"{sent['timestamp']}  {name}  {sent['type']}  {ids}".rstrip()
        print(to_json(document, indent=None) if args.json else line, flush=args.follow)

    async def work(context: CommandContext) -> None:
        from frontdesk.audit.trail import append_disclosure
        from frontdesk.outbound.webhooks.events import event_subjects, events_after, newest_events

        practice_id = await context.practice_id(args.practice)

        async def show_all(events: Sequence["Event"]) -> None:
            """Records the patients and appointments of the events, then prints them."""
            if not events:
                return
            ids = dict.fromkeys(each for event in events for each in event_subjects(event))
            entry = context.audit.entry(practice_id, "command.read_events", list(ids))
            async with context.database.transaction(practice_id) as connection:
                await append_disclosure(connection, entry)
            for event in events:
                show(event)

        async def after(event_id: int) -> list["Event"]:
            return await events_after(context.database, practice_id, event_id, _PAGE)

        floor = since or 0
        known: list[int] = []
        events = await newest_events(context.database, practice_id, _PAGE) if since is None else await after(since)
        shown = events[-_MAX_SHOWN:] if since is None else events
        while events:
            await show_all(shown)
            known = [*known, *(event.event_id for event in events)]
            if len(known) >= _PAGE:  # one page covers every late commit
                known = known[-_PAGE:]
                floor = known[0] - 1
            events = shown = await after(known[-1])
        if args.follow:
            await _follow(after, floor, known, show_all)

    with_database(work)


async def _follow(
    after: Callable[[int], Awaitable[list["Event"]]],
    floor: int,
    known: Sequence[int],
    show_all: Callable[[Sequence["Event"]], Awaitable[None]],
) -> None:
    """Print new events. Recent ids are read again, because events may commit in a different order than their ids."""
    import asyncio
    import time

    recent = dict.fromkeys(known, time.monotonic())
    while True:
        await asyncio.sleep(_POLL_SECONDS)
        now = time.monotonic()
        place = floor
        while events := await after(place):
            new = [event for event in events if event.event_id not in recent]
            await show_all(new)
            recent |= {event.event_id: now for event in new}
            place = events[-1].event_id
        old = [event_id for event_id, seen in recent.items() if seen < now - _SETTLED_SECONDS]
        floor = max(old, default=floor)
        recent = {event_id: seen for event_id, seen in recent.items() if event_id > floor}


def event_number(text: str) -> int:
    """The number of an event id, given as evt_42 or 42."""
    digits = text.removeprefix("evt_")
    if not (digits.isascii() and digits.isdigit() and int(digits) <= _MAX_EVENT_ID):
        raise BadInput(f"{text!r} is not an event id: one looks like evt_42.")
    return int(digits)
