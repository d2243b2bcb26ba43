"""Tries the writes of a practice's FHIR server with a patient of its own, in the far future, and takes them back.

The writes go through the steps of real ones, but nothing is stored, audited or announced here.
"""

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from secrets import token_hex

from frontdesk.domain.directory import Procedure, VisitType
from frontdesk.domain.local_time import instant_at
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.changes import (
    Book,
    Booking,
    ChangeStatus,
    CreatePatient,
    PatientDetails,
    RecordChange,
    Reschedule,
)
from frontdesk.systems.fhir.reading.lookups import Reader
from frontdesk.systems.fhir.reading.open_slots import SlotFinder
from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources.appointments import PracticeMap, undone
from frontdesk.systems.fhir.resources.elements import Resource, reference_of
from frontdesk.systems.fhir.resources.slots import Opening
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.fhir.writing.steps import WriteOutcomeUnknown
from frontdesk.systems.fhir.writing.stored import StoredWrite
from frontdesk.systems.fhir.writing.writes import PreparedWrite, Writer
from frontdesk.systems.findings import Finding
from frontdesk.systems.port import Misconfigured, OpenSlots, SlotQuery, SystemUnavailable

PATIENT = PatientDetails("Frontdesk", "Check", date(1900, 1, 1), "+1 555 010 0100", None)
_LOCAL_ID = "check"
_LAST_DAYS = 7  # of the booking horizon
_MAX_SLOTS = 2000
_GAP_MINUTES = 60  # between the two times, for buffers


@dataclass
class _Trial:
    upstream: Upstream
    practice: PracticeMap
    now: datetime
    left: list[str] = field(default_factory=list)
    dangling: list[str] = field(default_factory=list)  # what could not be taken back

    async def execute(self, change: RecordChange, asked: PreparedWrite, patient: str = _LOCAL_ID) -> str:
        """The reference of the record that was written; raises what an operator has to know."""
        stored = StoredWrite(self.upstream.server, self.practice, asked, patient)
        data = stored.data(change, self.now)
        write = PendingWrite(token_hex(16), token_hex(32), "", "executing", change.kind, data, self.now)
        writer = Writer(self.upstream, self.practice, self.upstream.deadline(), write, asked)
        try:
            ending = await writer.execute(self.now)
        except WriteOutcomeUnknown:
            raise Misconfigured("the outcome is unknown, or was wrong and could not be undone") from None
        return _reference(ending)

    async def read(self, reference: str) -> Resource:
        found = await self.upstream.client.read(self.upstream.deadline(), reference)
        if found is None:
            raise Misconfigured(f"the server does not return {reference}, which it has just stored")
        return found


def _reference(ending: WriteOutcome) -> str:
    if ending.record is not None:
        return str(ending.record["reference"])
    if ending.outcome == "upstream_unavailable":
        raise ending.unavailable
    raise Misconfigured(ending.reason or f"the server answered: {ending.outcome}")


async def try_writes(upstream: Upstream, practice: PracticeMap, now: datetime) -> AsyncIterator[Finding]:
    """Creates a patient, books, moves and cancels an appointment; the last finding says what was left behind."""
    trial = _Trial(upstream, practice, now)
    created = await _tried("create a patient", _patient(trial))
    yield created
    if created.is_error:
        return
    patient = created.detail
    async for finding in _try_appointment(trial, patient):
        yield finding
    if upstream.server.is_frontdesk:
        trial.left.append(f"{patient} (used again by the next check)")
    else:
        deactivated = await _tried("update a patient", _deactivate(trial, patient))
        yield deactivated
        if deactivated.is_error:
            trial.dangling.append(f"{patient}, which is active")
        else:
            trial.left.append(f"{patient} (inactive)")
    if trial.dangling:
        yield Finding("left behind", "misconfigured", f"to be undone by you: {', '.join(trial.dangling)}")
    else:
        yield Finding("left behind", "works", ", ".join(trial.left))


async def _patient(trial: _Trial) -> str:
    """A new patient, or the one of an earlier check in another frontdesk, where patients stay on file."""
    if trial.upstream.server.is_frontdesk:
        reader = Reader(trial.upstream, trial.practice, trial.upstream.deadline())
        found = await reader.matching(PATIENT.first_name, PATIENT.last_name, PATIENT.phone, PATIENT.dob)
        if found:
            return reference_of(found[0])
    change = CreatePatient(_LOCAL_ID, PATIENT)
    return await trial.execute(change, PreparedWrite(change))


async def _try_appointment(trial: _Trial, patient: str) -> AsyncIterator[Finding]:
    times: list[SlotRef] = []
    booked = await _tried("book", _book_last(trial, patient, times))
    yield booked
    if booked.is_error:
        if times:
            trial.dangling.append(f"an appointment of {patient}, if there is one")
        return
    appointment = booked.detail
    if len(times) > 1:
        yield await _tried("move", _move(trial, patient, appointment, times[0]))
    cancelled = await _tried("cancel", _cancel(trial, appointment))
    yield cancelled
    if cancelled.is_error:
        trial.dangling.append(f"{appointment}, which may be booked")
    else:
        trial.left.append(f"{appointment} (cancelled)")


async def _tried(step: str, write: Awaitable[str]) -> Finding:
    try:
        return Finding(step, "works", await write)
    except Misconfigured as error:
        return Finding(step, "misconfigured", error.reason)
    except SystemUnavailable:
        return Finding(step, "unreachable", "the server did not answer or returned an error")


async def _book_last(trial: _Trial, patient: str, times: list[SlotRef]) -> str:
    """Books the last open time; `times` are filled with those that were found."""
    found = await _last_times(trial)
    if not found:
        raise Misconfigured("no time is open within the booking horizon")
    times += found
    change = Book(0, _LOCAL_ID, _LOCAL_ID, _booking(found[-1]))
    return await trial.execute(change, PreparedWrite(change, opening=await _opening(trial, found[-1])), patient)


async def _move(trial: _Trial, patient: str, appointment: str, ref: SlotRef) -> str:
    before = await trial.read(appointment)
    change = Reschedule(0, _LOCAL_ID, _LOCAL_ID, ref.provider_id, ("booked",), _booking(ref))
    return await trial.execute(change, PreparedWrite(change, before, await _opening(trial, ref, before)), patient)


async def _cancel(trial: _Trial, appointment: str) -> str:
    change = ChangeStatus(_LOCAL_ID, "cancelled", ("booked",), only_upcoming=True, reason="Check of the connection")
    return await trial.execute(change, PreparedWrite(change, await trial.read(appointment)))


async def _deactivate(trial: _Trial, patient: str) -> str:
    resource = undone(await trial.read(patient), "", "")
    try:
        await trial.upstream.client.update(trial.upstream.deadline(), resource)
    except (Declined, AnswerLost) as error:
        raise Misconfigured("the patient could not be made inactive") from error
    return patient


async def _last_times(trial: _Trial) -> list[SlotRef]:
    """Two open times of one provider and service that do not touch, as late as they can be booked, or fewer."""
    directory, now = trial.practice.directory, trial.now
    horizon = now + timedelta(days=directory.practice.booking_horizon_days)
    # The patient is new: visit types for existing patients come last.
    for visit_type in sorted(directory.visit_types.values(), key=lambda each: each.patient_kind == "existing"):
        for procedure in visit_type.procedures:
            for days in (_LAST_DAYS, directory.practice.booking_horizon_days):
                first = (horizon - timedelta(days=days)).date()
                query = SlotQuery(visit_type.id, procedure.id, None, None, max(first, now.date()), horizon.date())
                finder = SlotFinder(trial.upstream, trial.practice, trial.upstream.deadline())
                found = await finder.find(query, now, _MAX_SLOTS, None)
                if found.by_provider:
                    return _apart(found.by_provider, visit_type, procedure)
    return []


def _apart(found: Sequence[OpenSlots], visit_type: VisitType, procedure: Procedure) -> list[SlotRef]:
    last, minutes = found[-1], procedure.duration_minutes
    same = [each for each in found if (each.provider_id, each.location_id) == (last.provider_id, last.location_id)]
    starts = [start for each in same for start in each.starts]
    earlier = [start for start in starts if start <= starts[-1] - minutes - _GAP_MINUTES][-1:]
    return [
        SlotRef(last.provider_id, last.location_id, visit_type.id, procedure.id, start, minutes)
        for start in (*earlier, starts[-1])
    ]


async def _opening(trial: _Trial, ref: SlotRef, moved: Resource | None = None) -> Opening | None:
    visit_type = trial.practice.directory.visit_types[ref.visit_type_id]
    procedure = visit_type.procedure(ref.procedure_id)
    assert procedure is not None
    deadline = trial.upstream.deadline()
    finder = SlotFinder(trial.upstream, trial.practice, deadline)
    query = await finder.opening(ref, visit_type, procedure, trial.now, moved)
    opening: Opening | None
    [opening] = await trial.upstream.client.read_all(deadline, query)
    return opening


def _booking(ref: SlotRef) -> Booking:
    starts, ends = instant_at(ref.start), instant_at(ref.start + ref.duration_minutes)
    return Booking(ref.provider_id, ref.location_id, ref.visit_type_id, ref.procedure_id, starts, ends, ends)
