"""The practice file: what an operator writes about a practice, as YAML or JSON text.

Owns reading it, naming every fault in it with its path, and writing it back. Refuses storage and files on disk.
"""

from datetime import date

from frontdesk.domain.directory import Directory
from frontdesk.practice_file.contents import PatientRecord, PracticeFile
from frontdesk.practice_file.faults import Fault, PracticeFileError

__all__ = ["Fault", "PatientRecord", "PracticeFile", "PracticeFileError", "dump", "dump_json", "parse"]

# Reading and writing are imported when first used: a service that answers calls starts without them.


def parse(text: str, *, known: Directory | None = None, today: date | None = None) -> PracticeFile:
    """Read a practice file, YAML or JSON; raises PracticeFileError with every fault.

    known is what is stored of the practice already: the file may refer to its locations and procedures, and a location
    that the file lists without a time zone keeps the one it was given. With today, a birth in the future is a fault.
    """
    from frontdesk.practice_file import parsing

    return parsing.parse(text, known, today)


def dump(file: PracticeFile) -> str:
    """Write a practice file, inactive records left out; parse reads the same contents back."""
    from frontdesk.practice_file import writing

    return writing.dump(file)


def dump_json(file: PracticeFile) -> str:
    """The same as JSON, which parse reads as well."""
    from frontdesk.practice_file import writing

    return writing.dump_json(file)
