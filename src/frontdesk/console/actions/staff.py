"""Admins manage the staff of their practice: add, hand out sign-in links, change roles, disable, remove.

Admins cannot change themselves, so a practice always keeps one.
"""

from dataclasses import dataclass

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
from frontdesk.console.actions.context import ActionContext
from frontdesk.domain.errors import Problem, declined
from frontdesk.store.database import Database

_CHANGES = {"disable": disable_staff, "enable": enable_staff, "remove": remove_staff}


@dataclass(frozen=True, slots=True)
class Staff:
    database: Database
    public_url: str

    async def all(self, context: ActionContext) -> list[StaffRecord]:
        context.require("admin")
        return await list_staff(self.database, practice=context.staff.practice_slug)

    async def one(self, context: ActionContext, staff_id: str) -> StaffRecord:
        context.require("admin")
        try:
            found = await show_staff(self.database, staff_id)
        except StaffError:
            raise Problem("not_found", "There is no such staff member.") from None
        if found.practice_id != context.practice_id:
            raise Problem("not_found", "There is no such staff member.")
        return found

    async def add(self, context: ActionContext, name: str, role: str, email: str) -> StaffRecord:
        context.require("admin")
        try:
            added = await add_staff(
                self.database,
                practice=context.staff.practice_slug,
                name=name,
                role=role,
                email=email,
                audit=context.audit,
            )
        except StaffError as error:
            raise declined(str(error)) from None
        context.seal_soon()
        return added

    async def link(self, context: ActionContext, staff_id: str) -> tuple[StaffRecord, str]:
        """A new one-time sign-in link; unused earlier ones stop working."""
        await self.one(context, staff_id)
        try:
            member, token = await new_link(self.database, staff_id, audit=context.audit)
        except StaffError as error:
            raise Problem("conflict", str(error)) from None
        context.seal_soon()
        return member, link_address(self.public_url, token)

    async def change(self, context: ActionContext, staff_id: str, change: str) -> None:
        """`change` is disable, enable, remove, staff or admin."""
        await self.one(context, staff_id)
        if staff_id == context.staff.staff_id:
            raise Problem("conflict", "Ask another admin to do this.")
        if change in _CHANGES:
            await _CHANGES[change](self.database, staff_id, audit=context.audit)
        else:
            await set_role(self.database, staff_id, change, audit=context.audit)
        context.seal_soon()
