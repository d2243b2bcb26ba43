"""Fills the native calendar of the demo practice with appointments where there is room."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk.demo import DemoBooking, demo_bookings
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
        rows = [
            (practice_id, new_appointment_id(), *placed, now)
            for booking in demo_bookings(file, now.date())
            if (placed := _place(booking, file.directory, ids[booking.patient_number], since, taken, now)) is not None
        ]
        await connection.executemany(_INSERT, rows)


def _place(
    booking: DemoBooking, directory: Directory, patient_id: str, since: datetime, taken: list[_Taken], now: datetime
) -> tuple[Any, ...] | None:
    """The values of a booking's row from the patient on, or None if there is no room. Adds the booking to `taken`."""
    procedure = directory.visit_types[booking.visit_type_id].procedure(booking.procedure_id)
    assert procedure is not None
    local = booking.start.replace(tzinfo=zone(directory.locations[booking.location_id].time_zone))
    starts = local.astimezone(UTC)
    ends = starts + timedelta(minutes=procedure.duration_minutes)
    busy_until = ends + timedelta(minutes=procedure.buffer_after_minutes)
    meanwhile = [t for t in taken if t.starts < busy_until and starts < t.ends]
    lanes = set(range(1, directory.providers[booking.provider_id].capacity + 1))
    lanes -= {t.lane for t in meanwhile if t.provider_id == booking.provider_id}
    if starts <= since or not lanes or any(t.patient_id == patient_id for t in meanwhile):
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
