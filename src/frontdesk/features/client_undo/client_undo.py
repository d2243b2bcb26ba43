"""Undoes what a client did since a time: cancels its bookings, restores what it cancelled, moves back what it moved.

What is to be undone is stored first and then done, one ordinary write after the other, so that any request can go on
where another was cut off. The audit trail tells which changes were made, and whether somebody else has made one since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontdesk.audit.reading import AuditFilter, find_records
from frontdesk.desk.actors import actors_of
from frontdesk.desk.appointment_history import Place, changes_of, places_before_moves
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import APPOINTMENT_CHANGED, Problem
from frontdesk.domain.patients import Contact
from frontdesk.engine.execute import Engine
from frontdesk.features.client_undo.actions import EXPORT, LOOK, PREVIEW
from frontdesk.features.client_undo.free_times import without_taken_times
from frontdesk.features.client_undo.plan import (
    BEGUN,
    GONE,
    OF_APPOINTMENTS,
    OF_PATIENTS,
    PASSED,
    TAKEN,
    UndoEntry,
    Undoing,
    undo_entry,
)
from frontdesk.features.client_undo.store import ClientUndo, ClientUndoStore, undo_id_of
from frontdesk.features.client_undo.views import (
    ClientAct,
    PatientWritten,
    UndoPreview,
    UndoRow,
    UndoView,
    digest_of,
    row_of,
    subjects_of,
)
from frontdesk.operations import BY_NAME, MOVE_BACK, RESTORE, Operation
from frontdesk.systems.port import Capability, SchedulingSystem
from frontdesk.texts import N_

BATCH_SIZE = 10  # changes that one request makes; a page goes on with the others
MAX_RECORDS = 1000  # of what the client did, the newest
_READ_AT_ONCE = 50  # appointments that one call of the scheduling system reads
_CANCELLATION = N_("The practice has withdrawn this booking.")
_RESTORATION = N_("The practice has undone what a client did.")
_DIFFERS = N_("This has changed since it was shown. Nothing was undone: look at the list again.")
# The change was not made but can be, or it is not known: it stays to be made.
_UNDECIDED = ("upstream_unavailable", "confirmation_incomplete", "internal", "rate_limited")


@dataclass(frozen=True, slots=True)
class ClientUndos:
    store: ClientUndoStore
    engine: Engine

    async def of_client(self, context: ActionContext, client_id: str) -> list[ClientUndo]:
        context.require("admin")
        return await self.store.of_client(context, client_id)

    async def preview(self, context: ActionContext, client_id: str, since: datetime) -> UndoPreview:
        """What the client did since then, and what can be undone of it. Showing names is recorded."""
        context.require("admin")
        entries, written, complete = await self._plan(context, client_id, since)
        system = await self._system(context)
        rows = await self._rows(system, entries)
        patients = await self._patients(system, written)
        await context.record(PREVIEW.name, *subjects_of(rows, patients), read=True)
        return UndoPreview(since, rows, patients, complete, digest_of(entries))

    async def start(self, context: ActionContext, client_id: str, since: datetime, shown: str, key: str) -> str:
        """Stores what is to be undone, if it is what was shown; `work` does it. The same key returns the same id."""
        context.require("admin")
        undo_id = undo_id_of(context, key)
        if await self.store.find(context, client_id, undo_id) is None:
            entries, _, _ = await self._plan(context, client_id, since)
            if digest_of(entries) == shown:
                await self.store.start(context, undo_id, client_id, since, entries)
            elif await self.store.find(context, client_id, undo_id) is None:  # the same form may have been faster
                raise Problem("conflict", _DIFFERS)
        return undo_id

    async def work(self, context: ActionContext, client_id: str, undo_id: str) -> None:
        """Makes some of the changes. Raises Problem if an outcome is unknown; the next call decides it."""
        context.require("admin")
        undo = await self.store.find(context, client_id, undo_id)
        if undo is None:
            raise Problem("not_found", "There is no such undo.")
        for _ in range(BATCH_SIZE):
            entry = await self.store.pending(context, undo_id)
            if entry is None:
                return
            await self._execute(context, await self._system(context), undo, entry)

    async def read(self, context: ActionContext, client_id: str, undo_id: str, *, as_file: bool = False) -> UndoView:
        """What was undone, with the patients to call. Showing names is recorded."""
        context.require("admin")
        undo, entries = await self.store.one(context, client_id, undo_id)
        system = await self._system(context)
        rows = await self._rows(system, entries)
        written, _ = await self._records(context, client_id, undo.since, OF_PATIENTS, until=undo.started_at)
        patients = await self._patients(system, written)
        actors = await actors_of(self.store.database, context.practice_id, [undo.started_by])
        await context.record((EXPORT if as_file else LOOK).name, *subjects_of(rows, patients), read=True)
        return UndoView(undo, actors[undo.started_by], rows, patients)

    async def _system(self, context: ActionContext) -> SchedulingSystem:
        """For one call, whose time is limited."""
        return await self.engine.systems(context.staff.caller())

    async def _plan(
        self, context: ActionContext, client_id: str, since: datetime
    ) -> tuple[list[UndoEntry], list[ClientAct], bool]:
        """The appointments that the client changed, the last change first; the patients; and whether that is all."""
        acts, complete = await self._records(context, client_id, since, (*OF_APPOINTMENTS, *OF_PATIENTS))
        patient_of = {
            act.appointment_id: act.patient_id
            for act in acts
            if act.operation in OF_APPOINTMENTS and act.appointment_id and act.patient_id
        }
        ids, database, practice_id = list(patient_of), self.store.database, context.practice_id
        histories = await changes_of(database, practice_id, ids)
        before_moves = await places_before_moves(database, practice_id, ids)
        system, entries = await self._system(context), list[UndoEntry]()
        for number, appointment_id in enumerate(ids, 1):
            if number % _READ_AT_ONCE == 0:
                system = await self._system(context)
            entries.append(
                undo_entry(
                    appointment_id,
                    patient_of[appointment_id],
                    histories[appointment_id],
                    client_id,
                    since,
                    await system.appointments.get_appointment(appointment_id),
                    before_moves[appointment_id],
                    system.capabilities,
                    context.now,
                )
            )
        written = [act for act in acts if act.operation in OF_PATIENTS]
        return await without_taken_times(await self._system(context), entries), written, complete

    async def _records(
        self,
        context: ActionContext,
        client_id: str,
        since: datetime,
        operations: tuple[str, ...],
        until: datetime | None = None,
    ) -> tuple[list[ClientAct], bool]:
        """What the client did, the newest first, and whether that is all."""
        wanted = AuditFilter(
            actor=client_id,
            outcome="executed",
            since=since,
            until=None if until is None else until + timedelta(microseconds=1),
            operations=operations,
        )
        page = await find_records(self.store.database, context.practice_id, wanted, MAX_RECORDS)
        found = [
            ClientAct(
                record["at"],
                record["operation"],
                next((each for each in record["subject_ids"] if each.startswith("apt_")), None),
                next((each for each in record["subject_ids"] if each.startswith("pat_")), None),
            )
            for record in page.records
        ]
        return found, len(found) < MAX_RECORDS

    async def _rows(self, system: SchedulingSystem, entries: Sequence[UndoEntry]) -> list[UndoRow]:
        directory = await system.directory()
        contacts = await _contacts(system, [each.patient_id for each in entries])
        return [row_of(each, contacts.get(each.patient_id), directory) for each in entries]

    async def _patients(self, system: SchedulingSystem, acts: Sequence[ClientAct]) -> list[PatientWritten]:
        ids = [act.patient_id for act in acts if act.patient_id]
        contacts = await _contacts(system, ids)
        return [
            PatientWritten(act.patient_id, contacts.get(act.patient_id), act.operation, act.at)
            for act in acts
            if act.patient_id
        ]

    async def _execute(
        self, context: ActionContext, system: SchedulingSystem, undo: ClientUndo, entry: UndoEntry
    ) -> None:
        """Makes the next change of an appointment, unless it was made before or somebody else has changed it."""
        failure = await self._attempt(context, system, undo, entry)
        if failure is None:
            await self.store.finish(context, undo.undo_id, entry, done=entry.done + 1, put_off=entry.put_off)
        elif failure == TAKEN and not entry.put_off:  # perhaps by what is undone after it
            await self.store.finish(context, undo.undo_id, entry, done=entry.done, put_off=True)
        else:
            await self.store.finish(context, undo.undo_id, entry, done=entry.done, failure=failure)

    async def _attempt(
        self, context: ActionContext, system: SchedulingSystem, undo: ClientUndo, entry: UndoEntry
    ) -> str | None:
        """Why the change was not made; None if it was, perhaps by another request."""
        change = entry.changes[entry.done]
        # Read before the trail: what is changed after this has another time.
        appointment = await system.appointments.get_appointment(entry.appointment_id)
        made, is_changed = await self._since(context, undo, entry)
        if is_changed:
            return APPOINTMENT_CHANGED
        if made > entry.done:
            return None
        if appointment is None or entry.place is None:
            return GONE
        if entry.done == 0 and appointment.updated_at != entry.updated_at:
            return APPOINTMENT_CHANGED  # in the practice's own system
        if appointment.starts_at <= context.now:
            return BEGUN
        if change == "move_back" and entry.place.starts_at <= context.now:
            return PASSED
        operation, arguments = self._write(context, system, change, entry.place)
        act = replace(context, request_id=undo.request_id)  # one for all, whichever requests make the changes
        key = f"{undo.undo_id} {entry.appointment_id} {change}"
        call = act.call(operation, {"appointmentId": entry.appointment_id, **arguments}, key)
        call.unchanged_since = appointment.updated_at
        try:
            await self.engine.execute(call)
        except Problem as problem:
            if problem.code in _UNDECIDED:
                raise
            # A key is that of one staff member: a colleague may have made the change meanwhile.
            made, is_changed = await self._since(context, undo, entry)
            if made > entry.done and not is_changed:
                return None
            return TAKEN if problem.code == "slot_unavailable" else problem.detail
        return None

    async def _since(self, context: ActionContext, undo: ClientUndo, entry: UndoEntry) -> tuple[int, bool]:
        """How many changes of an appointment the undo has made, and whether somebody else has made one since."""
        histories = await changes_of(self.store.database, context.practice_id, [entry.appointment_id])
        since = [each for each in histories[entry.appointment_id] if each.record_id > entry.last_record]
        # A client may choose its request id, so that it could be the same.
        ours = [each for each in since if each.request_id == undo.request_id and each.actor.startswith("op_")]
        return len(ours), len(ours) < len(since)

    def _write(
        self, context: ActionContext, system: SchedulingSystem, change: Undoing, place: Place
    ) -> tuple[Operation, Mapping[str, str]]:
        """The operation of a change, with its arguments."""
        if change == "cancel":
            return BY_NAME["cancel_appointment"], {"reason": _CANCELLATION}
        if change in ("restore", "unconfirm"):
            return RESTORE, {"reason": _RESTORATION}
        slot_id = self.engine.slot_ids(context.practice_id).encode(place.slot)
        blocked_too = MOVE_BACK.needs in system.capabilities
        return MOVE_BACK if blocked_too else BY_NAME["reschedule_appointment"], {"slotId": slot_id}


async def _contacts(system: SchedulingSystem, patient_ids: Sequence[str]) -> Mapping[str, Contact]:
    if not patient_ids or Capability.READ_PATIENTS not in system.capabilities:
        return {}
    return await system.patients.contacts(sorted(set(patient_ids)))
