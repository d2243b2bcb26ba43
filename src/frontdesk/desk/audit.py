"""The audit trail for admins: searched, exported and verified.

A verification runs in a task of its own, one per practice; its progress is stored, so that every worker can show it.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import orjson

from frontdesk.audit.heads import HeadKeys
from frontdesk.audit.reading import AFTER_ALL, AuditFilter, actors_of_request, exported_lines, find_records
from frontdesk.audit.verify import ChainReport, verify_chain
from frontdesk.desk.actors import actors_of
from frontdesk.desk.applied_overrides import OVERRIDES, AppliedOverride, overrides_of
from frontdesk.desk.audit_lines import Line, Subject, fold_views
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.ids import PATIENT_ID
from frontdesk.engine.execute import Systems
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.store.rows import Row
from frontdesk.systems.port import SystemUnavailable

PAGE = 50
MAX_SHOWN_SUBJECTS = 4  # of a record; the others are behind a disclosure, without names
_BATCHES = 20  # of the trail, searched for one page
_STALLED_AFTER = timedelta(seconds=30)  # without progress for so long, the worker has died
_PROGRESS_SECONDS = 1.0
_log = logging.getLogger(__name__)

_BEGIN = """
INSERT INTO audit_check (practice_id, check_id, started_by, started_at, heard_at, checked, expected)
VALUES ($1, $2, $3, $4, $4, 0, 0)
ON CONFLICT (practice_id) DO UPDATE SET check_id = excluded.check_id, started_by = excluded.started_by,
    started_at = excluded.started_at, heard_at = excluded.heard_at, checked = 0, expected = 0, finished_at = NULL,
    report = NULL
WHERE audit_check.finished_at IS NOT NULL OR audit_check.heard_at < $5
RETURNING true
"""
_SAVE_PROGRESS = """
UPDATE audit_check SET checked = $3, expected = $4, heard_at = $5 WHERE practice_id = $1 AND check_id = $2
"""
_END = """
UPDATE audit_check SET checked = $3, expected = $3, heard_at = $4, finished_at = $4, report = $5::jsonb
WHERE practice_id = $1 AND check_id = $2
"""
_ACTORS = """
SELECT client_id AS id, name, grant_kind AS kind FROM client WHERE practice_id = $1
UNION ALL
SELECT staff_id, name, 'staff' FROM staff WHERE practice_id = $1
ORDER BY 2, 1
"""

CheckState = Literal["running", "whole", "broken", "interrupted"]


@dataclass(frozen=True, slots=True)
class RecordPage:
    lines: Sequence[Line]  # of rows of the trail; `sequence` None: not sealed yet
    before: int | None  # where the next page begins; None: the last page
    patients: Mapping[str, str]  # names of those on the page, by id
    about: Subject | Actor | None  # the patient, staff member or client that was asked for
    sharing: Sequence[Actor]  # who has used the request id that was asked for, if several have


@dataclass(frozen=True, slots=True)
class Check:
    state: CheckState
    started_by: Actor
    started_at: datetime
    finished_at: datetime | None
    checked: int
    expected: int
    report: Mapping[str, object] | None


@dataclass(slots=True)
class AuditRecords:
    database: Database
    keys: HeadKeys
    systems: Systems
    clock: Callable[[], datetime]
    _running: set[asyncio.Task[None]] = field(default_factory=set)  # the event loop keeps weak references only

    async def actors(self, context: ActionContext) -> list[Actor]:
        """The practice's clients and staff, by name."""
        context.require("admin")
        rows = await self.database.fetch(_ACTORS, context.practice_id)
        return [Actor(row["id"], row["name"], row["kind"]) for row in rows]

    async def find(self, context: ActionContext, wanted: AuditFilter, before: int | None = None) -> RecordPage:
        """A page of records. It may be short or empty without being the last, because a search is bounded."""
        context.require("admin")
        found = await find_records(
            self.database, context.practice_id, wanted, PAGE + 1, AFTER_ALL if before is None else before, _BATCHES
        )
        rows, next_page = found.records, found.before
        if len(rows) > PAGE:
            rows, next_page = rows[:PAGE], rows[PAGE - 1]["record_id"]
        records = [{**row, "subject_ids": _wanted_first(row["subject_ids"], wanted.subject)} for row in rows]
        shown = {each for record in records for each in record["subject_ids"][:MAX_SHOWN_SUBJECTS]}
        patients = await self._patients(context, sorted(shown | {wanted.subject or ""}))
        if patients:
            await context.record("console.audit", *sorted(patients), read=True)
        sharing = await self._sharing(context, wanted.request)
        actors = await actors_of(
            self.database, context.practice_id, shown | sharing | {row["actor"] for row in rows} | {wanted.actor or ""}
        )
        named: dict[str, Subject | Actor] = {
            **{each: Subject("patient", each, name) for each, name in patients.items()},
            **await self._of_directory(context, shown),
            **{each.id: each for each in actors.values() if each.kind != "other"},
        }
        overrides = await self._overrides(context, records)
        lines = [
            Line(
                record,
                actors[record["actor"]],
                [
                    named[each]
                    for each in record["subject_ids"][:MAX_SHOWN_SUBJECTS]
                    if each in named and each != record["actor"]
                ],
                overrides.get(record["record_id"]),
            )
            for record in records
        ]
        about = named.get(wanted.subject or wanted.actor or "")
        return RecordPage(fold_views(lines), next_page, patients, about, [actors[each] for each in sorted(sharing)])

    async def _sharing(self, context: ActionContext, request_id: str | None) -> set[str]:
        """Everybody who has used a request id, if several have."""
        if request_id is None:
            return set()
        found = await actors_of_request(self.database, context.practice_id, request_id)
        return found if len(found) > 1 else set()

    async def _overrides(self, context: ActionContext, records: Sequence[Row]) -> dict[int, AppliedOverride]:
        """The overrides among the records, by record."""
        overrides = [each for each in records if each["operation"] in OVERRIDES and each["outcome"] == "executed"]
        ids = {subject for each in overrides for subject in each["subject_ids"]}
        applied = await overrides_of(self.database, context.practice_id, sorted(ids))
        return {
            record["record_id"]: each
            for record in overrides
            for subject in record["subject_ids"]
            for each in applied.get(subject, ())
            if each.at == record["at"]
        }

    async def _patients(self, context: ActionContext, ids: Sequence[str]) -> dict[str, str]:
        """Names by id, of the patients among these ids."""
        wanted = [each for each in ids if PATIENT_ID.match(each)]
        if not wanted:
            return {}
        try:
            contacts = await (await self.systems(context.staff.caller())).patients.contacts(wanted)
        except SystemUnavailable:
            return {}  # the trail is shown with ids
        return {each: f"{contact.first_name} {contact.last_name}" for each, contact in contacts.items()}

    async def _of_directory(self, context: ActionContext, subjects: set[str]) -> dict[str, Subject]:
        """The providers and locations among the subjects, such as "provider 10"."""
        if not any(each.startswith(("provider ", "location ")) for each in subjects):
            return {}
        directory = await (await self.systems(context.staff.caller())).directory()
        named = [Subject("provider", str(each.id), each.name) for each in directory.providers.values()]
        named += [Subject("location", str(each.id), each.name) for each in directory.locations.values()]
        return {f"{each.kind} {each.id}": each for each in named if f"{each.kind} {each.id}" in subjects}

    async def export(self, context: ActionContext) -> AsyncIterator[str]:
        """Every sealed record as a line of JSON, the record of this export included."""
        context.require("admin")
        await context.record("console.export_audit")
        return exported_lines(self.database, context.staff.practice_slug, context.practice_id)

    async def start_check(self, context: ActionContext) -> None:
        """Does nothing while a check of this practice is running."""
        context.require("admin")
        check_id, now = secrets.token_hex(8), context.now
        async with self.database.transaction(context.practice_id) as connection:
            started = await connection.fetchval(
                _BEGIN, context.practice_id, check_id, context.staff.staff_id, now, now - _STALLED_AFTER
            )
        if started:
            await context.record("console.verify_audit")
            task = asyncio.create_task(self._check(context.practice_id, check_id), name="audit-check")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def last_check(self, context: ActionContext) -> Check | None:
        context.require("admin")
        async with self.database.transaction(context.practice_id) as connection:
            row = await connection.fetchrow("SELECT * FROM audit_check WHERE practice_id = $1", context.practice_id)
        if row is None:
            return None
        named = await actors_of(self.database, context.practice_id, [row["started_by"]])
        report = None if row["report"] is None else orjson.loads(row["report"])
        state: CheckState = "running"
        if report is not None:
            state = "broken" if report["violations"] else "whole"
        elif row["heard_at"] < context.now - _STALLED_AFTER:
            state = "interrupted"
        return Check(
            state,
            named[row["started_by"]],
            row["started_at"],
            row["finished_at"],
            row["checked"],
            row["expected"],
            report,
        )

    async def close(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _check(self, practice_id: int, check_id: str) -> None:
        reported_at = time.monotonic()

        async def progress(checked: int, expected: int) -> None:
            nonlocal reported_at
            await asyncio.sleep(0)
            if time.monotonic() - reported_at >= _PROGRESS_SECONDS:
                reported_at = time.monotonic()
                await self._write(_SAVE_PROGRESS, practice_id, check_id, checked, expected, self.clock())

        try:
            report: ChainReport = await verify_chain(self.database, practice_id, self.clock(), progress, keys=self.keys)
            document = orjson.dumps(report.document()).decode()
            await self._write(_END, practice_id, check_id, report.sequence, self.clock(), document)
        except (DatabaseUnavailable, OutcomeUnknown):
            _log.warning("a check of the audit trail was interrupted: the database is unavailable")
        except Exception:
            _log.exception("a check of the audit trail failed")

    async def _write(self, sql: str, practice_id: int, *values: object) -> None:
        async with self.database.transaction(practice_id) as connection:
            await connection.execute(sql, practice_id, *values)


def _wanted_first(subjects: Sequence[str], wanted: str | None) -> list[str]:
    """A page shows the first subjects of a long list: the one that was searched for must be among them."""
    return sorted(subjects, key=lambda subject: subject != wanted)
