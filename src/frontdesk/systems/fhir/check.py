"""Checks a practice's FHIR server: reads one record of each kind and writes nothing.

Findings name records of the practice file and of the server, never a patient.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from frontdesk.systems.fhir.capabilities import read_statement
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.elements import stamp
from frontdesk.systems.fhir.resources.slots import Schedule
from frontdesk.systems.fhir.transport.queries import Parameters, Search
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.findings import Finding
from frontdesk.systems.port import Capability, Misconfigured, SystemUnavailable

_FHIR_VERSION = "4.0."
_UNREACHABLE = "the server did not answer or returned an error"


async def check(
    upstream: Upstream, practice: PracticeMap, operations: Mapping[str, Capability], now: datetime
) -> AsyncIterator[Finding]:
    """Yields each finding at once, so that the progress of a slow server shows."""
    connection = await _tried("connection", _connected, upstream)
    yield connection
    if connection.is_fault:
        return
    directory, settings = practice.directory, upstream.settings
    for number, reference in settings.locations.items():
        name = directory.locations[number].name if number in directory.locations else "not in the directory"
        yield await _tried(f"location {number} ({name})", _exists, upstream, reference)
    calendars: list[Schedule] = []

    async def read_schedules() -> str:
        calendars.extend((await upstream.read_calendars(upstream.deadline(), practice)).offered)
        return f"{len(calendars)} read"

    yield await _tried("schedules", read_schedules)
    for number, reference in settings.providers.items():
        name = directory.providers[number].name if number in directory.providers else "not in the directory"
        yield await _tried(f"provider {number} ({name})", _exists, upstream, reference)
        mine = [calendar for calendar in calendars if calendar.provider_id == number]
        yield await _tried(f"slots of provider {number}", _slots, upstream, mine, practice, now)
    services = {*settings.visit_types.values(), *settings.procedures.values()}
    for service in sorted(each for each in services if isinstance(each, str)):
        yield await _tried(service, _exists, upstream, service)
    for kind in ("Patient", "Appointment"):
        yield await _tried(f"{kind} search", _searched, upstream, kind, [])
    for operation, capability in operations.items():
        missing = upstream.server.missing(capability)
        detail = f"the server does not offer: {', '.join(missing)}" if missing else "everything it needs is offered"
        yield Finding(operation, "not supported" if missing else "works", detail)


async def first_fault(upstream: Upstream) -> str | None:
    """The first thing that is wrong with the connection or our rights, None if all works."""
    finding = await _tried("connection", _connected, upstream)
    for kind in ("Schedule", "Slot", "Patient", "Appointment"):
        if not finding.is_fault and upstream.server.can(f"{kind} search-type"):
            finding = await _tried(f"{kind} search", _searched, upstream, kind, [])
    return finding.detail if finding.is_fault else None


async def _tried(subject: str, look: Callable[..., Awaitable[str]], *arguments: object) -> Finding:
    try:
        return Finding(subject, "works", await look(*arguments))
    except Misconfigured as error:
        return Finding(subject, "misconfigured", error.reason)
    except SystemUnavailable:
        return Finding(subject, "unreachable", _UNREACHABLE)


async def _connected(upstream: Upstream) -> str:
    statement = await upstream.client.read(upstream.deadline(), "metadata")
    if statement is None or statement["resourceType"] != "CapabilityStatement":
        raise Misconfigured("there is no CapabilityStatement at baseUrl/metadata")
    server = upstream.server = read_statement(statement)
    if not (server.fhir_version or "").startswith(_FHIR_VERSION):
        raise Misconfigured(f"the server speaks FHIR {server.fhir_version or 'of an unknown version'}, not R4 (4.0)")
    return f"{server.software or 'FHIR server'}, FHIR {server.fhir_version}"


async def _exists(upstream: Upstream, reference: str) -> str:
    found = await upstream.client.read(upstream.deadline(), reference)
    if found is None:
        raise Misconfigured(f"the server has no {reference}")
    if found.get("active") is False or found.get("status") == "inactive":
        raise Misconfigured(f"{reference} is not active")
    return reference


async def _slots(upstream: Upstream, calendars: list[Schedule], practice: PracticeMap, now: datetime) -> str:
    if not calendars:
        raise Misconfigured("no active Schedule names this practitioner and a location that the file knows")
    horizon = now + timedelta(days=practice.directory.practice.booking_horizon_days)
    wanted: Parameters = [
        ("schedule", ",".join(sorted({calendar.reference for calendar in calendars}))),
        ("status", "free"),
        ("start", f"ge{stamp(now)}"),
        ("start", f"lt{stamp(horizon)}"),
    ]
    schedules = f"{len(calendars)} schedule{'s' if len(calendars) > 1 else ''}"
    found = await _searched(upstream, "Slot", wanted)
    return f"{schedules}, {'free slots ahead' if found == 'found' else 'no free slot within the booking horizon'}"


async def _searched(upstream: Upstream, kind: str, parameters: Parameters) -> str:
    [found] = await upstream.client.query_all(upstream.deadline(), [Search(kind, parameters, one=True)])
    return "found" if found else "nothing found yet"
