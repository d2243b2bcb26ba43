"""Limits on the writes of a client: of each kind in an hour, and on the appointments that it booked for one patient.

The database counts them, exactly over all nodes (`write_limits.sql`).
"""

from frontdesk.access.clients.caller import CallerLimits
from frontdesk.access.limits.exceeded import LimitExceeded
from frontdesk.access.limits.patient_budget import duration_text

MAX_PENDING_APPROVALS = 20  # of a client, so that it cannot flood the staff who decide
_KEPT = "Nothing was executed; a confirmation token stays valid until it expires."


def write_limits(limits: CallerLimits) -> dict[str, int] | None:
    """As the database takes them; None if there are none."""
    if not limits.writes_per_hour and not limits.upcoming_per_patient:
        return None
    return {"writesPerHour": limits.writes_per_hour, "upcomingPerPatient": limits.upcoming_per_patient}


def check_write_limit(reached: str | None, seconds: int, limits: CallerLimits, operation: str) -> None:
    """Raises `rate_limited` if the database names a limit on writes as reached."""
    if reached == "writesPerHour":
        detail = f"This client may execute {operation} {limits.writes_per_hour} times an hour. {_KEPT} "
        raise LimitExceeded("writes_per_hour", f"{detail}Try again in {duration_text(seconds)}.", seconds)
    if reached == "pendingApprovals":
        detail = f"This client may have {MAX_PENDING_APPROVALS} changes waiting for the approval of staff. "
        raise LimitExceeded("pending_approvals", f"{detail}Nothing was executed. Wait until they are decided.", seconds)
    if reached == "upcomingPerPatient":
        detail = f"This client may have booked {limits.upcoming_per_patient} upcoming appointments for one patient. "
        raise LimitExceeded("upcoming_per_patient", f"{detail}{_KEPT} Cancel one of them first.", seconds)
