"""`frontdesk practice check`: whether a practice's scheduling system works, part by part."""

import argparse
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from frontdesk.cli.commands import add_command
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.known_practices import known_practice
from frontdesk.cli.output import FAILURE, answer, table

if TYPE_CHECKING:
    from frontdesk.cli.commands import Commands
    from frontdesk.systems.check import SystemCheck


def add_check_command(group: "Commands") -> None:
    summary = "Connect to a practice's scheduling system and show what works."
    add_command(group, "check", _check, summary).add_argument("slug", metavar="SLUG")


def _check(args: argparse.Namespace) -> int:
    async def work(context: CommandContext) -> "SystemCheck":
        from frontdesk.operations import NEEDS
        from frontdesk.systems.check import check_system

        practice_id = await known_practice(context, args.slug)
        return await check_system(context.database, practice_id, NEEDS, os.environ, datetime.now(UTC))

    checked = with_database(work)
    findings = checked.findings
    document = {
        "practice": args.slug,
        "schedulingSystem": checked.kind,
        "checks": [{"subject": each.subject, "state": each.state, "detail": each.detail} for each in findings],
    }
    rows = [(each.subject, each.state, each.detail) for each in findings]
    answer(args, document, table(("CHECK", "STATE", "DETAIL"), rows, ""))
    return FAILURE if any(each.is_fault for each in findings) else 0
