"""`frontdesk webhook`: manages webhook endpoints. A secret is printed only once."""

import argparse
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import FAILURE, answer, details, instant, table
from frontdesk.cli.webhook_deliveries import add_delivery_commands

if TYPE_CHECKING:
    from frontdesk.outbound.webhooks.endpoints import Endpoint
    from frontdesk.outbound.webhooks.sender import Sent

_ALLOW_PRIVATE = (
    "FRONTDESK_WEBHOOK_ALLOW_PRIVATE=true allows plain http and private addresses; set it for the service, too."
)
_NO_ENDPOINT = "There is no endpoint yet. Add one: frontdesk webhook add --practice SLUG --url URL"


def add_commands(commands: Commands) -> None:
    group = add_group(
        commands,
        "webhook",
        "Webhooks: add, list, show, test, pause, resume, remove, rotate-secret, deliveries, replay.",
    )

    command = add_command(group, "add", _add, "Add an endpoint; its secret is shown only once.")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--url", metavar="URL", required=True)
    command.add_argument("--event", metavar="TYPE", action="append", help="repeatable; default: every event")

    command = add_command(group, "list", _list, "Show every endpoint.")
    command.add_argument("--practice", metavar="SLUG", help="only this practice")

    add_command(group, "show", _show, "Show one endpoint.", "id")
    add_command(group, "test", _test, "Send a signed test message immediately, bypassing the queue.", "id")
    add_command(group, "pause", _pause, "Pause deliveries; events are kept.", "id")
    add_command(group, "resume", _resume, "Resume deliveries, queued events first.", "id")
    add_command(group, "remove", _remove, "Delete an endpoint and its deliveries.", "id")

    command = add_command(
        group, "rotate-secret", _rotate_secret, "Give an endpoint a new secret, shown only once.", "id"
    )
    command.add_argument(
        "--at-once", action="store_true", help="stop signing with the old secret immediately instead of after a day"
    )

    add_delivery_commands(group)


def _add(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[Endpoint, str]":
        from frontdesk.outbound.targets import TargetError, parse_target
        from frontdesk.outbound.webhooks.endpoints import add_endpoint
        from frontdesk.outbound.webhooks.sender import Sender

        practice_id = await context.practice_id(args.practice)
        sender = Sender(allow_private=context.settings.webhook_allow_private)
        try:
            await sender.check(args.url)
        except TargetError as error:
            parse_target(args.url, allow_private=True)  # raises what the setting would not change
            raise TargetError(f"{error} {_ALLOW_PRIVATE}") from None
        finally:
            await sender.close()
        return await add_endpoint(
            context.database,
            await context.cipher(),
            practice_id,
            args.url,
            args.event or (),
            context.audit.now,
            recorder=context.audit.recorder("command.add_webhook"),
        )

    _answer_secret(args, *with_database(work))


def _list(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "list[Endpoint]":
        from frontdesk.outbound.webhooks.endpoints import list_endpoints

        practice_id = None if args.practice is None else await context.practice_id(args.practice)
        return await list_endpoints(context.database, practice_id)

    found = with_database(work)
    rows = [
        (e.endpoint_id, e.practice_slug, e.url, " ".join(e.events) or "all", e.pending, e.dead, _state(e))
        for e in found
    ]
    headings = ("ENDPOINT", "PRACTICE", "URL", "EVENTS", "PENDING", "DEAD", "STATE")
    answer(args, [_document(endpoint) for endpoint in found], table(headings, rows, _NO_ENDPOINT))


def _show(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.endpoints import show_endpoint

    _answer_one(args, with_database(lambda context: show_endpoint(context.database, args.id)))


def _test(args: argparse.Namespace) -> int:
    async def work(context: CommandContext) -> "Sent":
        from frontdesk.outbound.webhooks.endpoints import live_secrets, show_endpoint
        from frontdesk.outbound.webhooks.sender import Sender, send_test

        endpoint = await show_endpoint(context.database, args.id)
        now = context.audit.now
        keys = await live_secrets(context.database, await context.cipher(), endpoint, now)
        sender = Sender(allow_private=context.settings.webhook_allow_private)
        try:
            return await send_test(sender, endpoint.url, keys, now, public_only=endpoint.public_only)
        finally:
            await sender.close()

    sent = with_database(work)
    document = {"delivered": sent.failure is None, "status": sent.status, "milliseconds": sent.milliseconds}
    text = f"Received: status {sent.status} after {sent.milliseconds} ms."
    if sent.failure is not None:
        status = "" if sent.status is None else f", status {sent.status}"
        text = f"Not received: {sent.failure}{status}, after {sent.milliseconds} ms."
    answer(args, {**document, "failure": sent.failure}, text)
    return 0 if sent.failure is None else FAILURE


def _pause(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.endpoints import pause_endpoint

    _change(args, "console.pause_webhook", pause_endpoint)


def _resume(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.endpoints import resume_endpoint

    _change(args, "console.resume_webhook", resume_endpoint)


def _change(args: argparse.Namespace, operation: str, change: "Callable[..., Awaitable[Endpoint]]") -> None:
    def work(context: CommandContext) -> "Awaitable[Endpoint]":
        return change(context.database, args.id, context.audit.now, recorder=context.audit.recorder(operation))

    _answer_one(args, with_database(work))


def _remove(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.endpoints import remove_endpoint

    operation = "command.remove_webhook"
    with_database(
        lambda context: remove_endpoint(context.database, args.id, recorder=context.audit.recorder(operation))
    )
    answer(args, {"removed": args.id}, f"The endpoint {args.id} was removed.")


def _rotate_secret(args: argparse.Namespace) -> None:
    from frontdesk.outbound.webhooks.endpoints import DEFAULT_RETIREMENT, rotate_secret

    retirement = timedelta(0) if args.at_once else DEFAULT_RETIREMENT

    async def work(context: CommandContext) -> "tuple[Endpoint, str]":
        return await rotate_secret(
            context.database,
            await context.cipher(),
            args.id,
            context.audit.now,
            retire_old_after=retirement,
            recorder=context.audit.recorder("command.rotate_webhook_secret"),
        )

    _answer_secret(args, *with_database(work))


def _answer_secret(args: argparse.Namespace, endpoint: "Endpoint", secret: str) -> None:
    text = details([("Endpoint", endpoint.endpoint_id), ("Signing secret", secret)])
    note = "Keep the secret now: it cannot be shown again."
    if endpoint.old_secret_until is not None:
        note += f"\nMessages are also signed with the previous secret until {instant(endpoint.old_secret_until)}."
    answer(args, {**_document(endpoint), "secret": secret}, f"{text}\n\n{note}")


def _answer_one(args: argparse.Namespace, endpoint: "Endpoint") -> None:
    facts: list[tuple[str, object]] = [
        ("Endpoint", endpoint.endpoint_id),
        ("Practice", endpoint.practice_slug),
        ("URL", endpoint.url),
        ("Events", " ".join(endpoint.events) or "all"),
        ("State", _state(endpoint)),
        ("Failing since", instant(endpoint.failing_since)),
        ("Pending", endpoint.pending),
        ("Dead letters", endpoint.dead),
        ("Created", instant(endpoint.created_at)),
    ]
    answer(args, _document(endpoint), details(facts))


def _state(endpoint: "Endpoint") -> str:
    if endpoint.paused_at is not None:
        return f"paused ({endpoint.pause_reason}) since {instant(endpoint.paused_at)}"
    return "active" if endpoint.failing_since is None else "failing"


def _document(endpoint: "Endpoint") -> dict[str, object]:
    return {
        "endpointId": endpoint.endpoint_id,
        "practice": endpoint.practice_slug,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "pausedAt": instant(endpoint.paused_at),
        "pauseReason": endpoint.pause_reason,
        "failingSince": instant(endpoint.failing_since),
        "pending": endpoint.pending,
        "deadLetters": endpoint.dead,
        "createdAt": instant(endpoint.created_at),
        "oldSecretUntil": instant(endpoint.old_secret_until),
    }
