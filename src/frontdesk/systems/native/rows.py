"""Rows of the native calendar's tables as domain records."""

from datetime import date, datetime, timedelta
from typing import Any

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.holds import Hold
from frontdesk.domain.local_time import instant_at, local_day_bounds
from frontdesk.domain.patients import Patient
from frontdesk.store.rows import from_row
from frontdesk.systems.port import AppointmentPosition, ListingStart


def patient(row: Any) -> Patient:
    return from_row(Patient, row, id=row["patient_id"])


def appointment(row: Any) -> Appointment:
    return from_row(Appointment, row, id=row["appointment_id"], of_several=False)


def hold(row: Any) -> Hold:
    return from_row(Hold, row, id=row["hold_id"])


def position(row: Any) -> AppointmentPosition:
    return AppointmentPosition(row["listed_under"], row["appointment_id"], from_row(ListingStart, row))


_LONG_AGO, _FAR_AHEAD = date(1900, 1, 1), date(9000, 1, 1)


def day_windows(
    directory: Directory, first: date | None, last: date | None, earlier: timedelta
) -> tuple[list[int], list[datetime], list[datetime]]:
    """For every location, the instants between which its own dates lie in [first, last], and the time before it."""
    # A local date at either end of the calendar begins or ends at a moment that has no date of its own.
    earliest, latest = max(first or _LONG_AGO, _LONG_AGO), min(last or _FAR_AHEAD, _FAR_AHEAD)
    froms, tos = [], []
    for location in directory.locations.values():
        froms.append(instant_at(local_day_bounds(earliest, location.time_zone)[0]) - earlier)
        tos.append(instant_at(local_day_bounds(latest, location.time_zone)[1]))
    return list(directory.locations), froms, tos
