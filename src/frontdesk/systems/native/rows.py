"""Rows of the native calendar's tables as domain records."""

from datetime import UTC, date, datetime
from typing import Any

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.local_time import local_day_bounds
from frontdesk.domain.patients import Patient


def patient(row: Any) -> Patient:
    return Patient(
        id=row["patient_id"],
        number=row["number"],
        first_name=row["first_name"],
        last_name=row["last_name"],
        dob=row["dob"],
        phone=row["phone"],
        email=row["email"],
        seen=row["seen"],
    )


def appointment(row: Any) -> Appointment:
    return Appointment(
        id=row["appointment_id"],
        patient_id=row["patient_id"],
        provider_id=row["provider_id"],
        location_id=row["location_id"],
        visit_type_id=row["visit_type_id"],
        procedure_id=row["procedure_id"],
        status=row["status"],
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        attendance_confirmed_at=row["attendance_confirmed_at"],
        cancelled_at=row["cancelled_at"],
        cancellation_reason=row["cancellation_reason"],
        rescheduled_from=row["rescheduled_from"],
        booked_by=row["booked_by"],
    )


_LONG_AGO, _FAR_AHEAD = date(1900, 1, 1), date(9000, 1, 1)


def day_windows(
    directory: Directory, first: date | None, last: date | None
) -> tuple[list[int], list[datetime], list[datetime]]:
    """For every location, the instants between which its own dates lie in [first, last]."""
    # A local date at either end of the calendar begins or ends at a moment that has no date of its own.
    earliest, latest = max(first or _LONG_AGO, _LONG_AGO), min(last or _FAR_AHEAD, _FAR_AHEAD)
    froms, tos = [], []
    for location in directory.locations.values():
        froms.append(_instant(local_day_bounds(earliest, location.time_zone)[0]))
        tos.append(_instant(local_day_bounds(latest, location.time_zone)[1]))
    return list(directory.locations), froms, tos


def _instant(minutes: int) -> datetime:
    return datetime.fromtimestamp(minutes * 60, tz=UTC)
