"""A provider's appointments as iCalendar, under a secret address."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from asyncpg import Record

from frontdesk import __version__
from frontdesk.access.clients.caller import Caller
from frontdesk.access.limits.failed_attempts import FailedAttempts
from frontdesk.access.opaque_tokens import read_practice_token
from frontdesk.audit.trail import AuditEntry, AuditTrail, append_disclosure
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.errors import Problem
from frontdesk.engine.fair_limiter import FairLimiter
from frontdesk.features.calendar_feeds import FEATURE
from frontdesk.store.database import Database, DatabaseUnavailable, OutcomeUnknown
from frontdesk.systems.port import AppointmentFilter, SchedulingSystem, SystemUnavailable, appointment_pages

_BACK = timedelta(days=30)
READS_PER_MINUTE = 10  # of one feed; calendar programs read it every few minutes
_UNKNOWN = "There is no calendar at this address."
_TOO_OFTEN = "This calendar was read too often in this minute."


@dataclass(frozen=True, slots=True)
class CalendarFeeds:
    """Serves calendar feeds by their secret address."""

    database: Database
    systems: Callable[[Caller], Awaitable[SchedulingSystem]]
    limiter: FairLimiter
    attempts: FailedAttempts
    audit: AuditTrail
    clock: Callable[[], datetime]

    async def read(self, address: str, source: str | None, request_id: str) -> bytes:
        """The calendar of an address. Unknown and revoked addresses get the same response.

        `source` is the reader's network address.
        """
        try:
            return await self._read(address, source, request_id)
        except SystemUnavailable as error:
            raise Problem("upstream_unavailable", error.detail, retry_after=error.retry_after) from error
        except DatabaseUnavailable as error:
            raise Problem("upstream_unavailable", retry_after=2) from error
        except OutcomeUnknown as error:  # the audit record may be missing: show nothing
            raise Problem("internal") from error

    async def _read(self, address: str, source: str | None, request_id: str) -> bytes:
        token = read_practice_token(address)
        if token is None:
            raise Problem("not_found", _UNKNOWN)
        practice_id = token.practice_id
        row = await self._find(practice_id, token.digest, source)
        await self.attempts.count_use("feed", row["feed_id"], READS_PER_MINUTE, _TOO_OFTEN)
        caller = Caller(row["feed_id"], practice_id, row["slug"], frozenset(), "integration", row["version"])
        system = await self.systems(caller)
        if system.remote:  # it has limits of its own
            return await self._read_from(system, practice_id, row, request_id)
        turn = await self.limiter.acquire(caller)
        try:
            return await self._read_from(system, practice_id, row, request_id)
        finally:
            self.limiter.release(caller, turn)

    async def _find(self, practice_id: int, digest: bytes, source: str | None) -> Record:
        async def find() -> Record:
            row = await self.database.fetchrow("SELECT * FROM calendar_feed_of($1, $2)", practice_id, digest)
            if row is None:
                raise Problem("unauthorized")
            return row

        try:
            return await self.attempts.guard("feed", digest.hex(), source, find)
        except Problem as problem:
            if problem.code == "unauthorized":
                raise Problem("not_found", _UNKNOWN) from None
            raise

    async def _read_from(self, system: SchedulingSystem, practice_id: int, row: Record, request_id: str) -> bytes:
        directory = await system.directory()
        if not FEATURE.is_enabled(directory.practice.features):
            raise Problem("not_found", _UNKNOWN)
        now = self.clock()
        appointments = await _appointments(system, row["provider_id"], directory, now)
        patients = list(dict.fromkeys(appointment.patient_id for appointment in appointments))
        people = await system.patients.contacts(patients) if row["with_names"] else {}
        names = {patient_id: contact.name for patient_id, contact in people.items()}
        entry = AuditEntry(practice_id, now, row["feed_id"], "read_calendar_feed", "executed", list(names), request_id)
        async with self.database.transaction(practice_id) as connection:
            await append_disclosure(connection, entry)
        self.audit.seal_soon(practice_id)
        # In a thread: a busy practice has thousands of appointments.
        return await asyncio.to_thread(_calendar, directory, row["provider_id"], appointments, names)


async def _appointments(
    system: SchedulingSystem, provider_id: int, directory: Directory, now: datetime
) -> list[Appointment]:
    """The appointments of the feed's period that are not cancelled, with a day more on both sides for time zones."""
    ahead = timedelta(days=directory.practice.booking_horizon_days + 1)
    wanted = AppointmentFilter(
        provider_id=provider_id, first=(now - _BACK - timedelta(days=1)).date(), last=(now + ahead).date()
    )
    pages = appointment_pages(system, wanted)
    return [each async for page in pages for each in page if each.status != "cancelled"]


def _calendar(directory: Directory, provider_id: int, appointments: list[Appointment], names: dict[str, str]) -> bytes:
    from icalendar import Calendar, Event  # slow to import, and few practices have a feed

    calendar = Calendar()
    calendar.add("prodid", f"-//frontdesk//frontdesk {__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", f"{directory.providers[provider_id].name}, {directory.practice.name}")
    calendar.add("refresh-interval", timedelta(minutes=15), parameters={"VALUE": "DURATION"})
    for appointment in appointments:
        event = Event()
        event.add("uid", hashlib.sha256(f"calendar {appointment.id}".encode()).hexdigest()[:32] + "@frontdesk")
        event.add("dtstamp", appointment.updated_at.astimezone(UTC))
        event.add("dtstart", appointment.starts_at.astimezone(UTC))
        event.add("dtend", appointment.ends_at.astimezone(UTC))
        event.add("summary", names.get(appointment.patient_id, "Busy"))
        event.add("location", directory.locations[appointment.location_id].name)
        event.add("status", "CONFIRMED")
        event.add("class", "PRIVATE")
        calendar.add_component(event)
    return bytes(calendar.to_ical())
