"""The people of a practice, as its admins manage them: added, given a link, disabled, enabled, removed.

Another practice's people do not exist here. Nobody takes their own admin role away, so that a practice always has one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from frontdesk.access.links import link_address, new_link
from frontdesk.access.operators import (
    OperatorError,
    OperatorRecord,
    add_operator,
    disable_operator,
    enable_operator,
    list_operators,
    remove_operator,
    set_role,
    show_operator,
)
from frontdesk.domain.errors import Problem, declined
from frontdesk.engine.audit import AuditTrail
from frontdesk.engine.desk.people import Person, require
from frontdesk.store.database import Database

_CHANGES = {"disable": disable_operator, "enable": enable_operator, "remove": remove_operator}


@dataclass(frozen=True, slots=True)
class Colleagues:
    database: Database
    audit: AuditTrail
    public_url: str
    clock: Callable[[], datetime]

    async def everybody(self, person: Person) -> list[OperatorRecord]:
        require(person, "admin")
        return await list_operators(self.database, practice=person.practice_slug)

    async def one(self, person: Person, operator_id: str) -> OperatorRecord:
        require(person, "admin")
        try:
            found = await show_operator(self.database, operator_id)
        except OperatorError:
            raise Problem("not_found", "There is no such person.") from None
        if found.practice_id != person.practice_id:
            raise Problem("not_found", "There is no such person.")
        return found

    async def add(self, person: Person, name: str, role: str, email: str) -> OperatorRecord:
        require(person, "admin")
        try:
            added = await add_operator(
                self.database,
                practice=person.practice_slug,
                name=name,
                role=role,
                email=email,
                actor=person.operator_id,
                clock=self.clock,
            )
        except OperatorError as error:
            raise declined(str(error)) from None
        self.audit.seal_soon(person.practice_id)
        return added

    async def link(self, person: Person, operator_id: str) -> tuple[OperatorRecord, str]:
        """A one-time link for a colleague; an unused one before it stops working."""
        await self.one(person, operator_id)
        try:
            colleague, token = await new_link(self.database, operator_id, actor=person.operator_id, clock=self.clock)
        except OperatorError as error:
            raise Problem("conflict", str(error)) from None
        self.audit.seal_soon(person.practice_id)
        return colleague, link_address(self.public_url, token)

    async def change(self, person: Person, operator_id: str, change: str) -> None:
        """`change` is disable, enable, remove, staff or admin."""
        await self.one(person, operator_id)
        if operator_id == person.operator_id:
            raise Problem("conflict", "Another admin has to do this for you.")
        if change in _CHANGES:
            await _CHANGES[change](self.database, operator_id, actor=person.operator_id, clock=self.clock)
        else:
            await set_role(self.database, operator_id, change, actor=person.operator_id, clock=self.clock)
        self.audit.seal_soon(person.practice_id)
