"""Budgets of distinct patients that a client may read in an hour and in a day, exact across workers and nodes."""

from frontdesk.access.clients.caller import CallerLimits
from frontdesk.access.limits.exceeded import LimitExceeded
from frontdesk.audit.trail import AuditEntry, AuditTrail
from frontdesk.store.rows import Row

_RECORD = "SELECT * FROM record_read($1, $2, $3, $4, $5, $6, $7, $8, $9)"


async def record_read(audit: AuditTrail, entry: AuditEntry, limits: CallerLimits) -> None:
    """Records a read and counts the patients it discloses. Raises `rate_limited` if they exceed a budget."""
    row = await audit.database.write(_RECORD, *entry.values(), limits.patients_per_hour, limits.patients_per_day)
    assert row is not None
    try:
        check_spent(row, limits)
    finally:
        audit.seal_soon(entry.practice_id)


def check_spent(row: Row, limits: CallerLimits) -> None:
    """Raises `rate_limited` if the row of a counted answer names an exceeded budget."""
    if row["exceeded"] is None:
        return
    is_hour = row["exceeded"] == "hour"
    budget = limits.patients_per_hour if is_hour else limits.patients_per_day
    article = "an" if is_hour else "a"
    raise LimitExceeded(
        "patients_per_hour" if is_hour else "patients_per_day",
        f"The patient budget of this client ({budget} {article} {row['exceeded']}) does not allow this answer. Try "
        f"again in {duration_text(row['seconds'])}, or ask for fewer patients at a time.",
        retry_after=row["seconds"],
    )


def duration_text(seconds: int) -> str:
    """A duration in the largest unit that it fills, rounded up."""
    for unit, length in (("hour", 3600), ("minute", 60)):
        if seconds > length:
            return f"{-(-seconds // length)} {unit}s"
    return f"{seconds} seconds"
