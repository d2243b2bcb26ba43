"""What an import of a practice file does to booked patients: it finds those it would strand, and refuses, keeps or
cancels their appointments."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from frontdesk.audit.trail import AuditContext
from frontdesk.domain.directory import Directory
from frontdesk.domain.stranded import Stranded, find_stranded, may_strand
from frontdesk.store.connection import Connection
from frontdesk.store.database import Database
from frontdesk.store.directories import StoredDirectory
from frontdesk.systems.native.upcoming import cancel_appointments, upcoming_appointments
from frontdesk.systems.port import Misconfigured, SchedulingSystem, SystemUnavailable, upcoming_pages
from frontdesk.texts import N_

Choice = Literal["refuse", "keep", "cancel"]
SystemOfCall = Callable[[], Awaitable[SchedulingSystem]]
_REASON = N_("The practice has changed its schedule.")
_AWAY = "it cannot be reached, or cannot answer now"


@dataclass(frozen=True, slots=True)
class StrandingReport:
    """The appointments that a change strands."""

    stranded: Sequence[Stranded] = ()
    can_cancel: bool = True  # False: a FHIR server has them, where an import cancels nothing
    unanswered: str | None = None  # why the FHIR server could not be asked

    def must_be_refused(self, choice: Choice) -> bool:
        if choice == "keep" or (choice == "cancel" and self.can_cancel):
            return False
        return bool(self.stranded) or self.unanswered is not None


class StrandingRefused(Exception):
    """The import would strand booked patients, or nobody can tell. Nothing was changed."""

    def __init__(self, found: StrandingReport) -> None:
        super().__init__("the import would strand booked patients")
        self.found = found


def default_choice(*, prune: bool) -> Choice:
    """What happens to stranded appointments unless it was chosen. Without `prune` they are kept: a closure has to be
    entered even if patients are booked on that day."""
    return "refuse" if prune else "keep"


@dataclass(frozen=True, slots=True)
class Stranding:
    """A change of a practice from one directory to another. `system` is that of `before`, for one call each time."""

    before: Directory
    after: Directory
    system: SystemOfCall

    async def preview(self, database: Database, practice_id: int, now: datetime) -> StrandingReport:
        if not self.before.practice.keeps_own_calendar:
            return await self._find_upstream(now)
        async with database.transaction(practice_id) as connection:
            return await self._find(connection, practice_id, now)

    async def settle_upstream(self, choice: Choice, now: datetime) -> StrandingReport | None:
        """Finds the stranded appointments at a FHIR server. None if the practice keeps its own calendar.

        It runs before the transaction of the import, because the server takes no part in that: what is booked there in
        the meantime is not seen. Raises StrandingRefused.
        """
        if self.before.practice.keeps_own_calendar:
            return None
        found = await self._find_upstream(now)
        if found.must_be_refused(choice):
            raise StrandingRefused(found)
        return found

    async def settle(
        self, connection: Connection, practice_id: int, choice: Choice, audit: AuditContext
    ) -> StrandingReport:
        """Finds the stranded appointments of a native calendar, and cancels them if that was chosen.

        It runs in the transaction of the import, which has locked the providers. Raises StrandingRefused.
        """
        found = await self._find(connection, practice_id, audit.now)
        if found.must_be_refused(choice):
            raise StrandingRefused(found)
        if choice == "cancel":
            ids = [each.appointment_id for each in found.stranded]
            await cancel_appointments(connection, practice_id, ids, _REASON, audit)
        return found

    async def _find(self, connection: Connection, practice_id: int, now: datetime) -> StrandingReport:
        return StrandingReport(
            find_stranded(self.before, self.after, await upcoming_appointments(connection, practice_id, now))
        )

    async def _find_upstream(self, now: datetime) -> StrandingReport:
        found: list[Stranded] = []
        if not may_strand(self.before, self.after):
            return StrandingReport(can_cancel=False)
        try:
            async for page in upcoming_pages(self.system, now):
                found += find_stranded(self.before, self.after, page)
        except Misconfigured as error:
            return StrandingReport(can_cancel=False, unanswered=error.reason)
        except SystemUnavailable:
            return StrandingReport(can_cancel=False, unanswered=_AWAY)
        return StrandingReport(found, can_cancel=False)


@asynccontextmanager
async def opened_system(
    database: Database, practice_id: int, stored: StoredDirectory, environment: Mapping[str, str]
) -> AsyncIterator[SystemOfCall]:
    """The FHIR server of a practice, for a command. A native calendar is read in the transaction of the import."""
    config = stored.directory.practice.scheduling_system
    if stored.directory.practice.keeps_own_calendar:
        yield _not_asked
        return
    from frontdesk.systems.fhir.system import FhirSystem  # most installations have none, and start faster without
    from frontdesk.systems.fhir.upstream import Upstream

    upstream = Upstream(database, practice_id, config, environment)

    async def system() -> SchedulingSystem:
        await upstream.ready()
        practice = await upstream.map(stored.version, stored.directory)
        return FhirSystem(upstream, stored.version, practice, lambda _: None).parts

    try:
        yield system
    finally:
        await upstream.close()


async def _not_asked() -> SchedulingSystem:
    raise AssertionError("a native calendar is read in the transaction of the import")
