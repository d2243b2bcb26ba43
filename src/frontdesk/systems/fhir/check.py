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
_SEARCHED = ("Slot", "Patient", "Appointment", "PractitionerRole", "Encounter")
_SEEN = ("Appointment", "Encounter")  # tell whether the practice has seen a patient
_ALSO_READ: Mapping[Capability, tuple[str, ...]] = {
    Capability.FIND_SLOTS: ("PractitionerRole", "Appointment"),
    Capability.BOOK: ("PractitionerRole", *_SEEN),
    Capability.RESCHEDULE: ("PractitionerRole", *_SEEN),
    Capability.MATCH_PATIENTS: _SEEN,
    Capability.READ_PATIENTS: _SEEN,
    Capability.UPDATE_PATIENTS: _SEEN,
}
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
    refused: list[str] = []
    for kind in _SEARCHED:
        if upstream.server.can(f"{kind} search-type"):
            finding = await _tried(f"{kind} search", _searched, upstream, kind, [])
            refused += [kind] if finding.is_fault else []
            yield finding
    yield await _tried("further pages", _second_page, upstream)
    yield await _tried("batches", _batched, upstream)
    for operation, capability in operations.items():
        yield _operation(upstream, operation, capability, refused)


def _operation(upstream: Upstream, operation: str, capability: Capability, refused: list[str]) -> Finding:
    """Whether an operation works, by what the server says that it offers and by which searches it refused."""
    missing = upstream.server.missing(capability)
    if missing:
        return Finding(operation, "not supported", f"the server does not offer: {', '.join(missing)}")
    read = {*(need.partition(" ")[0] for need in upstream.server.needs(capability)), *_ALSO_READ.get(capability, ())}
    if in_the_way := [kind for kind in refused if kind in read]:
        return Finding(operation, "misconfigured", f"the server refuses searches of {', '.join(in_the_way)}")
    return Finding(operation, "works", "everything it needs is offered")


async def first_fault(upstream: Upstream) -> str | None:
    """The first thing that is wrong with the connection or our rights, None if all works."""
    finding = await _tried("connection", _connected, upstream)
    for kind in ("Schedule", *_SEARCHED):
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
    server = upstream.server = read_statement(statement, upstream.settings.scheduling_operations)
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


async def _second_page(upstream: Upstream) -> str:
    """Follows one link, as searches with many results do."""
    pages = 0
    async for _ in upstream.client.pages(upstream.deadline(), "Slot", [], one=True):
        pages += 1
        if pages == 2:
            return "a link to the next page was followed"
    return "no search had a second page yet"


async def _batched(upstream: Upstream) -> str:
    one_by_one = "requests are sent one by one"
    if not upstream.server.batches:
        return f"not offered: {one_by_one}"
    upstream.client.batches = True
    await upstream.client.query_all(upstream.deadline(), [Search(kind, [], one=True) for kind in ("Schedule", "Slot")])
    return "several requests are sent as one" if upstream.client.batches else f"refused: {one_by_one}"
