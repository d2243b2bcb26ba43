"""`frontdesk patient import`: adds patients from a CSV file. Output names lines and ids, never patients."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.input_files import read_input
from frontdesk.cli.output import BAD_INPUT, BadInput, answer, counted, table, to_document, to_json

if TYPE_CHECKING:
    from frontdesk.cli.patient_csv import RowError
    from frontdesk.practice_file import PatientRecord

_MAX_BYTES = 5 * 1024 * 1024


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "patient", "Patients: import.")
    command = add_command(group, "import", _import, "Add patients from a CSV file, all of them or none.")
    command.add_argument(
        "file",
        metavar="FILE",
        help="CSV with the columns firstName, lastName, dob (yyyy-mm-dd) and phone, and optionally email, number and "
        "seen (yes or no); - reads standard input",
    )
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--dry-run", action="store_true", help="list duplicates and errors, and change nothing")


@dataclass(frozen=True, slots=True)
class _Duplicate:
    line: int
    patient_id: str | None  # on file
    same_as_line: int | None  # of the same file


@dataclass(frozen=True, slots=True)
class _Result:
    added: int
    duplicates: Sequence[_Duplicate]


def _import(args: argparse.Namespace) -> int | None:
    from frontdesk.cli.patient_csv import CsvError

    try:
        result = with_database(lambda context: _imported(context, args, _read(args.file)))
    except CsvError as error:
        return _answer_errors(args, error.errors)
    verb = "would be added" if args.dry_run else "added"
    known = f"{counted(len(result.duplicates), 'duplicate')} {'would be ' if args.dry_run else ''}left out"
    rows = [
        (each.line, f"on file as {each.patient_id}" if each.patient_id else f"the same as line {each.same_as_line}")
        for each in result.duplicates
    ]
    parts = [f"{counted(result.added, 'patient')} {verb}, {known}.", table(("LINE", "DUPLICATE"), rows, "")]
    if args.dry_run:
        parts.append("This was a dry run: nothing was changed.")
    document = {
        "practice": args.practice,
        "dryRun": args.dry_run,
        "added": result.added,
        "duplicates": [to_document(each) for each in result.duplicates],
    }
    answer(args, document, "\n\n".join(part for part in parts if part))
    return None


def _read(name: str) -> str:
    data = read_input(name, _MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise BadInput(f"{name} is larger than {_MAX_BYTES // 1024 // 1024} MB: import it in parts.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{name} is not UTF-8 text.") from None


async def _imported(context: CommandContext, args: argparse.Namespace, text: str) -> _Result:
    from frontdesk.audit.trail import append_disclosure
    from frontdesk.cli.patient_csv import CsvError, RowError, read_patients
    from frontdesk.domain.local_time import local_date, minute_of
    from frontdesk.store.patient_import import add_patients, compare_patients
    from frontdesk.store.practices import list_practices

    practice_id = await context.practice_id(args.practice)
    (practice,) = await list_practices(context.database, args.practice)
    if practice.scheduling_system != "native":
        raise BadInput(f"The patients of {practice.slug} are kept in its scheduling system: add them there.")
    now = context.audit.now
    listed = read_patients(text, local_date(minute_of(now), practice.time_zone))
    lines = [line for line, _ in listed]
    patients: list[PatientRecord] = [patient for _, patient in listed]

    async with context.database.transaction(practice_id) as connection:

        async def record(operation: str, ids: Sequence[str]) -> None:
            if ids:
                await append_disclosure(connection, context.audit.entry(practice_id, operation, ids))

        compared = await compare_patients(connection, practice_id, patients)
        await record("console.compare_patients", sorted(set(compared.on_file.values())))
        new = compared.new(patients)
        if not args.dry_run and not compared.taken_numbers:
            await record("command.import_patients", await add_patients(connection, practice_id, new, now))
    if compared.taken_numbers:
        message = "number is that of another patient on file"
        raise CsvError([RowError(lines[place], message) for place in compared.taken_numbers])
    duplicates = [
        _Duplicate(
            lines[place],
            compared.on_file.get(place),
            None if place in compared.on_file else lines[compared.repeated[place]],
        )
        for place in sorted(compared.on_file.keys() | compared.repeated.keys())
    ]
    return _Result(len(new), duplicates)


def _answer_errors(args: argparse.Namespace, errors: "Sequence[RowError]") -> int:
    name = "<stdin>" if args.file == "-" else args.file
    if args.json:
        print(to_json({"errors": [{"file": name, **to_document(error)} for error in errors]}))
    for error in errors:
        print(f"{name}:{error.line}: {error.message}", file=sys.stderr)
    return BAD_INPUT
