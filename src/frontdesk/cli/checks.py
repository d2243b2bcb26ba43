"""`frontdesk practice check`: whether a practice's scheduling system works, part by part."""

import argparse
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from frontdesk.cli.commands import add_command
from frontdesk.cli.opening import Session, with_database
from frontdesk.cli.output import FAILURE, answer, table

if TYPE_CHECKING:
    from frontdesk.cli.commands import Commands
    from frontdesk.systems.fhir.check import Finding


def add_check_command(group: "Commands") -> None:
    summary = "Connect to a practice's scheduling system and show what works."
    add_command(group, "check", _check, summary).add_argument("slug", metavar="SLUG")


def _check(args: argparse.Namespace) -> int:
    from frontdesk.cli.practices import known_slug

    async def work(session: Session) -> "tuple[str, list[Finding]]":
        from frontdesk.store.directories import load_directory
        from frontdesk.store.practices import practice_id_of
        from frontdesk.systems.fhir.check import Finding, check
        from frontdesk.systems.fhir.upstream import Upstream

        practice_id = await practice_id_of(session.database, await known_slug(session, args.slug))
        assert practice_id is not None
        stored = await load_directory(session.database, practice_id)
        config = stored.directory.practice.scheduling_system
        if config["kind"] != "fhir":
            return config["kind"], [Finding("calendar", "works", "kept in this database")]
        upstream = Upstream(session.database, practice_id, config, os.environ)
        try:
            practice = await upstream.map(stored.version, stored.directory)
            return "fhir", [finding async for finding in check(upstream, practice, datetime.now(UTC))]
        finally:
            await upstream.close()

    kind, findings = with_database(work)
    document = {
        "practice": args.slug,
        "schedulingSystem": kind,
        "checks": [{"subject": each.subject, "state": each.state, "detail": each.detail} for each in findings],
    }
    rows = [(each.subject, each.state, each.detail) for each in findings]
    answer(args, document, table(("CHECK", "STATE", "DETAIL"), rows, ""))
    return FAILURE if any(each.is_fault for each in findings) else 0
