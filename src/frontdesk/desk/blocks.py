"""Blocked time: a provider's time off, or days on which a location is closed, set by staff.

It is stored in the directory and raises its version, so that bookings use the new one. Imports keep it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import orjson
from pydantic import ValidationError

from frontdesk.desk.actors import actors_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.appointments import CANCELLABLE, Appointment
from frontdesk.domain.availability import time_away
from frontdesk.domain.directory import Directory, TimeOff
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.domain.local_time import instant_at, local_date, local_day_bounds, minute_of, zone
from frontdesk.engine.execute import Systems
from frontdesk.store.database import Database
from frontdesk.store.notifications import notify
from frontdesk.systems.port import AppointmentFilter, Capability, SchedulingSystem, appointment_pages
from frontdesk.texts import N_, Text

MAX_BLOCK_LENGTH = timedelta(days=366)
_MAX_LISTED = 50
NOT_HERE = N_("Time is blocked in the practice's own system.")


@dataclass(frozen=True, slots=True)
class Block:
    """A provider's time from `starts` to `ends`, or a location's days from the first to the last. All local."""

    provider_id: int | None
    location_id: int | None
    starts: datetime | date
    ends: datetime | date
    reason: str | None = None
    by: Actor | None = None  # None: from the practice file


@dataclass(frozen=True, slots=True)
class AffectedAppointment:
    id: str
    start: datetime
    patient: str | None  # None if the scheduling system no longer has the patient
    provider: str


@dataclass(frozen=True, slots=True)
class Affected:
    """The live appointments in blocked time: how many there are, and the first of them."""

    count: int
    first: Sequence[AffectedAppointment]


@dataclass(frozen=True, slots=True)
class Blocks:
    database: Database
    systems: Systems
    on_changed: Callable[[int], None]

    async def offered(self, context: ActionContext) -> bool:
        return Capability.BLOCK_TIME in (await self.systems(context.staff.caller())).capabilities

    async def upcoming(self, context: ActionContext) -> list[Block]:
        """Current and future blocks, by their start."""
        directory = await (await self.systems(context.staff.caller())).directory()
        today = local_date(minute_of(context.now), directory.practice.time_zone) - timedelta(days=1)
        found = [
            (Block(provider.id, None, row.starts, row.ends, row.reason), row.by)
            for provider in directory.providers.values()
            if provider.active
            for row in provider.time_off
            if row.ends.date() >= today
        ]
        found += [
            (Block(None, location.id, row.first, row.last, row.reason), row.by)
            for location in directory.locations.values()
            if location.active
            for row in location.closures
            if row.last >= today
        ]
        actors = await actors_of(self.database, context.practice_id, (by for _, by in found if by is not None))
        blocks = [replace(block, by=actors.get(by or "")) for block, by in found]
        return sorted(blocks, key=lambda block: (str(block.starts), block.provider_id or 0, block.location_id or 0))

    async def affected(self, context: ActionContext, block: Block) -> Affected:
        """Shows names of patients, so the access is audited."""
        system = await self.systems(context.staff.caller())
        directory = await system.directory()
        self._check_place(directory, block)
        found = [each for each in await appointments_in(system, directory, block) if each.status in CANCELLABLE]
        listed = found[:_MAX_LISTED]
        contacts = await system.patients.contacts([each.patient_id for each in listed]) if listed else {}
        if contacts:
            await context.record("console.blocked_appointments", *sorted(contacts), read=True)
        first = [
            AffectedAppointment(
                each.id,
                each.starts_at.astimezone(zone(directory.locations[each.location_id].time_zone)),
                contacts[each.patient_id].name if each.patient_id in contacts else None,
                directory.providers[each.provider_id].name,
            )
            for each in listed
        ]
        return Affected(len(found), first)

    async def change(self, context: ActionContext, block: Block, *, remove: bool = False) -> None:
        """Adds or removes a block. Adding one twice or removing an unknown one changes nothing.

        A removed block of the practice file returns with the next import.
        """
        system = await self.systems(context.staff.caller())
        if Capability.BLOCK_TIME not in system.capabilities:
            raise Problem("capability_not_supported", NOT_HERE)
        directory = await system.directory()
        self._check_place(directory, block)
        keys = ("starts", "ends") if block.provider_id is not None else ("first", "last")
        row = {keys[0]: block.starts, keys[1]: block.ends, "reason": block.reason, "by": context.staff.staff_id}
        subject = f"location {block.location_id}" if block.provider_id is None else f"provider {block.provider_id}"
        done = await self.database.write(
            "SELECT change_block($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS outcome",
            context.practice_id,
            block.provider_id,
            block.location_id,
            orjson.dumps(row).decode(),
            remove,
            context.staff.staff_id,
            "console.unblock_time" if remove else "console.block_time",
            subject,
            context.now,
            context.request_id,
        )
        context.seal_soon()
        if done is None or done["outcome"] == "not_found":
            raise Problem("not_found", "There is no such provider or location.")
        await notify(self.database, "practice", context.staff.practice_slug)
        self.on_changed(context.practice_id)

    def _check_place(self, directory: Directory, block: Block) -> None:
        places = directory.locations if block.provider_id is None else directory.providers
        place = places.get(block.provider_id or block.location_id or 0)
        if place is None or not place.active:
            raise Problem("not_found", "There is no such provider or location.")


async def appointments_in(system: SchedulingSystem, directory: Directory, block: Block) -> list[Appointment]:
    """Every appointment in blocked time, whatever its state, by its start."""
    wanted = AppointmentFilter(
        provider_id=block.provider_id,
        location_id=block.location_id,
        first=_day(block.starts) - timedelta(days=1),
        last=_day(block.ends),
    )
    return [
        each
        async for page in appointment_pages(system, wanted)
        for each in page
        if overlaps(block, each.starts_at, each.ends_at, directory.locations[each.location_id].time_zone)
    ]


def read_block(kind: str, place: int, starts: str, ends: str, reason: str = "", now: datetime | None = None) -> Block:
    """Checks a form by the rules of the practice file; with `now`, the block must not be past."""
    from frontdesk.practice_file.model import ClosurePart, TimeOffPart  # slow to build

    given = {"from": starts, "to": ends, "reason": reason.strip() or None}
    try:
        if kind == "location":
            closure = ClosurePart.model_validate(given)
            block, length = (
                Block(None, place, closure.first, closure.last, closure.reason),
                closure.last - closure.first,
            )
        else:
            off = TimeOffPart.model_validate(given)
            block, length = Block(place, None, off.starts, off.ends, off.reason), off.ends - off.starts
    except ValidationError as error:
        raise _refused(error) from None
    if now is not None and length > MAX_BLOCK_LENGTH:
        raise invalid([FieldError("to", "maxWindow", Text("%(field)s must be at most a year after from"))])
    if now is not None and _day(block.ends) < (now - timedelta(days=1)).date():
        raise invalid([FieldError("to", "order", Text("%(field)s must not be in the past"))])
    return block


def _refused(error: ValidationError) -> Problem:
    from frontdesk.practice_file.fields import text_of

    details = [each for each in error.errors(include_url=False, include_input=False) if each["loc"]]
    return invalid([FieldError(str(each["loc"][0]), "required", text_of(each)) for each in details])


def overlaps(block: Block, starts_at: datetime, ends_at: datetime, time_zone: str) -> bool:
    """Whether an appointment at a place in this zone takes blocked time."""
    if isinstance(block.starts, datetime) and isinstance(block.ends, datetime):
        start, end = time_away(TimeOff(block.starts, block.ends), time_zone)
    else:
        start = local_day_bounds(_day(block.starts), time_zone)[0]
        end = local_day_bounds(_day(block.ends), time_zone)[1]
    return starts_at < instant_at(end) and ends_at > instant_at(start)


def _day(moment: datetime | date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment
