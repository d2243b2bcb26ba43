"""Admins manage the staff of their practice: add, hand out sign-in links, change roles, disable, remove. Everybody
manages their own passkeys and sessions, and admins those of all.

Admins cannot change themselves, and only who is still an admin changes others, so a practice always keeps one.
"""

from dataclasses import dataclass
from functools import partial

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
from frontdesk.access.staff.passkeys import PasskeyRecord, list_passkeys, remove_passkey
from frontdesk.access.staff.sessions import SessionRecord, end_session, list_sessions
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import Problem, declined
from frontdesk.store.database import Database

_CHANGES = {"disable": disable_staff, "enable": enable_staff, "remove": remove_staff}


@dataclass(frozen=True, slots=True)
class SignIns:
    """How a staff member signs in, and where they are signed in."""

    passkeys: list[PasskeyRecord]
    sessions: list[SessionRecord]


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
                check=partial(context.require_in, role="admin"),
            )
        except StaffError as error:
            raise declined(error.text) from None
        context.seal_soon()
        return added

    async def link(self, context: ActionContext, staff_id: str, *, reset: bool = False) -> tuple[StaffRecord, str]:
        """A new one-time sign-in link; unused earlier ones stop working. `reset` also ends sessions and passkeys."""
        await self.one(context, staff_id)
        if reset:
            _refuse_self(context, staff_id)
        try:
            check = partial(context.require_in, role="admin", others=[staff_id])
            member, token = await new_link(self.database, staff_id, audit=context.audit, reset=reset, check=check)
        except StaffError as error:
            raise Problem("conflict", error.text) from None
        context.seal_soon()
        return member, link_address(self.public_url, token)

    async def change(self, context: ActionContext, staff_id: str, change: str) -> None:
        """Changes another staff member. `change` is disable, enable, remove, staff or admin."""
        await self.one(context, staff_id)
        _refuse_self(context, staff_id)
        check = partial(context.require_in, role="admin", others=[staff_id])
        if change in _CHANGES:
            await _CHANGES[change](self.database, staff_id, audit=context.audit, check=check)
        else:
            await set_role(self.database, staff_id, change, audit=context.audit, check=check)
        context.seal_soon()

    async def sign_ins(self, context: ActionContext, staff_id: str, current: bytes | None = None) -> SignIns:
        """One's own, or as an admin anybody's."""
        await self._reach(context, staff_id)
        return SignIns(
            await list_passkeys(self.database, staff_id),
            await list_sessions(self.database, staff_id, context.now, current),
        )

    async def remove_passkey(self, context: ActionContext, staff_id: str, passkey_id: str) -> None:
        await self._reach(context, staff_id)
        try:
            await remove_passkey(self.database, context.practice_id, staff_id, passkey_id, audit=context.audit)
        except StaffError as error:
            raise Problem("not_found", error.text) from None
        context.seal_soon()

    async def end_session(self, context: ActionContext, staff_id: str, number: str) -> None:
        await self._reach(context, staff_id)
        try:
            await end_session(self.database, context.practice_id, staff_id, number, audit=context.audit)
        except StaffError as error:
            raise Problem("not_found", error.text) from None
        context.seal_soon()

    async def _reach(self, context: ActionContext, staff_id: str) -> None:
        """Everybody reaches themselves, admins the staff of their practice."""
        if staff_id != context.staff.staff_id:
            await self.one(context, staff_id)


def _refuse_self(context: ActionContext, staff_id: str) -> None:
    if staff_id == context.staff.staff_id:
        raise Problem("conflict", "Ask another admin to do this.")
