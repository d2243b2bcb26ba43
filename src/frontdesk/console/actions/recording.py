"""Audit records of what people did at the console."""

import secrets
from datetime import datetime

from frontdesk.audit.trail import AuditEntry, AuditTrail
from frontdesk.console.actions.staff_member import Person


async def record_alone(audit: AuditTrail, person: Person, now: datetime, operation: str, *subjects: str) -> None:
    """A record of its own, for what commits nothing else."""
    entry = AuditEntry(person.practice_id, now, person.staff_id, operation, "executed", subjects, secrets.token_hex(16))
    await audit.append(entry, read=False)
