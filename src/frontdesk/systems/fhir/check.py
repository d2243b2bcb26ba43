"""Checks a practice's FHIR server: reads one record of each kind, searches open times, and writes only if allowed.

Findings name records of the practice file and of the server, never a patient.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime

from frontdesk.systems.fhir.capabilities import read_statement
from frontdesk.systems.fhir.reading.lookups import search_of
from frontdesk.systems.fhir.reading.open_slots import SlotFinder
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.slots import Schedule
from frontdesk.systems.fhir.transport.queries import FIND, SearchQuery
from frontdesk.systems.fhir.trial import PATIENT, try_writes
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.findings import Finding
from frontdesk.systems.offers import offered_pairs
from frontdesk.systems.port import Capability, Misconfigured, SlotQuery, SystemUnavailable

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
_BY_FIND = (Capability.FIND_SLOTS, Capability.BOOK, Capability.RESCHEDULE)
_OF_STEPS: Mapping[str, tuple[str, ...]] = {  # the operations that fail as a step of the trial does
    "create a patient": ("create_patient", "update_patient"),
    "update a patient": ("update_patient",),
    "book": ("book_appointment",),
    "move": ("reschedule_appointment",),
    "cancel": ("cancel_appointment", "confirm_attendance"),
}
_UNREACHABLE = "the server did not answer or returned an error"


async def check(
    upstream: Upstream, practice: PracticeMap, operations: Mapping[str, Capability], now: datetime, *, write: bool
) -> AsyncIterator[Finding]:
    """Yields each finding at once, so that the progress of a slow server shows. `write`: appointments may be made."""
    connection = await _tried("connection", _connected, upstream)
    yield connection
    if connection.is_error:
        return
    directory, settings = practice.directory, upstream.settings
    for number, reference in settings.locations.items():
        name = directory.locations[number].name if number in directory.locations else "not in the directory"
        yield await _tried(f"location {number} ({name})", _exists, upstream, reference)
    calendars: list[Schedule] = []
    refused: list[str] = []
    yield await _tried("open times", _way, upstream, practice)

    async def read_schedules() -> str:
        calendars.extend((await upstream.read_calendars(upstream.deadline(), practice)).offered)
        return f"{len(calendars)} read"

    yield await _tried("schedules", read_schedules)
    for number, reference in settings.providers.items():
        name = directory.providers[number].name if number in directory.providers else "not in the directory"
        yield await _tried(f"provider {number} ({name})", _exists, upstream, reference)
        mine = [calendar for calendar in calendars if calendar.provider_id == number]
        finding = await _tried(f"slots of provider {number}", _slots, upstream, mine, practice, number, now)
        refused += [FIND] if FIND in upstream.client.sender.misconfigurations else []
        yield finding
    services = {*settings.visit_types.values(), *settings.procedures.values()}
    for service in sorted(each for each in services if isinstance(each, str)):
        yield await _tried(service, _exists, upstream, service)
    for kind in _SEARCHED:
        if upstream.server.can(f"{kind} search-type"):
            finding = await _tried(f"{kind} search", _searched, upstream, kind)
            refused += [kind] if finding.is_error else []
            yield finding
    yield await _tried("further pages", _second_page, upstream)
    yield await _tried("batches", _batched, upstream)
    if write:
        async for finding in try_writes(upstream, practice, now):
            refused += _OF_STEPS.get(finding.subject, ()) if finding.is_error else ()
            yield finding
    for operation, capability in operations.items():
        yield _operation(upstream, operation, capability, refused)


def _operation(upstream: Upstream, operation: str, capability: Capability, refused: list[str]) -> Finding:
    """Whether an operation works, by what the server says that it offers and by which searches it refused."""
    missing = upstream.server.missing(capability)
    if missing:
        return Finding(operation, "not supported", f"the server does not offer: {', '.join(missing)}")
    read = {*(need.partition(" ")[0] for need in upstream.server.needs(capability)), *_ALSO_READ.get(capability, ())}
    if operation in refused:
        return Finding(operation, "misconfigured", "the write that was tried did not succeed")
    if capability in _BY_FIND and FIND in refused:
        return Finding(operation, "misconfigured", f"the server refuses {FIND}")
    if in_the_way := [kind for kind in refused if kind in read]:
        return Finding(operation, "misconfigured", f"the server refuses searches of {', '.join(in_the_way)}")
    return Finding(operation, "works", "everything it needs is offered")


async def first_error(upstream: Upstream) -> str | None:
    """The first thing that is wrong with the connection or our rights, None if all works."""
    finding = await _tried("connection", _connected, upstream)
    for kind in ("Schedule", *_SEARCHED):
        if not finding.is_error and upstream.server.can(f"{kind} search-type"):
            finding = await _tried(f"{kind} search", _searched, upstream, kind)
    return finding.detail if finding.is_error else None


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


async def _way(upstream: Upstream, practice: PracticeMap) -> str:
    """Says how open times are found and booked, for all services or for which."""
    server = upstream.server
    pairs = [
        (procedure.name, server.proposes(practice.services(visit_type.id, procedure.id)))
        for visit_type in practice.directory.visit_types.values()
        for procedure in visit_type.procedures
    ]
    operations = f"by the server's $find and $book ({server.shape})"
    proposed = [name for name, is_proposed in pairs if is_proposed]
    if not proposed:
        is_unlisted = server.shape is None and (server.software or "").lower() == "medplum"
        return "by free Slots" + (
            "; schedulingOperations: medplum would use its $find and $book" if is_unlisted else ""
        )
    return operations if len(proposed) == len(pairs) else f"{operations}: {', '.join(proposed)}; others by free Slots"


async def _slots(
    upstream: Upstream, calendars: list[Schedule], practice: PracticeMap, number: int, now: datetime
) -> str:
    """Searches for the first open time of each service of a provider, as a caller would."""
    if not calendars and upstream.server.can("Schedule search-type"):
        raise Misconfigured("no active Schedule names this practitioner and a location that the file knows")
    schedules = f"{len(calendars)} schedule{'s' if len(calendars) != 1 else ''}"
    found = []
    for visit_type in practice.directory.visit_types.values():
        for procedure in visit_type.procedures:
            query = SlotQuery(visit_type.id, procedure.id, number, None, None, None)
            if not list(offered_pairs(practice.directory, visit_type, procedure, query)):
                continue
            finder = SlotFinder(upstream, practice, upstream.deadline())
            if (await finder.find(query, now, 1, None)).by_provider:
                found.append(procedure.name)
            else:
                await _explain(practice, finder, query, now)
    return f"{schedules}, open times ahead for: {', '.join(found)}" if found else f"{schedules}, no open time ahead"


async def _explain(practice: PracticeMap, finder: SlotFinder, query: SlotQuery, now: datetime) -> None:
    """Raises Misconfigured if the server proposes times of another duration."""
    lengths = await finder.proposed_minutes(query, now)
    visit_type = practice.directory.visit_types[query.visit_type_id]
    procedure = visit_type.procedure(query.procedure_id)
    if procedure is not None and lengths and procedure.duration_minutes not in lengths:
        proposed = " or ".join(str(each) for each in sorted(lengths))
        reason = f"$find proposes {proposed} minutes for {procedure.name}, the file says {procedure.duration_minutes}"
        raise Misconfigured(reason)


async def _searched(upstream: Upstream, kind: str) -> str:
    asked: list[tuple[str, str]] = []
    if kind == "Patient" and upstream.server.is_frontdesk:
        asked = search_of(upstream.server, PATIENT.first_name, PATIENT.last_name, PATIENT.phone, PATIENT.dob)
    [found] = await upstream.client.query_all(upstream.deadline(), [SearchQuery(kind, asked, one=True)])
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
    upstream.client.batches.offer(True)
    await upstream.client.query_all(
        upstream.deadline(), [SearchQuery(kind, [], one=True) for kind in ("Schedule", "Slot")]
    )
    return f"refused: {one_by_one}" if upstream.client.batches.refusals else "several requests are sent as one"
