"""`frontdesk practice init`, `import` and `export`: practice files in and out."""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command
from frontdesk.cli.connection import CommandContext, has_database, with_database
from frontdesk.cli.input_files import read_input
from frontdesk.cli.output import BAD_INPUT, BadInput, CommandError, answer, counted, to_json
from frontdesk.cli.output_files import new_file
from frontdesk.cli.practice_preview import (
    answer_preview,
    counted_stranded,
    first_file,
    not_checked,
    previewed,
    remedy,
    stranded_choice,
    stranded_document,
    stranded_table,
)
from frontdesk.cli.service_address import with_recorded_address

if TYPE_CHECKING:
    from frontdesk.practice_file import PracticeFile, PracticeFileError
    from frontdesk.store.connection import Connection
    from frontdesk.store.directories import StoredDirectory
    from frontdesk.systems.stranding import StrandingReport

_NEXT_STEPS = """

Next:
  frontdesk client add --practice {slug} --name "Voice agent" --grant agent --scope all
  frontdesk staff add --practice {slug} --name "Your name" --role admin
  frontdesk serve"""
_CHOICES = ("refuse", "keep", "cancel")


def add_commands(group: Commands) -> None:
    command = add_command(group, "init", _init, "Write a commented practice file to start from.")
    command.add_argument("file", metavar="FILE", type=Path, help="a new file, such as practice.yaml")

    add_command(group, "schema", _schema, "Print the JSON Schema of practice files, for editors.")

    command = add_command(group, "import", _import, "Create or update a practice from a file, all of it or nothing.")
    command.add_argument("file", metavar="FILE", help="YAML or JSON; - reads standard input")
    command.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    command.add_argument("--prune", action="store_true", help="deactivate what the file no longer lists")
    command.add_argument(
        "--stranded",
        choices=_CHOICES,
        help="future appointments that would lose their provider, location, procedure or hours: refuse to import "
        "(default with --prune), keep them booked (default otherwise) or cancel them",
    )

    command = add_command(group, "export", _export, "Write a practice in the format that import reads.", "slug")
    command.add_argument("--with-patients", action="store_true", help="patients too; keep the file safe")
    command.add_argument(
        "--output", metavar="FILE", type=Path, help="write to a file that only you can read; replaces it"
    )


def _init(args: argparse.Namespace) -> None:
    from importlib.resources import files

    from frontdesk.practice_file.published_schema import schema_line
    from frontdesk.settings import load_settings

    text = (files("frontdesk.practice_file") / "new_practice.yaml").read_text(encoding="utf-8")
    text = schema_line(with_recorded_address(load_settings()).public_url) + text
    try:
        with new_file(args.file) as output:
            output.write(text.encode())
    except OSError as error:
        raise BadInput(f"{args.file} cannot be written: {error.strerror}.") from None
    message = f"Wrote {args.file}. Edit it, then run: frontdesk practice import {args.file}"
    answer(args, {"file": str(args.file)}, message)


def _schema(_: argparse.Namespace) -> None:
    from frontdesk.practice_file.published_schema import schema_text

    sys.stdout.write(schema_text())


def _import(args: argparse.Namespace) -> int | None:
    from frontdesk.practice_file import PracticeFileError
    from frontdesk.systems.stranding import StrandingRefused

    try:
        text = _read(args.file)
        if args.dry_run:
            answer_preview(args, previewed(args, text))
        else:
            _answer_import(args, *_imported(args, text))
    except PracticeFileError as error:
        return _answer_errors(args, error)
    except StrandingRefused as refusal:
        return _answer_refusal(args, refusal.found)
    return None


def _imported(args: argparse.Namespace, text: str) -> "tuple[PracticeFile, bool, StrandingReport]":
    """The file, whether it created the practice, and the appointments that it stranded."""

    async def work(context: CommandContext) -> "tuple[PracticeFile, bool, StrandingReport]":
        from frontdesk.store.practice_import import checked_file

        file, stored = await checked_file(context.database, text, context.audit.now, prune=args.prune)
        if stored is None:
            return file, True, await _create(context, file)
        return file, False, await _update(args, context, file, stored)

    if not has_database():
        first_file(args, text)  # a faulty file creates no database
    return with_database(work, creates=True)


async def _create(context: CommandContext, file: "PracticeFile") -> "StrandingReport":
    from frontdesk.store.practices import import_practice
    from frontdesk.systems.stranding import StrandingReport

    await import_practice(context.database, file, context.audit.now, in_transaction=partial(_record, context))
    return StrandingReport()


async def _update(
    args: argparse.Namespace, context: CommandContext, file: "PracticeFile", stored: "StoredDirectory"
) -> "StrandingReport":
    from frontdesk.store.practice_import import after_import
    from frontdesk.store.practices import PracticeChanged, import_practice
    from frontdesk.systems.stranding import Stranding, opened_system

    now, choice, prune = context.audit.now, stranded_choice(args), args.prune
    after = after_import(stored.directory, file.directory, prune=prune)
    practice_id = await context.practice_id(file.directory.practice.slug)
    async with opened_system(context.database, practice_id, stored, os.environ) as system:
        change = Stranding(stored.directory, after, system)
        found = await change.settle_upstream(choice, now)

    async def record(connection: "Connection", practice_id: int) -> None:
        nonlocal found
        await _record(context, connection, practice_id)
        if found is None:
            found = await change.settle(connection, practice_id, choice, context.audit)

    try:
        await import_practice(context.database, file, now, prune=prune, version=stored.version, in_transaction=record)
    except PracticeChanged:
        raise CommandError("The practice was changed meanwhile, and nothing was imported: try again.") from None
    assert found is not None
    return found


async def _record(context: CommandContext, connection: "Connection", practice_id: int) -> None:
    from frontdesk.audit.trail import append_audit

    await append_audit(connection, context.audit.entry(practice_id, "console.import_practice_file"))


def _answer_import(args: argparse.Namespace, file: "PracticeFile", is_new: bool, found: "StrandingReport") -> None:
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
    document: dict[str, object] = {"practice": directory.practice.slug, **counts}
    if is_new:
        text += _NEXT_STEPS.format(slug=directory.practice.slug)
    if found.stranded:
        became = "cancelled" if stranded_choice(args) == "cancel" else "kept"
        document[became] = stranded_document(found.stranded)
        fate = "cancelled" if became == "cancelled" else "still booked"
        text += f"\n\n{counted_stranded(found.stranded, 'lost')}, {fate}:\n{stranded_table(found.stranded)}"
    if found.unanswered is not None:
        document["notLookedAt"] = found.unanswered
        text += f"\n\n{not_checked(found.unanswered)}"
    answer(args, document, text)


def _answer_refusal(args: argparse.Namespace, found: "StrandingReport") -> int:
    document: dict[str, object] = {"stranded": stranded_document(found.stranded)}
    if found.unanswered is not None:
        document["notLookedAt"] = found.unanswered
        sentence = f"Nothing was imported. {not_checked(found.unanswered)} Try again, or give --stranded keep."
    else:
        sentence = f"Nothing was imported: {counted_stranded(found.stranded, 'would lose')}. {remedy(found)}"
    if args.json:
        print(to_json({"error": sentence, **document}))
    lines = [sentence, stranded_table(found.stranded)] if found.stranded else [sentence]
    print("\n".join(lines), file=sys.stderr)
    return BAD_INPUT


def _answer_errors(args: argparse.Namespace, refused: "PracticeFileError") -> int:
    """One line for each error, in the form that editors and terminals link to the place."""
    name = "<stdin>" if args.file == "-" else args.file
    if args.json:
        errors = [
            {"file": name, "path": each.path, "message": each.message, "line": each.line, "column": each.column}
            for each in refused.errors
        ]
        print(to_json({"errors": errors}))
    for error in refused.errors:
        place = name if error.line is None else f"{name}:{error.line}:{error.column}"
        print(f"{place}: {error.path}: {error.message}", file=sys.stderr)
    return BAD_INPUT


def _read(name: str) -> str:
    from frontdesk.practice_file import FileError, PracticeFileError
    from frontdesk.practice_file.reading import MAX_BYTES, refuse_large

    data = read_input(name, MAX_BYTES + 1)
    refuse_large(len(data))  # before it is decoded: it may be cut in the middle of a character
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PracticeFileError([FileError("$", "the file is not UTF-8 text")]) from None


def _export(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[PracticeFile, str]":
        from frontdesk.audit.trail import append_disclosure
        from frontdesk.store.practices import export_practice, stored_patient_ids

        practice_id = await context.practice_id(args.slug)
        file = await export_practice(context.database, args.slug, with_patients=args.with_patients)
        assert file is not None
        operation = "command.export_patients" if args.with_patients else "console.export_practice_file"
        patients = await stored_patient_ids(context.database, practice_id) if args.with_patients else []
        async with context.database.transaction(practice_id) as connection:
            await append_disclosure(connection, context.audit.entry(practice_id, operation, patients))
        return file, context.settings.public_url

    from frontdesk.practice_file import dump, dump_json
    from frontdesk.practice_file.published_schema import schema_line

    file, public_url = with_database(work)
    text = dump_json(file) if args.json else schema_line(public_url) + dump(file)
    if args.output is None:
        sys.stdout.write(text)
        return
    _write_private(args.output, text)
    answer(args, {"practice": args.slug, "file": str(args.output)}, f"Wrote {args.output}.")


def _write_private(path: Path, text: str) -> None:
    """Replaces what the path names by a file that only the caller can read."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):  # such as /dev/stdout
            raise BadInput(f"{path} is not a regular file: name another, or leave out --output.")
        descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=".practice-")  # mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(made).replace(path)
        except BaseException:
            Path(made).unlink()
            raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
