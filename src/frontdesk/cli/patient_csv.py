"""Reads patients from CSV text by the rules of create_patient. Errors name lines and columns, never values."""

import csv
import io
from dataclasses import dataclass
from datetime import date

from frontdesk.cli.output import counted
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.engine.arguments import from_tool, read_arguments
from frontdesk.operations.create_patient import OPERATION
from frontdesk.practice_file import PatientRecord
from frontdesk.practice_file.fields import MAX_PATIENT_NUMBER
from frontdesk.store.patient_import import UNNUMBERED

REQUIRED = ("firstName", "lastName", "dob", "phone")
OPTIONAL = ("email", "number", "seen")
_COLUMNS = {name.lower(): name for name in (*REQUIRED, *OPTIONAL)}
_SEEN = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}


@dataclass(frozen=True, slots=True)
class RowError:
    line: int
    message: str


class CsvError(Exception):
    """The text is not a list of patients; carries every error."""

    def __init__(self, errors: list[RowError]) -> None:
        super().__init__("the patients cannot be read")
        self.errors = errors


def read_patients(text: str, today: date) -> list[tuple[int, PatientRecord]]:
    """The patients, each with its line. Raises CsvError with every error."""
    first, _, _ = text.partition("\n")
    delimiter = ";" if ";" in first and "," not in first else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[int, PatientRecord]] = []
    errors: list[RowError] = []
    numbers: set[int] = set()
    try:
        columns = _columns(next(rows, []))
        begin = rows.line_num + 1
        while (cells := next(rows, None)) is not None:
            begin, line = rows.line_num + 1, begin
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                errors.append(
                    RowError(line, f"has {counted(len(cells), 'column')}, and the first line has {len(columns)}")
                )
                continue
            values = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
            try:
                patient = _patient(values, today)
            except Problem as problem:
                errors += [RowError(line, error.message) for error in problem.errors]
                continue
            if patient.number in numbers:
                errors.append(RowError(line, "number is already used in this file"))
            if patient.number != UNNUMBERED:
                numbers.add(patient.number)
            found.append((line, patient))
    except csv.Error:
        errors.append(RowError(rows.line_num, "is not valid CSV"))
    if errors:
        raise CsvError(errors)
    return found


def _columns(header: list[str]) -> list[str]:
    """The published names; the header is not quoted, because it could be a patient."""
    names = [_COLUMNS.get("".join(char for char in cell.lower() if char.isalnum())) for cell in header]
    errors = [
        f"column {place} has no known name; the names are {', '.join((*REQUIRED, *OPTIONAL))}"
        for place, name in enumerate(names, start=1)
        if name is None
    ]
    errors += [f"the column {name} is missing" for name in REQUIRED if name not in names]
    known = [name for name in names if name is not None]
    errors += [f"the column {name} is repeated" for name in sorted(set(known)) if known.count(name) > 1]
    if errors:
        raise CsvError([RowError(1, error) for error in errors])
    return known


def _patient(values: dict[str, str], today: date) -> PatientRecord:
    number, seen = values.pop("number", ""), values.pop("seen", "").lower()
    errors: list[FieldError] = []
    number = number.lstrip("0") or number[:1]
    if number and not (number.isascii() and number.isdecimal() and 1 <= int(number[:11]) <= MAX_PATIENT_NUMBER):
        errors.append(FieldError("number", "range", f"number must be from 1 to {MAX_PATIENT_NUMBER}"))
    if seen not in _SEEN:
        errors.append(FieldError("seen", "binding", "seen must be yes or no"))
    arguments = from_tool(OPERATION, {name: value or None for name, value in values.items()})
    try:
        given = read_arguments(OPERATION, arguments, today)
    except Problem as problem:
        raise invalid([*problem.errors, *errors]) from None
    if errors:
        raise invalid(errors)
    return PatientRecord(
        int(number or UNNUMBERED), given.first_name, given.last_name, given.dob, given.phone, given.email, _SEEN[seen]
    )
