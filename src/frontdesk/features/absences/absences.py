"""A provider who is away at short notice: blocks the time, and moves, cancels or leaves each appointment in it.

Choices are stored before they are executed, one ordinary write after the other, so that any request can go on where
another was cut off. What became of an appointment is read from the calendar.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from frontdesk.desk.actors import actors_of
from frontdesk.desk.blocks import Block, Blocks, appointments_in
from frontdesk.desk.context import ActionContext
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import TimeOff
from frontdesk.domain.errors import FieldError, Problem, invalid
from frontdesk.engine.execute import Engine
from frontdesk.features.absences.actions import CALL_LIST, LOOK
from frontdesk.features.absences.proposed_times import ProposedTimes
from frontdesk.features.absences.records import (
    Absence,
    AbsenceEntry,
    AbsenceRow,
    AbsenceView,
    BlockedPart,
    Choice,
    entry_of,
    place_of,
    place_wanted,
    row_of,
    state_of,
)
from frontdesk.features.absences.store import AbsenceStore, new_absence_id
from frontdesk.operations import BY_NAME, MOVE_BACK, RESTORE, Operation
from frontdesk.systems.port import Capability, SchedulingSystem
from frontdesk.texts import N_, Text

MAX_LENGTH = timedelta(days=31)
BATCH_SIZE = 5  # appointments that one request changes; a page goes on with the others
_MAX_LISTED = 150  # to decide on, because the fields of a form are limited
_LIVE = ("booked", "confirmed", "arrived")
_CANCELLATION = N_("The provider is away.")
_RESTORATION = N_("The provider is available again.")
# The write was not executed but can be, or it is not known: the choice stays.
_UNDECIDED = ("upstream_unavailable", "confirmation_incomplete", "internal", "rate_limited")
_TAKEN = N_("The chosen time has been taken by somebody else.")
_TAKEN_BEFORE = N_("It cannot be undone: the earlier time is no longer free.")
_CHANGED = N_("It cannot be undone: the appointment has been changed since.")
_PASSED = N_("It cannot be undone: the earlier time has passed.")
_GONE = N_("The practice's system no longer has this appointment.")


@dataclass(frozen=True, slots=True)
class Absences:
    store: AbsenceStore
    engine: Engine
    blocks: Blocks

    async def start(self, context: ActionContext, block: Block) -> str:
        """Blocks the time first, so that nothing new is booked into it. Returns the id of the absence."""
        if block.provider_id is None or not isinstance(block.starts, datetime) or not isinstance(block.ends, datetime):
            raise Problem("not_found", "There is no such provider.")
        if block.ends - block.starts > MAX_LENGTH:
            text = Text("%(field)s must be at most %(days)s days after from", days=MAX_LENGTH.days)
            raise invalid([FieldError("to", "maxWindow", text)])
        system = await self._system(context)
        covering = await self.store.covering(context, block.provider_id, block.starts, block.ends)
        if Capability.BLOCK_TIME in system.capabilities:  # inside another absence that one's time: undoing it opens all
            await self.blocks.change(context, block if covering is None else covering.block)
        if covering is not None:
            return covering.absence_id
        directory = await system.directory()
        provider = directory.providers.get(block.provider_id)
        if provider is None or not provider.active:
            raise Problem("not_found", "There is no such provider.")
        found = [each for each in await appointments_in(system, directory, block) if each.status in _LIVE]
        by = (block.reason, context.staff.staff_id, context.now)
        away = Absence(new_absence_id(), block.provider_id, block.starts, block.ends, *by, ended_at=None)
        return await self.store.start(context, away, found)

    async def current(self, context: ActionContext, first: date, last: date) -> list[Absence]:
        """The absences on these days that were not undone."""
        return await self.store.current(context, first, last)

    async def read(
        self, context: ActionContext, absence_id: str, purpose: Literal["absence", "call_list"] = "absence"
    ) -> AbsenceView:
        """The absence with its appointments; only a call list has no proposed times. Showing names is recorded."""
        absence, entries = await self.store.find(context, absence_id)
        system = await self._system(context)
        there = await _there(system, absence, entries)
        if absence.ended_at is None:
            entries |= {each.id: entry_of(each) for each in there.values() if each.id not in entries}
        directory = await system.directory()  # reading may have loaded a newer one
        contacts = (
            await system.patients.contacts(list({each.patient_id for each in entries.values()})) if entries else {}
        )
        callers = {each.called_by for each in entries.values() if each.called_by is not None}
        actors = await actors_of(self.store.database, context.practice_id, {*callers, absence.started_by})
        times = ProposedTimes(system, self.engine.slot_ids(context.practice_id), directory, context.now, absence.block)
        rows: list[AbsenceRow] = []
        undecided = 0
        for entry in sorted(entries.values(), key=lambda each: (each.starts_at, each.appointment_id)):
            appointment = there.get(entry.appointment_id)
            row = row_of(absence, entry, appointment, directory, context.now)
            if row.is_undecided and absence.ended_at is None and purpose == "absence":
                undecided += 1
                if undecided > _MAX_LISTED:
                    continue
                if appointment is not None and not row.has_begun:
                    row = replace(row, proposals=await times.of(appointment))
            called_by = actors[entry.called_by] if entry.called_by and entry.announced_place == row.place else None
            rows.append(replace(row, patient=contacts.get(entry.patient_id), called_by=called_by))
        await context.record((CALL_LIST if purpose == "call_list" else LOOK).name, *sorted(contacts), read=True)
        provider = directory.providers[absence.provider_id]
        return AbsenceView(
            absence=absence,
            provider=provider.name,
            by=actors[absence.started_by],
            rows=rows,
            may_block=Capability.BLOCK_TIME in system.capabilities,
            is_blocked=any(off.starts <= absence.starts and absence.ends <= off.ends for off in provider.time_off),
            still_blocked=await self._still_blocked(context, absence, provider.time_off) if absence.ended_at else (),
            may_restore=Capability.RECORD_ATTENDANCE in system.capabilities,
            is_complete=undecided <= _MAX_LISTED,
        )

    async def choose(self, context: ActionContext, absence_id: str, chosen: Mapping[str, str]) -> None:
        """Stores what is to become of appointments: a slot id, cancel or leave. `work` executes it."""
        absence, entries = await self.store.find(context, absence_id)
        if absence.ended_at is not None:
            raise Problem("conflict", "This absence has been undone.")
        slot_ids = self.engine.slot_ids(context.practice_id)
        if any(value not in ("cancel", "leave") and slot_ids.decode(value) is None for value in chosen.values()):
            raise Problem("not_found", "There is no such slot.")
        there = await _there(await self._system(context), absence, {})
        added = [there[each] for each in chosen if each not in entries and each in there]
        await self.store.choose(context, absence, chosen, added)

    async def take_back(self, context: ActionContext, absence_id: str, appointment_id: str | None) -> None:
        """Chooses to give an appointment its former time; None: all of them, and the provider's time. `work` executes
        it."""
        absence, _ = await self.store.find(context, absence_id)
        await self.store.take_back(context, absence, appointment_id)

    async def work(self, context: ActionContext, absence_id: str) -> None:
        """Executes some choices. After an absence was undone and everything taken back, opens the time.

        Raises Problem if an outcome is unknown; the choice stays, and the next call decides it.
        """
        absence, _ = await self.store.find(context, absence_id)
        system = await self._system(context)
        for _ in range(BATCH_SIZE):
            entry = await self.store.pending(context, absence_id)
            if entry is None:
                break
            await self._execute(context, system, absence, entry)
        if absence.ended_at is not None and await self.store.pending(context, absence_id) is None:
            await self._unblock(context, system, absence)

    async def record_call(
        self, context: ActionContext, absence_id: str, appointment_id: str, place: str, *, called: bool
    ) -> None:
        """Notes that the patient was told this place, or takes the note back."""
        await self.store.record_call(context, absence_id, appointment_id, place, called=called)

    async def _system(self, context: ActionContext) -> SchedulingSystem:
        return await self.engine.systems(context.staff.caller())

    async def _execute(
        self, context: ActionContext, system: SchedulingSystem, absence: Absence, entry: AbsenceEntry
    ) -> None:
        """Executes one choice, unless the calendar shows that it was executed before or is out of date."""
        wanted = place_wanted(absence, entry, self.engine.slot_ids(context.practice_id))
        appointment, failure = await system.appointments.get_appointment(entry.appointment_id), None
        given_up = absence.ended_at is not None and entry.choice != "back"
        if appointment is not None and place_of(appointment) != wanted and not given_up:
            failure = await self._attempt(context, system, absence, entry, appointment)
            appointment = await system.appointments.get_appointment(entry.appointment_id)
        after: Choice | None = None
        outcome = entry.outcome
        if appointment is None:
            failure = _GONE
        elif place_of(appointment) == wanted:
            after, outcome = ("leave", None) if entry.choice == "back" else ("back" if given_up else None, wanted)
        await self.store.finish(context, absence, entry, after, failure, outcome)

    async def _attempt(
        self,
        context: ActionContext,
        system: SchedulingSystem,
        absence: Absence,
        entry: AbsenceEntry,
        appointment: Appointment,
    ) -> str | None:
        """Why the choice was not executed; None if it was, or if somebody else has moved the appointment meanwhile."""
        if entry.choice != "back":
            if state_of(absence, entry, appointment, await system.directory()) != "pending":
                return None
        elif place_of(appointment) != entry.outcome:
            return _CHANGED
        elif appointment.status == "cancelled" and appointment.cancellation_reason != _CANCELLATION:
            return _CHANGED  # somebody else has cancelled it
        elif entry.starts_at <= context.now:
            return _PASSED
        operation, arguments = self._write(context, system, absence, entry, appointment)
        # One request id for the whole act, whichever requests execute it.
        act = replace(context, request_id=entry.request_id or context.request_id)
        key = f"{absence.absence_id} {appointment.id} {entry.choice} {act.request_id}"
        try:
            await self.engine.execute(act.call(operation, {"appointmentId": appointment.id, **arguments}, key))
        except Problem as problem:
            if problem.code in _UNDECIDED:
                raise
            if problem.code == "slot_unavailable":
                return _TAKEN_BEFORE if entry.choice == "back" else _TAKEN
            return problem.detail
        return None

    def _write(
        self,
        context: ActionContext,
        system: SchedulingSystem,
        absence: Absence,
        entry: AbsenceEntry,
        appointment: Appointment,
    ) -> tuple[Operation, Mapping[str, str]]:
        """The operation of a choice, with its arguments."""
        if entry.choice == "cancel":
            return BY_NAME["cancel_appointment"], {"reason": _CANCELLATION}
        if entry.choice == "move":
            return BY_NAME["reschedule_appointment"], {"slotId": entry.slot_id or ""}
        if appointment.status == "cancelled":
            return RESTORE, {"reason": _RESTORATION}
        before = self.engine.slot_ids(context.practice_id).encode(entry.slot(absence.provider_id))
        blocks_time = Capability.BLOCK_TIME in system.capabilities
        return MOVE_BACK if blocks_time else BY_NAME["reschedule_appointment"], {"slotId": before}

    async def _unblock(self, context: ActionContext, system: SchedulingSystem, absence: Absence) -> None:
        """Opens the time that the absence has blocked, unless it was recorded again meanwhile. An absence that only
        overlaps has a block of its own."""
        provider = (await system.directory()).providers[absence.provider_id]
        span = (absence.starts, absence.ends)
        blocked = any(off.by is not None and (off.starts, off.ends) == span for off in provider.time_off)
        again = any((each.starts, each.ends) == span for each in await self._overlapping(context, absence))
        if blocked and not again:
            await self.blocks.change(context, absence.block, remove=True)

    async def _overlapping(self, context: ActionContext, absence: Absence) -> list[Absence]:
        """The provider's current absences in this time."""
        return [
            each
            for each in await self.current(context, absence.starts.date(), absence.ends.date())
            if each.provider_id == absence.provider_id and each.starts < absence.ends and absence.starts < each.ends
        ]

    async def _still_blocked(
        self, context: ActionContext, absence: Absence, time_off: Sequence[TimeOff]
    ) -> list[BlockedPart]:
        """What of the time of an absence that was undone is blocked, by the start."""
        current = {(each.starts, each.ends): each.absence_id for each in await self._overlapping(context, absence)}
        parts = [
            BlockedPart(
                max(off.starts, absence.starts),
                min(off.ends, absence.ends),
                off.reason,
                current.get((off.starts, off.ends)) if off.by is not None else None,
            )
            for off in time_off
            if off.starts < absence.ends and absence.starts < off.ends
        ]
        return sorted(parts, key=lambda each: each.starts)


async def _there(
    system: SchedulingSystem, absence: Absence, entries: Mapping[str, AbsenceEntry]
) -> dict[str, Appointment]:
    """The live appointments in the time of the absence, and those of the entries wherever they are now."""
    found = {each.id: each for each in await appointments_in(system, await system.directory(), absence.block)}
    there = {each.id: each for each in found.values() if each.id in entries or each.status in _LIVE}
    for appointment_id in sorted(entries.keys() - found.keys()):
        appointment = await system.appointments.get_appointment(appointment_id)
        if appointment is not None:
            there[appointment_id] = appointment
    return there
