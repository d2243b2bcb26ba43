"""Fills the native calendar of the demo practice with appointments where there is room."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk.demo import DemoBooking, demo_bookings
from frontdesk.domain.availability import OVERRIDE_LANE
from frontdesk.domain.directory import Directory
from frontdesk.domain.ids import new_appointment_id
from frontdesk.domain.local_time import zone
from frontdesk.practice_file import PracticeFile
from frontdesk.store.database import Database

_INSERT = """
INSERT INTO appointment (practice_id, appointment_id, patient_id, provider_id, location_id, visit_type_id, procedure_id,
    lane, starts_at, ends_at, busy_until, status, attendance_confirmed_at, cancelled_at, booked_by, created_at,
    updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'demo', $15, $15)
"""

_INSERT_OVERRIDE = """
INSERT INTO appointment_override (practice_id, appointment_id, at, staff_id, rules, reason)
VALUES ($1, $2, $3, 'demo', '{full}', 'Fever since last night, cannot wait')
"""


@dataclass(frozen=True, slots=True)
class _Taken:
    """Busy time of a provider's lane and of a patient."""

    provider_id: int
    lane: int
    patient_id: str
    starts: datetime
    ends: datetime


async def count_ahead(database: Database, practice_id: int, now: datetime) -> int:
    async with database.transaction(practice_id) as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM appointment WHERE practice_id = $1 AND starts_at > $2", practice_id, now
        )
    return count


async def fill_calendar(
    database: Database, practice_id: int, file: PracticeFile, now: datetime, *, past: bool = False
) -> None:
    """Adds the bookings around today; those of the past only when asked for."""
    since = now - timedelta(days=30) if past else now
    async with database.transaction(practice_id) as connection:
        patients = await connection.fetch("SELECT number, patient_id FROM patient WHERE practice_id = $1", practice_id)
        ids = {row["number"]: row["patient_id"] for row in patients}
        live = await connection.fetch(
            """SELECT provider_id, lane, patient_id, starts_at, busy_until FROM appointment
               WHERE practice_id = $1 AND busy_until > $2 AND status <> 'cancelled'""",
            practice_id,
            since,
        )
        taken = [_Taken(*row) for row in live]
        has_override = any(each.lane >= OVERRIDE_LANE and each.starts > now for each in taken)
        bookings = demo_bookings(file, now.astimezone(zone(file.directory.practice.time_zone)).date())
        placed = [
            row
            for booking in bookings
            if (row := _place(booking, file.directory, ids[booking.patient_number], since, taken, now)) is not None
        ]
        override = None if has_override else _overbooked(placed, file.directory, taken, now)
        rows = [(practice_id, new_appointment_id(), *each, now) for each in placed]
        if override is not None:
            appointment_id = new_appointment_id()
            rows.append((practice_id, appointment_id, *override, now))
        await connection.executemany(_INSERT, rows)
        if override is not None:
            await connection.execute(_INSERT_OVERRIDE, practice_id, appointment_id, now)


def _place(
    booking: DemoBooking, directory: Directory, patient_id: str, since: datetime, taken: list[_Taken], now: datetime
) -> tuple[object, ...] | None:
    """The values of a booking's row from the patient on, or None if there is no room. Adds the booking to `taken`."""
    procedure = directory.visit_types[booking.visit_type_id].procedure(booking.procedure_id)
    assert procedure is not None
    local = booking.start.replace(tzinfo=zone(directory.locations[booking.location_id].time_zone))
    starts = local.astimezone(UTC)
    ends = starts + timedelta(minutes=procedure.duration_minutes)
    busy_until = ends + timedelta(minutes=procedure.buffer_after_minutes)
    meanwhile = [t for t in taken if t.starts < busy_until and starts < t.ends]
    capacity = directory.providers[booking.provider_id].capacity
    beside = [t.lane for t in meanwhile if t.provider_id == booking.provider_id]
    lanes = set(range(1, capacity + 1)) - set(beside)
    is_full = not lanes or len(beside) >= capacity  # overrides count, too
    if starts <= since or is_full or any(t.patient_id == patient_id for t in meanwhile):
        return None
    lane = min(lanes)
    if booking.status != "cancelled":
        taken.append(_Taken(booking.provider_id, lane, patient_id, starts, busy_until))
    return (
        patient_id,
        booking.provider_id,
        booking.location_id,
        booking.visit_type_id,
        booking.procedure_id,
        lane,
        starts,
        ends,
        busy_until,
        booking.status,
        now if booking.status == "confirmed" else None,
        now if booking.status == "cancelled" else None,
    )


def _overbooked(
    placed: list[tuple[Any, ...]],  # the values of the columns
    directory: Directory,
    taken: list[_Taken],
    now: datetime,  # rows of the table
) -> tuple[object, ...] | None:
    """A second patient at a time that is taken: the first one ahead with a provider who sees one patient at a time."""
    for first in placed:
        _, provider_id, *visit, _, starts, ends, busy_until, status, _, _ = first
        if starts <= now or status == "cancelled" or directory.providers[provider_id].capacity > 1:
            continue
        busy = {t.patient_id for t in taken if t.starts < busy_until and starts < t.ends}
        others = (other[0] for other in placed if list(other[2:5]) == visit and other[0] not in busy)
        second = next(others, None)
        if second is not None:
            return (second, provider_id, *visit, OVERRIDE_LANE, starts, ends, busy_until, "booked", None, None)
    return None
