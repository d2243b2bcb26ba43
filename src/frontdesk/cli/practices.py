"""`frontdesk practice`: manages practices, and checks their scheduling systems."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from frontdesk.cli import practice_files
from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.confirming import add_yes, confirm
from frontdesk.cli.connection import (
    CommandContext,
    explain_database_errors,
    owner_dsn,
    with_database,
)
from frontdesk.cli.output import FAILURE, NO_PRACTICE, BadInput, answer, counted, details, instant, table, to_document

if TYPE_CHECKING:
    from frontdesk.store.connection import Connection
    from frontdesk.store.practices import InTransaction, PracticeSummary
    from frontdesk.systems.check import SystemCheck

_SUSPENDED_EVERYWHERE_SECONDS = 10.0  # nodes that missed the notification know after five, and calls in flight end


def add_commands(commands: Commands) -> None:
    group = add_group(
        commands, "practice", "Practices: init, import, export, list, show, check, suspend, resume, remove."
    )

    practice_files.add_commands(group)
    add_command(group, "list", _list, "Show every practice.")
    add_command(group, "show", _show, "Show one practice.", "slug")
    add_command(group, "suspend", _suspend, "Refuse every call to a practice, within seconds.", "slug")
    add_command(group, "resume", _resume, "Accept calls to a practice again.", "slug")
    command = add_command(group, "remove", _remove, "Delete a practice; its audit trail is kept.", "slug")
    command.add_argument(
        "--force", action="store_true", help="even with future appointments; patients are not notified"
    )
    add_yes(command)
    command = add_command(
        group, "check", _check, "Connect to a practice's scheduling system and show what works.", "slug"
    )
    command.add_argument(
        "--write",
        action="store_true",
        help="also create a patient and book, move and cancel an appointment, at the latest time that is open",
    )


def _list(args: argparse.Namespace) -> None:
    from frontdesk.store.practices import list_practices

    practices = with_database(lambda context: list_practices(context.database))
    rows = [
        (p.slug, p.name, p.time_zone, p.locations, p.providers, p.patients, p.clients, _state(p)) for p in practices
    ]
    headings = ("SLUG", "NAME", "TIME ZONE", "LOCATIONS", "PROVIDERS", "PATIENTS", "CLIENTS", "STATE")
    answer(args, [to_document(p) for p in practices], table(headings, rows, NO_PRACTICE))


def _show(args: argparse.Namespace) -> None:
    _answer_one(args)


def _suspend(args: argparse.Namespace) -> None:
    _answer_one(args, suspended=True)


def _resume(args: argparse.Namespace) -> None:
    _answer_one(args, suspended=False)


def _answer_one(args: argparse.Namespace, *, suspended: bool | None = None) -> None:
    """Show the practice, after suspending or resuming it if that was asked for."""

    async def work(context: CommandContext) -> "PracticeSummary":
        from frontdesk.audit.trail import append_audit
        from frontdesk.store.practices import list_practices, set_suspended

        await context.practice_id(args.slug, also_removed=suspended is None)
        if suspended is not None:
            operation = "command.suspend_practice" if suspended else "command.resume_practice"

            async def record(connection: "Connection", practice_id: int) -> None:
                await append_audit(connection, context.audit.entry(practice_id, operation))

            await set_suspended(context.database, args.slug, suspended=suspended, in_transaction=record)
        return (await list_practices(context.database, args.slug))[0]

    practice = with_database(work)
    facts = [
        ("Practice", practice.slug),
        ("Name", practice.name),
        ("Time zone", practice.time_zone),
        ("Scheduling system", practice.scheduling_system),
        ("Sandbox", practice.sandbox),
        ("State", _state(practice)),
        ("Locations", practice.locations),
        ("Providers", practice.providers),
        ("Patients", practice.patients),
        ("Clients", practice.clients),
    ]
    answer(args, to_document(practice), details(facts))


def _remove(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> str:
        from frontdesk.store.practices import list_practices

        practice_id = await context.practice_id(args.slug)
        (practice,) = await list_practices(context.database, args.slug)
        if not args.force:
            await _check_no_upcoming_appointments(context, practice)
        confirm(
            args,
            f"Practice {practice.slug} ({practice.name}): {counted(practice.patients, 'patient')}, all appointments, "
            f"{counted(practice.clients, 'client')}, staff, webhooks and the directory are deleted and cannot be "
            "brought back. The audit trail is kept.",
            practice.slug,
        )
        return await _removed(context, practice, practice_id)

    kept_as = with_database(work)
    text = f"Removed {args.slug}. Its audit trail is kept: frontdesk audit export --practice {kept_as}"
    answer(args, {"practice": args.slug, "removed": True, "auditTrail": kept_as}, text)


async def _check_no_upcoming_appointments(context: CommandContext, practice: "PracticeSummary") -> None:
    from frontdesk.systems.native.upcoming import upcoming_appointments

    async with context.database.transaction(practice.practice_id) as connection:
        ahead = await upcoming_appointments(connection, practice.practice_id, context.audit.now)
    if ahead:
        raise BadInput(
            f"{practice.slug} has {counted(len(ahead), 'future appointment')}, the next one at "
            f"{instant(ahead[0].starts_at)}: cancel them first, or give --force to delete them."
        )


async def _removed(context: CommandContext, practice: "PracticeSummary", practice_id: int) -> str:
    import asyncio

    from frontdesk.audit.trail import append_audit, seal
    from frontdesk.store.database import session_settings
    from frontdesk.store.hosts import Hosts
    from frontdesk.store.practices import remove_practice, set_suspended

    def recorder(operation: str) -> "InTransaction":
        async def record(connection: "Connection", practice_id: int) -> None:
            await append_audit(connection, context.audit.entry(practice_id, operation))

        return record

    if not practice.suspended:
        suspension = recorder("command.suspend_practice")
        await set_suspended(context.database, practice.slug, suspended=True, in_transaction=suspension)
    try:
        await asyncio.sleep(_SUSPENDED_EVERYWHERE_SECONDS)  # also when it was suspended, which may have been just now
        with explain_database_errors(context.settings, owner=True):
            owner = await Hosts(owner_dsn(context.settings)).connect(
                server_settings=session_settings(role=None), timeout=10
            )
            try:
                kept_as = await remove_practice(owner, practice_id, recorder("command.remove_practice"))
            finally:
                await owner.close()
    except BaseException:  # Ctrl-C and SIGTERM, too
        print(
            f"{practice.slug} is suspended, and its removal did not finish: run the command again, or "
            f"frontdesk practice resume {practice.slug}.",
            file=sys.stderr,
        )
        raise
    await seal(context.database, practice_id)
    return kept_as


def _state(practice: "PracticeSummary") -> str:
    if practice.removed:
        return "removed"
    return "suspended" if practice.suspended else "active"


def _check(args: argparse.Namespace) -> int:
    async def work(context: CommandContext) -> "SystemCheck":
        from frontdesk.operations import NEEDS
        from frontdesk.systems.check import check_system

        practice_id = await context.practice_id(args.slug)
        return await check_system(context.database, practice_id, NEEDS, os.environ, context.audit.now, write=args.write)

    checked = with_database(work)
    findings = checked.findings
    document = {
        "practice": args.slug,
        "schedulingSystem": checked.kind,
        "checks": [to_document(each) for each in findings],
    }
    rows = [(each.subject, each.state, each.detail) for each in findings]
    answer(args, document, table(("CHECK", "STATE", "DETAIL"), rows, ""))
    return FAILURE if any(each.is_error for each in findings) else 0
