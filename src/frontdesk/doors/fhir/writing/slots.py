"""Finds the slot that an Appointment resource asks for, by its reference or by time and place."""

from datetime import UTC, datetime, timedelta

from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.local_time import instant_at, minute_of
from frontdesk.doors.fhir.addresses import our_id
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.writing.requested_appointment import RequestedAppointment, of_slot
from frontdesk.operations import ALL_PROCEDURES, BY_NAME, SLOT_AT, WIDE_SLOT_SEARCH

_GET_SLOT = BY_NAME["get_slot"]
_PAGE = 200


async def referred_slot(calls: Calls, wanted: RequestedAppointment) -> RequestedAppointment:
    """Time, place and service of the slot that is referred to, which must be those that the appointment says."""
    slot = of_slot(await calls.run(_GET_SLOT, slotId=our_id("slt", wanted.slot or "")))
    require_agreement(wanted, slot)
    return slot


def require_agreement(wanted: RequestedAppointment, slot: RequestedAppointment) -> None:
    differing = wanted.differs_from(slot)
    if differing:
        fields = [f"Appointment.{name}" for name in differing]
        raise invalid([FieldError(field, "declined", f"{field} must be that of the slot") for field in fields])


async def wanted_slot(calls: Calls, wanted: RequestedAppointment) -> str:
    """The id of the slot that is asked for."""
    if wanted.slot is None:
        return await _slot_at(calls, wanted)
    await referred_slot(calls, wanted)
    return our_id("slt", wanted.slot)


async def slot_of_move(calls: Calls, wanted: RequestedAppointment) -> str:
    """The id of the slot at the time and place, which are all known. It is not searched: the appointment itself takes
    its present time, and may be moved within it."""
    start = wanted.start
    assert start is not None, "an appointment has one"
    minute = minute_of(start)
    if minute < 0 or instant_at(minute) != start:
        raise Problem("slot_unavailable")
    try:
        slot = await calls.run(SLOT_AT, **wanted.place, **wanted.service, start=minute)
    except Problem as problem:
        raise Problem("slot_unavailable") if problem.code == "not_found" else problem from None
    if wanted.end not in (None, start + timedelta(minutes=slot["durationMinutes"])):
        raise Problem("slot_unavailable")
    return str(slot["id"])


async def _slot_at(calls: Calls, wanted: RequestedAppointment) -> str:
    """The id of the open slot at the time and place."""
    start, service = wanted.start, wanted.service
    missing = [
        name
        for name, is_there in (
            ("start", start is not None),
            ("participant", "providerId" in wanted.place),
            ("serviceType", "procedureId" in service),
        )
        if not is_there
    ]
    if missing or start is None:
        fields = [f"Appointment.{name}" for name in missing]
        message = "is required where Appointment.slot is missing"
        raise invalid([FieldError(field, "required", f"{field} {message}") for field in fields])
    for visit_type_id in await _visit_types(calls, service):
        day, cursor = start.astimezone(UTC).date(), None
        while True:
            page = await calls.run(
                WIDE_SLOT_SEARCH,
                **wanted.place,
                visitTypeId=visit_type_id,
                procedureId=service["procedureId"],
                limit=_PAGE,
                cursor=cursor,
                # The date at the location may be the one before or after.
                **{"from": (day - timedelta(days=1)).isoformat(), "to": (day + timedelta(days=1)).isoformat()},
            )
            found = [each for each in page["items"] if datetime.fromisoformat(each["start"]) == start]
            found = [each for each in found if wanted.end in (None, datetime.fromisoformat(each["end"]))]
            if found:
                return str(found[0]["id"])
            cursor = page.get("nextCursor")
            if cursor is None:
                break
    raise Problem("slot_unavailable")


async def _visit_types(calls: Calls, service: dict[str, int]) -> list[int]:
    """The visit type that is asked for, or all under which the procedure can be booked."""
    if "visitTypeId" in service:
        return [service["visitTypeId"]]
    services = (await calls.run(ALL_PROCEDURES))["items"]
    return [each["visitType"]["id"] for each in services if each["procedure"]["id"] == service["procedureId"]]
