"""What the pages of an undo show."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from frontdesk.desk.names import Actor
from frontdesk.domain.directory import Directory
from frontdesk.domain.local_time import zone
from frontdesk.domain.patients import Contact
from frontdesk.features.client_undo.plan import UndoEntry
from frontdesk.features.client_undo.store import ClientUndo


@dataclass(frozen=True, slots=True)
class ClientAct:
    """What a client did, as the audit trail has it."""

    at: datetime
    operation: str
    appointment_id: str | None
    patient_id: str | None


@dataclass(frozen=True, slots=True)
class UndoRow:
    """An appointment on a page."""

    entry: UndoEntry
    patient: Contact | None
    start: datetime | None  # local, where it is afterwards or was; None: the appointment is gone
    provider: str
    visit_type: str


@dataclass(frozen=True, slots=True)
class PatientWritten:
    """A patient whom the client created or updated. Nothing of it is undone."""

    patient_id: str
    patient: Contact | None
    operation: str
    at: datetime


@dataclass(frozen=True, slots=True)
class UndoPreview:
    since: datetime
    rows: Sequence[UndoRow]
    patients: Sequence[PatientWritten]
    complete: bool  # False: the client did more than a page can hold
    shown: str  # by which the form recognizes that anything has changed since

    @property
    def undoable(self) -> list[UndoRow]:
        return [row for row in self.rows if row.entry.is_pending]

    @property
    def kept(self) -> list[UndoRow]:
        return [row for row in self.rows if not row.entry.is_pending]


@dataclass(frozen=True, slots=True)
class UndoView:
    undo: ClientUndo
    by: Actor
    rows: Sequence[UndoRow]
    patients: Sequence[PatientWritten]

    @property
    def is_unfinished(self) -> bool:
        return any(row.entry.is_pending for row in self.rows)

    @property
    def kept(self) -> list[UndoRow]:
        return [row for row in self.rows if not (row.entry.is_undone or row.entry.is_pending)]

    @property
    def calls(self) -> list[UndoRow]:
        """Patients whose appointment was changed, in the order of their names. Nobody has to know of a confirmation."""
        found = [row for row in self.rows if any(each != "unconfirm" for each in row.entry.made)]
        return sorted(
            found, key=lambda row: (row.patient.last_name, row.patient.first_name) if row.patient else ("", "")
        )


def row_of(entry: UndoEntry, patient: Contact | None, directory: Directory) -> UndoRow:
    place = entry.place
    if place is None:
        return UndoRow(entry, patient, None, "", "")
    return UndoRow(
        entry,
        patient,
        place.starts_at.astimezone(zone(directory.locations[place.location_id].time_zone)),
        directory.providers[place.provider_id].name,
        directory.visit_types[place.visit_type_id].name,
    )


def digest_of(entries: Sequence[UndoEntry]) -> str:
    """Changes with what is to be undone."""
    parts = [[each.appointment_id, each.last_record, each.changes, each.failure] for each in entries]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def subjects_of(rows: Sequence[UndoRow], patients: Sequence[PatientWritten]) -> list[str]:
    """The patients whose names are shown."""
    shown = {row.entry.patient_id for row in rows if row.patient} | {
        each.patient_id for each in patients if each.patient
    }
    return sorted(shown)
