"""`frontdesk audit receipt` and `frontdesk audit verify-receipt`."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from frontdesk.cli.commands import Commands, add_command, group_named
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BadInput, CommandError, answer, details
from frontdesk.cli.output_files import new_file

_RECORD = re.compile(r"(?:rcp_)?([1-9][0-9]{0,17})\Z", re.ASCII)


def add_commands(commands: Commands) -> None:
    group = group_named(commands, "audit")

    command = add_command(group, "receipt", _receipt, "Issue the signed receipt of a write that was agreed to.")
    command.add_argument("record", metavar="RECORD", nargs="?", help="the recordId of frontdesk audit list --json")
    command.add_argument("--request-id", metavar="ID", help="of the call that executed the write, instead of RECORD")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--output", metavar="FILE", type=Path, help="a new file for the receipt")

    command = add_command(
        group, "verify-receipt", _verify, "Verify a receipt with published keys; needs no database.", "file"
    )
    command.add_argument(
        "--keys", metavar="FILE", type=Path, required=True, help="a copy of /.well-known/jwks.json of the service"
    )


def _receipt(args: argparse.Namespace) -> None:
    if (args.record is None) == (args.request_id is None):
        raise BadInput("Name the RECORD or its --request-id.")
    numbered = None if args.record is None else _RECORD.match(args.record)
    if args.record is not None and numbered is None:
        raise BadInput("RECORD is a number: the recordId of frontdesk audit list --json.")
    record_id = None if numbered is None else int(numbered[1])

    def issued() -> str:
        return with_database(lambda context: _issued(context, args.practice, record_id, args.request_id))

    if args.output is None:
        text = issued()
        answer(args, {"receipt": text}, text)
    else:
        with new_file(args.output, 0o600) as file:  # first: what cannot be written is not issued
            file.write(issued().encode() + b"\n")
        answer(args, {"file": str(args.output)}, f"Wrote the receipt to {args.output}.")


async def _issued(context: CommandContext, slug: str, record_id: int | None, request_id: str | None) -> str:
    from frontdesk.audit.agreements import agreed_in_request, agreed_write
    from frontdesk.audit.heads import AuditHeads
    from frontdesk.audit.trail import AuditTrail, append_audit
    from frontdesk.domain.errors import Problem
    from frontdesk.features.receipts.actions import ISSUE
    from frontdesk.features.receipts.receipts import Receipts

    database, settings = context.database, context.settings
    practice_id = await context.practice_id(slug)
    if record_id is None:
        found = await agreed_in_request(database, practice_id, request_id or "")
        if len(found) > 1:
            records = ", ".join(map(str, found))
            raise BadInput(f"Several writes have this request id: name one of the records {records}.")
        record_id = found[0] if found else 0
    write = await agreed_write(database, practice_id, record_id)
    if write is None:
        raise BadInput("There is no such record of a write that was agreed to after a read-back.")
    ring, now = await context.ring(), context.audit.now
    heads = AuditHeads(database, AuditTrail(database), ring, lambda: now, settings.audit_heads_file)
    try:
        text = await Receipts(database, ring, heads, settings.public_url, lambda: now).issue(practice_id, record_id)
    except Problem as problem:
        raise CommandError(problem.detail) from None
    async with database.transaction(practice_id) as connection:
        await append_audit(connection, context.audit.entry(practice_id, ISSUE.name, write.subject_ids))
    return text


def _verify(args: argparse.Namespace) -> None:
    from frontdesk.features.receipts.verifying import InvalidReceipt, verify_receipt

    try:
        key_set = json.loads(args.keys.read_bytes())
        if not isinstance(key_set, dict) or not isinstance(key_set.get("keys"), list):
            raise ValueError
    except (ValueError, RecursionError):
        raise BadInput(f"{args.keys} is no set of keys (JWKS).") from None
    try:
        stated = verify_receipt(Path(args.file).read_text(encoding="ascii").strip(), key_set)
    except UnicodeDecodeError:
        raise CommandError("This is not a receipt.") from None
    except InvalidReceipt as error:
        raise CommandError(str(error)) from None
    answer(args, {"valid": True, "states": stated}, details(_facts(stated)))


def _facts(stated: dict[str, Any]) -> list[tuple[str, object]]:
    record, asked_by, consent = stated["record"], stated["askedBy"], stated["consent"]
    covered = "only by this receipt: the signed head is too far away" if stated["links"] is None else "by the head"
    return [
        ("Receipt", "valid"),
        ("Issued by", stated["iss"]),
        ("Practice", stated["practiceName"]),
        ("Asked by", f"{asked_by['name']} ({asked_by['clientId']})"),
        *([("Connected by", asked_by["connectedBy"])] if "connectedBy" in asked_by else []),
        ("Operation", f"{record['operation']}, {record['outcome']}"),
        ("Read back at", json.loads(stated["challenge"]["text"])["at"]),
        ("Executed at", record["at"]),
        ("About", " ".join(record["subjectIds"])),
        *((f"  {name}", value) for name, value in stated["readBack"].items()),
        ("Consent", f"{consent['kind']}, reported by the {consent['reportedBy']}"),
        ("Proves", consent["proves"]),
        ("In the trail", f"record {record['recordId']}, sequence {record['sequence']}, covered {covered}"),
        ("Head", f"sequence {stated['head']['sequence']}, signed at {stated['head']['signedAt']}"),
    ]
