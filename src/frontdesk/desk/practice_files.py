"""The practice file: exported, opened for a form, compared with a new one, and imported.

The scheduling system cannot be changed here: its settings name secrets of the server.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from frontdesk.audit.trail import append_disclosure
from frontdesk.desk.context import ActionContext
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import zone
from frontdesk.engine.execute import Systems
from frontdesk.practice_file import FileError, PracticeFile, PracticeFileError, dump, dump_json
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.directories import StoredDirectory, load_directory
from frontdesk.store.practice_import import (
    Difference,
    after_import,
    differences,
    parse_in_thread,
    stated_slug,
    without_console_blocks,
)
from frontdesk.store.practices import (
    PracticeChanged,
    active_only,
    export_practice,
    import_practice,
    stored_patient_ids,
    stored_patients,
)
from frontdesk.systems.port import SchedulingSystem
from frontdesk.systems.stranding import Choice, Stranding, StrandingReport, default_choice
from frontdesk.systems.stranding import StrandingRefused as StrandingRefused

STRANDED_CHOICES: Mapping[str, Choice] = {"keep": "keep", "cancel": "cancel"}
MAX_FILE_BYTES = 1024 * 1024  # larger files take seconds to parse; the command line accepts them
_reading = asyncio.Semaphore(1)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a file would change, compared with the practice at `version`."""

    version: int
    differences: Sequence[Difference]
    found: StrandingReport
    before: Directory  # active records, without time that was blocked in the console
    after: Directory

    @property
    def is_empty(self) -> bool:
        return all(difference.is_empty for difference in self.differences)


@dataclass(frozen=True, slots=True)
class OpenedPractice:
    """The practice at `version`, for a form to change."""

    version: int
    directory: Directory  # active records
    stored: Directory  # also inactive ones, whose ids are taken
    document: dict[str, object]  # as its practice file, without patients and time that was blocked in the console
    today: date  # in the practice's zone


@dataclass(frozen=True, slots=True)
class PracticeFiles:
    database: Database
    systems: Systems

    async def opened(self, context: ActionContext) -> OpenedPractice:
        context.require("admin")
        stored = await load_directory(self.database, context.practice_id)
        file = PracticeFile(active_only(without_console_blocks(stored.directory, stored.directory)))
        async with _reading:
            document = json.loads(await asyncio.to_thread(dump_json, file))
        today = context.now.astimezone(zone(stored.directory.practice.time_zone)).date()
        return OpenedPractice(stored.version, active_only(stored.directory), stored.directory, document, today)

    async def export(self, context: ActionContext, *, as_json: bool) -> str:
        """Exports the practice without patients, who are exported on the command line only."""
        context.require("admin")
        file = await export_practice(self.database, context.staff.practice_slug, with_patients=False)
        assert file is not None
        await context.record("console.export_practice_file")
        return dump_json(file) if as_json else dump(file)

    async def preview(self, context: ActionContext, text: str, *, prune: bool) -> Preview:
        """Shows what a file would change. Raises PracticeFileError with every error."""
        context.require("admin")
        stored, file = await self._checked_file(context, text, prune=prune)
        numbers = [patient.number for patient in file.patients]
        patients = {row.number: row for row in await stored_patients(self.database, context.practice_id, numbers)}
        compared = await stored_patient_ids(self.database, context.practice_id, numbers)
        if compared:  # the counts tell whether a patient's data equal what the file says
            entry = context.audit.entry(context.practice_id, "console.compare_patients", compared)
            async with self.database.transaction(context.practice_id) as connection:
                await append_disclosure(connection, entry)
            context.seal_soon()
        known = stored.directory
        change = self._stranding(context, known, after_import(known, file.directory, prune=prune))
        return Preview(
            stored.version,
            differences(known, patients, file, prune=prune),
            await change.preview(self.database, context.practice_id, context.now),
            *(active_only(without_console_blocks(directory, known)) for directory in (known, change.after)),
        )

    async def apply(
        self,
        context: ActionContext,
        text: str,
        *,
        prune: bool,
        version: int,
        stranded: Choice | None = None,
        operation: str = "console.import_practice_file",
        subjects: Sequence[str] = (),
    ) -> None:
        """Imports the whole file, if the practice still has the version that was compared. Raises StrandingRefused if
        `stranded` does not say what becomes of the appointments that lose what they were booked for."""
        context.require("admin")
        stored, file = await self._checked_file(context, text, prune=prune)
        after = after_import(stored.directory, file.directory, prune=prune)
        change, choice = self._stranding(context, stored.directory, after), stranded or default_choice(prune=prune)
        upstream = await change.settle_upstream(choice, context.now)

        async def record(connection: Connection, practice_id: int) -> None:
            await context.record_in(connection, operation, *subjects)
            if upstream is None:
                await change.settle(connection, practice_id, choice, context.audit)

        try:
            await import_practice(self.database, file, context.now, prune=prune, version=version, in_transaction=record)
        except PracticeChanged:
            raise Problem("conflict", "The practice has changed since the comparison. Compare again.") from None
        context.seal_soon()

    def _stranding(self, context: ActionContext, before: Directory, after: Directory) -> Stranding:
        async def system() -> SchedulingSystem:
            return await self.systems(context.staff.caller())

        return Stranding(before, after, system)

    async def _checked_file(
        self, context: ActionContext, text: str, *, prune: bool
    ) -> tuple[StoredDirectory, PracticeFile]:
        stored = await load_directory(self.database, context.practice_id)
        errors: list[FileError] = []
        file: PracticeFile | None = None
        try:
            async with _reading:
                file = await parse_in_thread(text, stored.directory, context.now, prune=prune)
            slug: str | None = file.directory.practice.slug
        except PracticeFileError as error:
            errors += error.errors
            slug = await asyncio.to_thread(stated_slug, text)
        if slug is not None and slug != context.staff.practice_slug:
            errors.insert(
                0, FileError("practice.slug", f"must be {context.staff.practice_slug}: this is another practice's file")
            )
        if file is not None and _system(file.directory) != _system(stored.directory):
            errors.append(
                FileError("practice.schedulingSystem", "is changed with frontdesk practice import, on the server")
            )
        if errors or file is None:
            raise PracticeFileError(errors)
        return stored, file


def _system(directory: Directory) -> dict[str, object]:
    return dict(directory.practice.scheduling_system)
