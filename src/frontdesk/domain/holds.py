"""Holds: open times that are kept for a client for a few minutes, until it books them."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Hold:
    id: str
    client_id: str
    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    starts_at: datetime
    ends_at: datetime
    held_at: datetime
    held_until: datetime


def expiry(now: datetime, lifetime: timedelta) -> datetime:
    """A whole minute, because a cached answer is used within its minute only: none outlives a hold that it saw."""
    latest = now + lifetime
    minute = latest.replace(second=0, microsecond=0)
    return minute if minute == latest else minute + timedelta(minutes=1)
