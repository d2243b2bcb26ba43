"""Validates a practice file against the stored practice and tells what an import would change."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from difflib import unified_diff
from typing import Any, Literal

from frontdesk.domain.directory import Directory
from frontdesk.practice_file import PatientRecord, PracticeFile, dump, parse
from frontdesk.store.database import Database
from frontdesk.store.directories import StoredDirectory, load_directory
from frontdesk.store.practices import active_only, practice_id_of

Kind = Literal["settings", "locations", "providers", "visit types", "procedures", "patients"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes to the records of one kind, by name. Patients are only counted."""

    kind: Kind
    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    unchanged: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed)


async def checked_file(
    database: Database, text: str, now: datetime, *, prune: bool
) -> tuple[PracticeFile, StoredDirectory | None]:
    """The parsed file, and the practice that it would change. Raises PracticeFileError with all errors, also those
    against what is stored."""
    slug = await asyncio.to_thread(stated_slug, text)
    practice_id = None if slug is None else await practice_id_of(database, slug)
    stored = None if practice_id is None else await load_directory(database, practice_id)
    return await parse_in_thread(text, None if stored is None else stored.directory, now, prune=prune), stored


async def parse_in_thread(text: str, known: Directory | None, now: datetime, *, prune: bool) -> PracticeFile:
    """Parses in a thread, because a large file would block the event loop."""
    if prune:  # a record that becomes inactive cannot be referred to
        await asyncio.to_thread(parse, text, today=now.date())
        known = None if known is None else after_import(known, Directory(known.practice, {}, {}, {}), prune=True)
    return await asyncio.to_thread(parse, text, known=known, today=now.date())


def stated_slug(text: str) -> str | None:
    """The slug that a file names, even if the rest of it has errors."""
    from frontdesk.practice_file.reading import read  # imports the YAML library, which few processes need

    document, _ = read(text)
    practice = document.get("practice") if isinstance(document, dict) else None
    slug = practice.get("slug") if isinstance(practice, dict) else None
    return slug if isinstance(slug, str) else None


def after_import(known: Directory, given: Directory, *, prune: bool) -> Directory:
    """The stored directory as it is after an import."""

    def merged(stored: Mapping[Any, Any], listed: Mapping[Any, object]) -> dict[Any, Any]:
        kept = {key: replace(record, active=False) if prune else record for key, record in stored.items()}
        return {**kept, **listed}

    visit_types = merged(known.visit_types, given.visit_types)
    for key in known.visit_types.keys() & given.visit_types.keys():
        stored, listed = (
            {procedure.id: procedure for procedure in directory.visit_types[key].procedures}
            for directory in (known, given)
        )
        visit_types[key] = replace(visit_types[key], procedures=tuple(merged(stored, listed).values()))
    return Directory(
        given.practice,
        merged(known.locations, given.locations),
        merged(known.providers, given.providers),
        visit_types,
    )


def text_diff(known: Directory, given: Directory, *, prune: bool) -> str:
    """What an import changes in the text of the practice file, in the unified format; without patients."""
    before, after = (
        dump(PracticeFile(active_only(without_console_blocks(directory, known)))).splitlines(keepends=True)
        for directory in (known, after_import(known, given, prune=prune))
    )
    return "".join(unified_diff(before, after, "stored", "imported"))


def differences(
    known: Directory, known_patients: Mapping[int, PatientRecord], file: PracticeFile, *, prune: bool
) -> list[Difference]:
    """What an import changes. Records that are not listed stay, or become inactive with `prune`; patients stay."""
    stored, given = without_console_blocks(known, known), without_console_blocks(file.directory, known)
    return [
        _settings(stored, given),
        _difference("locations", stored.locations, given.locations, prune=prune),
        _difference("providers", stored.providers, given.providers, prune=prune),
        _difference("visit types", _bare(stored), _bare(given), prune=prune),
        _difference("procedures", _procedures(stored), _procedures(given), prune=prune),
        _patients(known_patients, file.patients),
    ]


def additions(file: PracticeFile) -> list[Difference]:
    """What an import adds that creates the practice."""
    directory = file.directory
    return [
        Difference("locations", added=[record.name for record in directory.locations.values()]),
        Difference("providers", added=[record.name for record in directory.providers.values()]),
        Difference("visit types", added=[record.name for record in directory.visit_types.values()]),
        Difference("procedures", added=[record.name for record in _procedures(directory).values()]),
        Difference("patients", added=[""] * len(file.patients)),
    ]


def without_console_blocks(directory: Directory, known: Directory) -> Directory:
    """The directory without time blocked in the console, which an import never changes."""
    return replace(
        directory,
        locations=_without_blocks(directory.locations, known.locations, "closures"),
        providers=_without_blocks(directory.providers, known.providers, "time_off"),
    )


def _without_blocks(records: Mapping[int, Any], known: Mapping[int, object], blocks: str) -> dict[int, Any]:
    found = {}
    for key, record in records.items():
        stored = getattr(known[key], blocks) if key in known else ()
        at_the_desk = [replace(block, by=None) for block in stored if block.by is not None]
        of_file = tuple(block for block in getattr(record, blocks) if replace(block, by=None) not in at_the_desk)
        found[key] = replace(record, **{blocks: of_file})
    return found


def _settings(stored: Directory, given: Directory) -> Difference:
    names = [field.name for field in fields(stored.practice)]
    changed = [name for name in names if getattr(stored.practice, name) != getattr(given.practice, name)]
    return Difference("settings", changed=[name.replace("_", " ") for name in changed])


def _difference(kind: Kind, stored: Mapping[Any, Any], given: Mapping[Any, Any], *, prune: bool) -> Difference:
    active = {key: record for key, record in stored.items() if record.active}
    shared = given.keys() & active.keys()
    changed = [record.name for key, record in given.items() if key in shared and record != active[key]]
    return Difference(
        kind,
        added=[record.name for key, record in given.items() if key not in active],
        changed=changed,
        removed=[record.name for key, record in active.items() if key not in given] if prune else [],
        unchanged=len(shared) - len(changed),
    )


def _bare(directory: Directory) -> dict[int, object]:
    """Visit types without their procedures, which are listed separately."""
    return {key: replace(record, procedures=()) for key, record in directory.visit_types.items()}


def _procedures(directory: Directory) -> dict[tuple[int, int], Any]:
    return {
        (visit_type.id, procedure.id): procedure
        for visit_type in directory.visit_types.values()
        for procedure in visit_type.procedures
    }


def _patients(known: Mapping[int, PatientRecord], given: Sequence[PatientRecord]) -> Difference:
    changed = [patient for patient in given if patient.number in known and known[patient.number] != patient]
    added = [patient for patient in given if patient.number not in known]
    return Difference(
        "patients",
        added=[""] * len(added),
        changed=[""] * len(changed),
        unchanged=len(given) - len(added) - len(changed),
    )
