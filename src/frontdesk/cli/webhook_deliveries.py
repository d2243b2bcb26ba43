"""`frontdesk webhook deliveries` and `replay`: lists deliveries and sends them again."""

import argparse
from collections.abc import Awaitable

from frontdesk.cli.commands import Commands, add_command, add_limit
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.events import event_number
from frontdesk.cli.output import BadInput, answer, instant, table, to_document


def add_delivery_commands(group: Commands) -> None:
    command = add_command(group, "deliveries", _deliveries, "Show the newest deliveries, or the attempts of one.", "id")
    command.add_argument("--state", metavar="STATE", help="only pending, delivered or dead deliveries")
    command.add_argument("--event", metavar="ID", help="list every attempt for this event")
    add_limit(command, "deliveries")

    command = add_command(group, "replay", _replay, "Redeliver every dead letter, or one event.", "id")
    command.add_argument("--event", metavar="ID", help="only this event, even if it was delivered")


def _deliveries(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.deliveries import STATES, list_deliveries

    if args.state not in (None, *STATES):
        raise BadInput(f"--state must be {', '.join(STATES[:-1])} or {STATES[-1]}.")
    if args.event is not None:
        _answer_attempts(args, event_number(args.event))
        return

    found = with_database(lambda context: list_deliveries(context.database, args.id, args.state, args.limit))
    rows = [
        (
            f"evt_{d.event_id}",
            d.type,
            instant(d.occurred_at),
            d.state,
            d.attempts,
            *((None, None, None) if d.last is None else (d.last.status, d.last.milliseconds, d.last.failure)),
            instant(d.due_at),
        )
        for d in found
    ]
    headings = ("EVENT", "TYPE", "TIME", "STATE", "ATTEMPTS", "STATUS", "MS", "FAILURE", "NEXT")
    documents = [
        {**to_document(d, due_at="nextAttemptAt", last="lastAttempt"), "eventId": f"evt_{d.event_id}"} for d in found
    ]
    answer(args, documents, table(headings, rows, "There is no such delivery."))


def _answer_attempts(args: argparse.Namespace, event_id: int) -> None:
    from frontdesk.outbound.webhooks.deliveries import list_attempts

    found = with_database(lambda context: list_attempts(context.database, args.id, event_id))
    rows = [(instant(a.at), a.status, a.milliseconds, a.failure) for a in found]
    empty = "There was no attempt to deliver this event."
    answer(args, [to_document(a) for a in found], table(("TIME", "STATUS", "MS", "FAILURE"), rows, empty))


def _replay(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.deliveries import replay

    event_id = None if args.event is None else event_number(args.event)

    def work(context: CommandContext) -> Awaitable[list[int]]:
        recorder = context.audit.recorder("console.replay_webhook")
        return replay(context.database, args.id, event_id, context.audit.now, recorder=recorder)

    numbers = with_database(work)
    replayed = [f"evt_{number}" for number in numbers]
    answer(args, {"replayed": replayed}, f"Queued for redelivery: {' '.join(replayed) or 'nothing'}.")
