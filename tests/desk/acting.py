"""Staff who act, without a browser."""

from frontdesk.access.staff.members import Role, StaffRecord, add_staff
from frontdesk.access.staff.sessions import SESSION_LIFETIME, StaffSession
from frontdesk.audit.trail import AuditContext
from frontdesk.desk.context import ActionContext
from tests.support.world import Clock, World


def audit_context(clock: Clock) -> AuditContext:
    """What the tests themselves record."""
    return AuditContext("test", clock(), "0" * 32)


async def action_context(
    world: World, role: Role = "staff", *, practice: str = "harbor", staff_id: str = "op_someone"
) -> ActionContext:
    """A request of a staff member, to be handed to an action directly."""
    row = await world.database.fetchrow("SELECT practice_id, version FROM practice WHERE slug = $1", practice)
    assert row is not None
    now = world.clock()
    session = StaffSession(
        staff_id=staff_id,
        name="Ana",
        role=role,
        practice_id=row["practice_id"],
        practice_slug=practice,
        directory_version=row["version"],
        digest=b"",
        practice_name=practice,
        time_zone="UTC",
        time_format="24h",
        features={},
        date_format="dayFirst",
        language=None,
        means="link",
        created_at=now,
        last_seen_at=now,
        expires_at=now + SESSION_LIFETIME,
        locked_at=None,
        lock_after_minutes=None,
        pin_chosen_at=None,
    )
    return ActionContext(session, world.clock(), "0" * 32, world.service.engine.audit)


async def staff_member(
    world: World, role: str = "staff", *, practice: str = "harbor", name: str = "Ana", email: str | None = None
) -> StaffRecord:
    return await add_staff(
        world.database, practice=practice, name=name, role=role, email=email, audit=audit_context(world.clock)
    )


async def acting(world: World, role: Role = "staff", practice: str = "harbor") -> ActionContext:
    """A request of a new staff member."""
    member = await staff_member(world, role, practice=practice)
    return await action_context(world, role, practice=practice, staff_id=member.staff_id)
