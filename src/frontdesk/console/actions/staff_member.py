"""Who acts at the console: a person of one practice, in a role. Admins may do everything that staff may."""

from dataclasses import dataclass

from frontdesk.access.clients.caller import Caller
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.staff.members import Role as Role
from frontdesk.domain.errors import Problem

_EVERY_SCOPE = frozenset(SCOPES)


@dataclass(frozen=True, slots=True)
class Person:
    staff_id: str  # the actor in audit records and booked_by
    name: str
    role: Role
    practice_id: int
    practice_slug: str
    directory_version: int

    def may(self, role: Role) -> bool:
        return role == "staff" or self.role == "admin"

    def caller(self) -> Caller:
        """As the operations know them: a person decides for themselves, so their writes execute at once."""
        return Caller(
            client_id=self.staff_id,
            practice_id=self.practice_id,
            practice_slug=self.practice_slug,
            scopes=_EVERY_SCOPE,
            grant="integration",
            directory_version=self.directory_version,
        )


def require(person: Person, role: Role) -> None:
    """The second of two checks: the page has asked the same."""
    if not person.may(role):
        raise Problem("forbidden_scope", f"This is for people of the practice with the role {role}.")
