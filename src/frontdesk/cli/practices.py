"""`frontdesk practice`: manages practices, their files and the check of their scheduling systems."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BAD_INPUT, FAILURE, BadInput, answer, counted, details, table, to_document, to_json
from frontdesk.privileges import as_caller

if TYPE_CHECKING:
    from frontdesk.practice_file import PracticeFile
    from frontdesk.store.practices import PracticeSummary
    from frontdesk.systems.check import SystemCheck


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "practice", "Practices: init, import, export, list, show, check, suspend, resume.")

    command = add_command(group, "init", _init, "Write a commented practice file to start from.")
    command.add_argument("file", metavar="FILE", type=Path, help="a new file, such as practice.yaml")

    command = add_command(group, "import", _import, "Create or update a practice from a file, all of it or nothing.")
    command.add_argument("file", metavar="FILE", help="YAML or JSON; - reads standard input")
    command.add_argument("--prune", action="store_true", help="deactivate what the file no longer lists")

    command = add_command(group, "export", _export, "Write a practice in the format that import reads.", "slug")
    command.add_argument("--with-patients", action="store_true", help="patients too; keep the file safe")
    command.add_argument("--output", metavar="FILE", type=Path, help="write to a file that only you can read")

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


def _init(args: argparse.Namespace) -> None:
    from importlib.resources import files

    text = (files("frontdesk.practice_file") / "new_practice.yaml").read_text(encoding="utf-8")
    try:
        with as_caller(), args.file.open("x", encoding="utf-8") as output:
            output.write(text)
    except OSError as error:
        raise BadInput(f"{args.file} cannot be written: {error.strerror}.") from None
    told = f"Wrote {args.file}. Edit it, then run: frontdesk practice import {args.file}"
    answer(args, {"file": str(args.file)}, told)


def _import(args: argparse.Namespace) -> int | None:
    from frontdesk.practice_file import PracticeFileError

    try:
        file = _imported(args)
    except PracticeFileError as error:
        faults = [{"path": fault.path, "message": fault.message} for fault in error.faults]
        if args.json:
            print(to_json({"faults": faults}))
        print(error, file=sys.stderr)
        return BAD_INPUT
    directory = file.directory
    counts = {
        "locations": len(directory.locations),
        "providers": len(directory.providers),
        "visitTypes": len(directory.visit_types),
        "patients": len(file.patients),
    }
    text = (
        f"Imported {directory.practice.slug}: {counted(counts['locations'], 'location')}, "
        f"{counted(counts['providers'], 'provider')}, {counted(counts['visitTypes'], 'visit type')}, "
        f"{counted(counts['patients'], 'patient')}."
    )
    answer(args, {"practice": directory.practice.slug, **counts}, text)
    return None


def _imported(args: argparse.Namespace) -> "PracticeFile":
    from frontdesk.audit.trail import append_audit
    from frontdesk.store.practice_import import checked_file
    from frontdesk.store.practices import import_practice

    text = _read(args.file)

    async def work(context: CommandContext) -> "PracticeFile":
        now = context.audit.now

        async def also(connection: Any, practice_id: int) -> None:
            await append_audit(connection, context.audit.entry(practice_id, "console.import_practice_file"))

        file = await checked_file(context.database, text, now, prune=args.prune)
        await import_practice(context.database, file, now, prune=args.prune, also=also)
        return file

    return with_database(work, creates=True)


def _read(name: str) -> str:
    from frontdesk.practice_file import Fault, PracticeFileError
    from frontdesk.practice_file.reading import MAX_BYTES

    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with as_caller(), Path(name).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        return data.decode()
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise PracticeFileError([Fault("$", "the file is not UTF-8 text")]) from None


def _export(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "PracticeFile":
        from frontdesk.audit.trail import append_disclosure
        from frontdesk.store.practices import export_practice, stored_patient_ids

        practice_id = await context.practice_id(args.slug)
        file = await export_practice(context.database, args.slug, with_patients=args.with_patients)
        assert file is not None
        operation = "command.export_patients" if args.with_patients else "console.export_practice_file"
        patients = await stored_patient_ids(context.database, practice_id) if args.with_patients else []
        async with context.database.transaction(practice_id) as connection:
            await append_disclosure(connection, context.audit.entry(practice_id, operation, patients))
        return file

    from frontdesk.practice_file import dump, dump_json

    file = with_database(work)
    text = dump_json(file) if args.json else dump(file)
    if args.output is None:
        sys.stdout.write(text)
        return
    try:
        with as_caller():
            descriptor = os.open(args.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise BadInput(f"{args.output} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:
        output.write(text)
    answer(args, {"practice": args.slug, "file": str(args.output)}, f"Wrote {args.output}.")


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
