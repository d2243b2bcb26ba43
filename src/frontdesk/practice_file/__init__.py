"""The practice file format: parses YAML or JSON text into a directory, reports every error, and writes it back."""

from datetime import date

from frontdesk.domain.directory import Directory
from frontdesk.practice_file.contents import PatientRecord, PracticeFile
from frontdesk.practice_file.errors import NOT_A_NUMBER, FileError, PracticeFileError

__all__ = [
    "NOT_A_NUMBER",
    "FileError",
    "PatientRecord",
    "PracticeFile",
    "PracticeFileError",
    "dump",
    "dump_json",
    "parse",
]

# Parsing and writing are imported lazily to keep the service's start fast.


def parse(text: str, *, known: Directory | None = None, today: date | None = None) -> PracticeFile:
    """Parse a practice file, YAML or JSON; raises PracticeFileError with every error.

    `known` is the stored directory: the file may refer to its locations and procedures, and a location without a time
    zone keeps the stored one. With `today`, a date of birth in the future is an error.
    """
    from frontdesk.practice_file import parsing

    return parsing.parse(text, known, today)


def dump(file: PracticeFile) -> str:
    """Write a practice file without inactive records; `parse` returns the same contents."""
    from frontdesk.practice_file import writing

    return writing.dump(file)


def dump_json(file: PracticeFile) -> str:
    """Write a practice file as JSON, which `parse` reads, too."""
    from frontdesk.practice_file import writing

    return writing.dump_json(file)
