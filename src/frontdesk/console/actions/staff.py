"""The people of a practice, as its admins manage them: added, given a link, disabled, enabled, removed.

Another practice's people do not exist here. Nobody takes their own admin role away, so that a practice always has one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from frontdesk.access.staff.links import link_address, new_link
from frontdesk.access.staff.members import (
    StaffError,
    StaffRecord,
    add_staff,
    disable_staff,
    enable_staff,
    list_staff,
    remove_staff,
    set_role,
    show_staff,
)
from frontdesk.audit.trail import AuditTrail
from frontdesk.console.actions.staff_member import Person, require
from frontdesk.domain.errors import Problem, declined
from frontdesk.store.database import Database

_CHANGES = {"disable": disable_staff, "enable": enable_staff, "remove": remove_staff}


@dataclass(frozen=True, slots=True)
class Colleagues:
    database: Database
    audit: AuditTrail
    public_url: str
    clock: Callable[[], datetime]

    async def everybody(self, person: Person) -> list[StaffRecord]:
        require(person, "admin")
        return await list_staff(self.database, practice=person.practice_slug)

    async def one(self, person: Person, staff_id: str) -> StaffRecord:
        require(person, "admin")
        try:
            found = await show_staff(self.database, staff_id)
        except StaffError:
            raise Problem("not_found", "There is no such person.") from None
        if found.practice_id != person.practice_id:
            raise Problem("not_found", "There is no such person.")
        return found

    async def add(self, person: Person, name: str, role: str, email: str) -> StaffRecord:
        require(person, "admin")
        try:
            added = await add_staff(
                self.database,
                practice=person.practice_slug,
                name=name,
                role=role,
                email=email,
                actor=person.staff_id,
                clock=self.clock,
            )
        except StaffError as error:
            raise declined(str(error)) from None
        self.audit.seal_soon(person.practice_id)
        return added

    async def link(self, person: Person, staff_id: str) -> tuple[StaffRecord, str]:
        """A one-time link for a colleague; an unused one before it stops working."""
        await self.one(person, staff_id)
        try:
            colleague, token = await new_link(self.database, staff_id, actor=person.staff_id, clock=self.clock)
        except StaffError as error:
            raise Problem("conflict", str(error)) from None
        self.audit.seal_soon(person.practice_id)
        return colleague, link_address(self.public_url, token)

    async def change(self, person: Person, staff_id: str, change: str) -> None:
        """`change` is disable, enable, remove, staff or admin."""
        await self.one(person, staff_id)
        if staff_id == person.staff_id:
            raise Problem("conflict", "Another admin has to do this for you.")
        if change in _CHANGES:
            await _CHANGES[change](self.database, staff_id, actor=person.staff_id, clock=self.clock)
        else:
            await set_role(self.database, staff_id, change, actor=person.staff_id, clock=self.clock)
        self.audit.seal_soon(person.practice_id)
