"""`frontdesk audit`: lists, verifies and exports the audit trail."""

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group, add_limit
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.kept_heads import kept_heads
from frontdesk.cli.output import FAILURE, NO_PRACTICE, answer, instant, table
from frontdesk.domain.consent import REPORTED_BY_HOST

if TYPE_CHECKING:
    from asyncpg import Record

    from frontdesk.audit.verify import ChainReport


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "audit", "The audit trail: list, verify, export.")

    command = add_command(group, "list", _list, "Show the newest records.")
    _add_practice(command)
    command.add_argument("--client", metavar="ID", help="only actions of this client")
    command.add_argument("--operation", metavar="NAME", help="only this operation, such as book_appointment")
    command.add_argument("--subject", metavar="ID", help="only records about this patient or appointment")
    command.add_argument(
        "--request",
        metavar="ID",
        help="only records of this request id, which callers may choose: it is said if several actors have used it",
    )
    add_limit(command, "records")

    command = add_command(group, "verify", _verify, "Check that no record was changed, removed or reordered.")
    _add_practice(command)
    command.add_argument(
        "--head",
        metavar="[SLUG:]SEQUENCE:HASH",
        action="append",
        default=[],
        help="a head kept elsewhere, which the trail must contain; repeatable",
    )
    command.add_argument(
        "--heads",
        metavar="FILE",
        type=Path,
        help="heads kept elsewhere: a file of FRONTDESK_AUDIT_HEADS_FILE, or a log of the service",
    )

    command = add_command(
        group,
        "export",
        _export,
        "Write every sealed record as one JSON line, in the order of the chain; the last one is about this export. A "
        "record's hash is the SHA-256 of the "
        "previous record's hash followed by the SHA-256 of practiceId, recordId, microseconds since 1970, actor, "
        "operation, outcome, subjectIds joined by commas, requestId and, if there are any, consent and challenge, each "
        "written as its length in bytes, a colon and the text.",
    )
    _add_practice(command)


def _add_practice(command: argparse.ArgumentParser) -> None:
    command.add_argument("--practice", metavar="SLUG", help="only this practice")


async def _practices(context: CommandContext, slug: str | None) -> list[tuple[str, int]]:
    """Slugs and ids: row-level security lets a query read one practice at a time."""
    from frontdesk.store.practices import practice_ids

    if slug is not None:
        return [(slug, await context.practice_id(slug, also_removed=True))]
    return list((await practice_ids(context.database)).items())


def _list(args: argparse.Namespace) -> None:
    from frontdesk.audit.reading import AuditFilter, actors_of_request, exact_time, find_records, record_document

    async def work(context: CommandContext) -> "tuple[list[tuple[str, Record]], set[str]]":
        wanted = AuditFilter(args.client, args.operation, args.subject, request=args.request)
        found, actors = [], set[str]()
        for slug, practice_id in await _practices(context, args.practice):
            newest = await find_records(context.database, practice_id, wanted, args.limit)
            found += [(slug, row) for row in newest.records]
            if args.request is not None:
                actors |= await actors_of_request(context.database, practice_id, args.request)
        found.sort(key=lambda item: item[1]["at"], reverse=True)
        return found[: args.limit], actors

    found, actors = with_database(work)
    rows = [
        (
            r["record_id"],
            exact_time(r["at"]),
            slug,
            r["actor"],
            r["operation"],
            r["outcome"],
            " ".join(map(str, r["subject_ids"])),  # tampering may leave NULL
            r["request_id"],
            f"{r['consent']} (reported by the host)" if r["consent"] in REPORTED_BY_HOST else r["consent"] or "",
        )
        for slug, r in found
    ]
    headings = ("RECORD", "TIME", "PRACTICE", "ACTOR", "OPERATION", "OUTCOME", "SUBJECTS", "REQUEST", "CONSENT")
    answer(args, [record_document(slug, r) for slug, r in found], table(headings, rows, "There is no such record."))
    if len(actors) > 1:
        print(f"Several actors have used this request id: {', '.join(sorted(actors))}.", file=sys.stderr)


def _verify(args: argparse.Namespace) -> int:
    async def work(context: CommandContext) -> "list[tuple[str, ChainReport]]":
        from frontdesk.audit.verify import verify_chain

        practices = await _practices(context, args.practice)
        kept = kept_heads(args.head, args.heads, [slug for slug, _ in practices], args.practice)
        keys = await context.present_ring()
        now = datetime.now(UTC)
        return [
            (slug, await verify_chain(context.database, practice_id, now, keys=keys, kept=kept[slug]))
            for slug, practice_id in practices
        ]

    reports = with_database(work)
    whole = not any(report.violations for _, report in reports)
    document = {"whole": whole, "practices": [{"practice": slug, **report.document()} for slug, report in reports]}
    rows = [
        (
            slug,
            report.sequence,
            report.signed and report.signed.last_sequence,
            report.signed and instant(report.signed.first_signed_at),
            report.hash.hex() or None,
            "broken" if report.violations else "whole",
        )
        for slug, report in reports
    ]
    headings = ("PRACTICE", "SEALED", "SIGNED", "SIGNED SINCE", "HEAD", "TRAIL")
    answer(args, document, table(headings, rows, NO_PRACTICE))
    for slug, report in reports:
        for violation in report.violations:
            print(f"{slug}: {violation.message}", file=sys.stderr)
    if any(report.signed and not report.signed.checked for _, report in reports):
        print("There is no secret key here: signatures were not checked.", file=sys.stderr)
    return 0 if whole else FAILURE


def _export(args: argparse.Namespace) -> None:
    async def lines(context: CommandContext, practices: Sequence[tuple[str, int]]) -> AsyncIterator[str]:
        from frontdesk.audit.reading import exported_lines
        from frontdesk.audit.trail import append_audit

        for slug, practice_id in practices:
            async with context.database.transaction(practice_id) as connection:
                await append_audit(connection, context.audit.entry(practice_id, "console.export_audit"))
            async for line in exported_lines(context.database, slug, practice_id):
                yield line

    async def work(context: CommandContext) -> None:
        practices = await _practices(context, args.practice)
        before, between, after = ("[\n", ",\n", "\n]\n") if args.json else ("", "\n", "\n")
        sys.stdout.write(before)
        first = True
        async for line in lines(context, practices):
            sys.stdout.write(line if first else between + line)
            first = False
        sys.stdout.write(after if args.json or not first else "")

    with_database(work)
