"""What an import of a practice file does to booked patients: it finds those it would strand, and refuses, keeps or
cancels their appointments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from frontdesk.audit.trail import AuditContext
from frontdesk.domain.directory import Directory
from frontdesk.domain.stranded import Stranded, stranded
from frontdesk.store.database import Database
from frontdesk.systems.native.upcoming import cancel_appointments, upcoming_appointments

Choice = Literal["refuse", "keep", "cancel"]
_REASON = "The practice has changed its schedule."


class PatientsStranded(Exception):  # noqa: N818 - what it is, not what it is called
    """The import would strand booked patients. Nothing was changed."""

    def __init__(self, found: list[Stranded]) -> None:
        super().__init__("the import would strand booked patients")
        self.found = found


def default_choice(*, prune: bool) -> Choice:
    """An import without `prune` may be a closure that has to be entered even if patients are booked on that day."""
    return "refuse" if prune else "keep"


@dataclass(frozen=True, slots=True)
class Stranding:
    """A change of a practice from one directory to another."""

    before: Directory
    after: Directory

    @property
    def is_looked_up(self) -> bool:
        """False: the appointments are at a FHIR server, where this change reaches none of them."""
        return self.before.practice.keeps_own_calendar

    async def preview(self, database: Database, practice_id: int, now: datetime) -> list[Stranded]:
        async with database.transaction(practice_id) as connection:
            return await self._find(connection, practice_id, now)

    async def settle(self, connection: Any, practice_id: int, choice: Choice, audit: AuditContext) -> list[Stranded]:
        """In the transaction of the import, which has locked the providers. Raises PatientsStranded if refused."""
        found = await self._find(connection, practice_id, audit.now)
        if found and choice == "refuse":
            raise PatientsStranded(found)
        if choice == "cancel":
            await cancel_appointments(connection, practice_id, [each.appointment_id for each in found], _REASON, audit)
        return found

    async def _find(self, connection: Any, practice_id: int, now: datetime) -> list[Stranded]:
        if not self.is_looked_up:
            return []
        return stranded(self.before, self.after, await upcoming_appointments(connection, practice_id, now))
