"""Rows of the native calendar's tables as domain records."""

from collections.abc import Mapping
from datetime import date, datetime

import orjson
from asyncpg import Record

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.holds import Hold
from frontdesk.domain.local_time import instant_at, local_day_bounds
from frontdesk.domain.patients import Patient
from frontdesk.store.rows import camel, from_row
from frontdesk.systems.port import AppointmentFilter, AppointmentPosition, ListingStart


def patient(row: Record) -> Patient:
    return from_row(Patient, row, id=row["patient_id"])


def appointment(row: Record) -> Appointment:
    return from_row(Appointment, row, id=row["appointment_id"], of_several=False)


def hold(row: Record) -> Hold:
    return from_row(Hold, row, id=row["hold_id"])


def position(row: Record) -> AppointmentPosition:
    return AppointmentPosition(row["listed_under"], row["appointment_id"], from_row(ListingStart, row))


_FILTERED = ("patient_id", "provider_id", "location_id", "visit_type_id", "procedure_id", "known_to")
_LONG_AGO, _FAR_AHEAD = date(1900, 1, 1), date(9000, 1, 1)


Windows = Mapping[int, tuple[datetime, datetime]]


def day_windows(directory: Directory, wanted: AppointmentFilter) -> Windows:
    """For every location, the instants between which its own dates are wanted, and the time before it."""
    # A local date at either end of the calendar begins or ends at a moment that has no date of its own.
    first, last = max(wanted.first or _LONG_AGO, _LONG_AGO), min(wanted.last or _FAR_AHEAD, _FAR_AHEAD)
    return {
        location.id: (
            instant_at(local_day_bounds(first, location.time_zone)[0]) - wanted.earlier,
            instant_at(local_day_bounds(last, location.time_zone)[1]),
        )
        for location in directory.locations.values()
    }


def filter_json(wanted: AppointmentFilter, windows: Windows | None) -> str:
    """The JSON that `appointment_page` takes. Without windows, any date is wanted."""
    data: dict[str, object] = {camel(name): getattr(wanted, name) for name in _FILTERED}
    if windows is not None:
        data["windows"] = windows
        data["earliest"] = min((begin for begin, _ in windows.values()), default=None)
        data["latest"] = max((end for _, end in windows.values()), default=None)
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS).decode()


def position_json(after: AppointmentPosition | None) -> str | None:
    if after is None:
        return None
    position = {"startsAt": after.starts_at, "id": after.id}
    return orjson.dumps(position | {"snapshot": after.listing.snapshot, "beganAt": after.listing.began_at}).decode()
