"""`frontdesk practice`: manages practices, and checks their scheduling systems."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from frontdesk.cli import practice_files
from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import FAILURE, answer, details, table, to_document

if TYPE_CHECKING:
    from frontdesk.store.practices import PracticeSummary
    from frontdesk.systems.check import SystemCheck


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "practice", "Practices: init, import, export, list, show, check, suspend, resume.")

    practice_files.add_commands(group)
    add_command(group, "list", _list, "Show every practice.")
    add_command(group, "show", _show, "Show one practice.", "slug")
    add_command(group, "suspend", _suspend, "Refuse every call to a practice, within seconds.", "slug")
    add_command(group, "resume", _resume, "Accept calls to a practice again.", "slug")
    command = add_command(
        group, "check", _check, "Connect to a practice's scheduling system and show what works.", "slug"
    )
    command.add_argument(
        "--write",
        action="store_true",
        help="also create a patient and book, move and cancel an appointment, as late as can be booked",
    )


def _list(args: argparse.Namespace) -> None:
    from frontdesk.store.practices import list_practices

    practices = with_database(lambda context: list_practices(context.database))
    rows = [
        (p.slug, p.name, p.time_zone, p.locations, p.providers, p.patients, p.clients, _state(p)) for p in practices
    ]
    headings = ("SLUG", "NAME", "TIME ZONE", "LOCATIONS", "PROVIDERS", "PATIENTS", "CLIENTS", "STATE")
    answer(args, [to_document(p) for p in practices], table(headings, rows, "There is no practice yet."))


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

        await context.practice_id(args.slug)
        if suspended is not None:
            operation = "command.suspend_practice" if suspended else "command.resume_practice"

            async def also(connection: Any, practice_id: int) -> None:
                await append_audit(connection, context.audit.entry(practice_id, operation))

            await set_suspended(context.database, args.slug, suspended=suspended, also=also)
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


def _state(practice: "PracticeSummary") -> str:
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
    return FAILURE if any(each.is_fault for each in findings) else 0
