"""The contents of a parsed practice file: a directory and patients."""

from dataclasses import dataclass
from datetime import date

from frontdesk.domain.directory import Directory


@dataclass(frozen=True, slots=True)
class PatientRecord:
    number: int
    first_name: str
    last_name: str
    dob: date
    phone: str
    email: str | None = None
    seen: bool = False


@dataclass(frozen=True)
class PracticeFile:
    directory: Directory
    patients: tuple[PatientRecord, ...] = ()
