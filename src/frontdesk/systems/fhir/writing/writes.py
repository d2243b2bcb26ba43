"""Executes writes on a FHIR server step by step, and settles those with an unknown outcome.

A booking claims its slots before it creates the appointment, or is made by the server's `$book`; a cancelled or moved
appointment frees its old slots last.
If what the server stored differs from the request, or somebody else has taken the time meanwhile, it is undone.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NoReturn

from frontdesk.systems.changes import ChangeStatus, CreatePatient, PatientDetails, RecordChange, UpdatePatient
from frontdesk.systems.fhir.reading.lookups import Reader
from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources import patients
from frontdesk.systems.fhir.resources.appointments import PracticeMap, undone
from frontdesk.systems.fhir.resources.elements import (
    CLAIMS,
    INTENTS,
    Resource,
    has_identifier,
    identifier_values,
    reference_of,
    with_identifier,
)
from frontdesk.systems.fhir.resources.proposals import book_parameters, in_service, new_slots
from frontdesk.systems.fhir.resources.slots import Opening
from frontdesk.systems.fhir.transport.client import Made
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.fhir.write_data import Release
from frontdesk.systems.fhir.writing.operations import OperationSteps
from frontdesk.systems.fhir.writing.outcomes import executed_outcome, stored_result, subject_ids
from frontdesk.systems.fhir.writing.overlaps import BOOKED_OTHERWISE, TIME_TAKEN, OverlapCheck
from frontdesk.systems.fhir.writing.steps import UNAVAILABLE, WriteEnded, WriteOutcomeUnknown, WriteSteps
from frontdesk.systems.port import SystemUnavailable
from frontdesk.texts import N_

NOT_CARRIED_OUT = N_("The scheduling system accepted the change but did not carry it out.")

UNSEEN_AFTER = timedelta(seconds=10)  # when a record that was not found counts as not created


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """What a write starts from: the checked change, the record to change as it was read, and the time to take."""

    change: RecordChange | None  # None where a write is settled: what a person said is not stored
    before: Resource | None = None
    opening: Opening | None = None
    is_resent: bool = False  # an earlier attempt may have been executed, or may still be


class Writer:
    """One write. `write.data` is what is stored of it: ids, references and times, no personal data."""

    def __init__(
        self,
        upstream: Upstream,
        practice: PracticeMap,
        deadline: Deadline,
        write: PendingWrite,
        asked: PreparedWrite | None,
    ) -> None:
        self._practice = practice
        self._write = write
        self._asked = asked or PreparedWrite(None)
        self._claims_slots = upstream.server.can("Slot update")
        self._client = upstream.client
        self._deadline = deadline
        self._reader = Reader(upstream, practice, deadline)
        self._overlaps = OverlapCheck(upstream, practice, deadline, write)
        self._shape = upstream.server.shape
        self._cancels = upstream.server.cancels and bool(write.data.get("proposed") or write.data.get("cancels"))
        self._cancels_at_once = upstream.server.cancels_at_once
        self._steps = WriteSteps(upstream.client, deadline, write, cancels=self._cancels)
        self._operations = OperationSteps(upstream.client, deadline, write, self._steps)

    @property
    def releases(self) -> list[Release]:
        """What has to be freed or watched."""
        return self._steps.releases

    async def execute(self, now: datetime) -> WriteOutcome:
        """Executes the write. Raises WriteOutcomeUnknown if its outcome is unknown."""
        steps = {
            "book": self._book,
            "reschedule": self._reschedule,
            "status": self._status,
            "create_patient": self._create_patient,
            "update_patient": self._update_patient,
        }
        try:
            ending = await steps[self._write.change](now)
        except WriteEnded as stopped:
            ending = replace(stopped.ending, subjects=self.subjects)
        except SystemUnavailable as error:
            ending = WriteOutcome(UNAVAILABLE, self.subjects, unavailable=error)
        await self._steps.release()
        return ending

    async def settle(self, now: datetime, *, final: bool) -> WriteOutcome | None:
        """Finds out how an abandoned write ended; None if that cannot be said yet. `final`: no request can arrive any
        more. Raises SystemUnavailable or WriteOutcomeUnknown if the server does not tell."""
        found, data = await self._find(), self._write.data
        if found is None and not final and not await self._cannot_arrive_late(now):
            return None
        if found is not None and data.get("cancels") and self._practice.status(found) != "cancelled":
            found = await self._operations.cancel_again(found)
        wrong = found is not None and (data.get("wrong", False) or self._is_wrong(found))
        if found is not None and not wrong and self._is_latest(found) and self._write.change in ("book", "reschedule"):
            wrong = await self._overlaps.find(found, self._steps.marked) is not None
        if found is None or wrong:
            self._steps.releases = [
                {"slot": slot, "claims": [self._write.id], "ours": True} for slot in data.get("slots", ())
            ]
            if self._made_slots:
                self._steps.releases.append({"occupied": True})
        if found is None:
            if self._creates is not None and not final:
                self._steps.watch(self._creates)
            ending = WriteOutcome(UNAVAILABLE, self.subjects)
        elif wrong:
            ending = await self._undo_found(found)
        else:
            if self._creates is not None:
                found = await self._steps.mark_as_ours(found)
            ending = self._executed(reference_of(found), now)
        await self._steps.release(final=final)
        return ending

    @property
    def _creates(self) -> str | None:
        """The type of record that the write creates, None if it changes one."""
        return {"book": "Appointment", "create_patient": "Patient"}.get(self._write.change)

    @property
    def _made_slots(self) -> bool:
        return self._write.change == "reschedule" and bool(self._write.data.get("proposed"))

    async def _cannot_arrive_late(self, now: datetime) -> bool:
        """Whether a write that was not found counts as not executed: a record that is created late will be undone, and
        a late change fails once the record has another version."""
        if self._creates is not None:
            return now >= self._write.began_at + UNSEEN_AFTER
        return await self._steps.supersede_version(self._write.data["reference"])

    async def _book(self, now: datetime) -> WriteOutcome:
        opening = self._asked.opening
        if opening is None:
            raise WriteEnded(WriteOutcome("slot_unavailable"))
        if opening.proposal is not None and self._shape is not None:
            parameters = book_parameters(self._shape, self._wanted(), opening.proposal)
            stored = await self._operations.book(parameters, self._stop_if_taken, is_resent=self._asked.is_resent)
        else:
            if self._claims_slots:
                await self._steps.claim(opening.run)
            stored = await self._steps.create(self._wanted(), self._stop_if_taken)
        stored = await self._steps.mark_as_ours(stored)
        if self._practice.differs(self._wanted(), stored) or stored.get("status") not in ("booked", "pending"):
            other: WriteOutcome | None = WriteOutcome("declined", reason=BOOKED_OTHERWISE)
        else:
            other = await self._verified(stored)
        if other is not None:
            text = other.reason if other.reason == BOOKED_OTHERWISE else TIME_TAKEN
            await self._undo_created(stored, text)
            raise WriteEnded(other)
        return self._executed(reference_of(stored), now)

    async def _reschedule(self, now: datetime) -> WriteOutcome:
        before, opening, data = self._asked.before, self._asked.opening, self._write.data
        if before is None or opening is None:
            raise WriteEnded(WriteOutcome("slot_unavailable"))
        made: list[Made] = []
        if opening.proposal is not None:
            made = new_slots(opening.proposal, self._write.id)
            after = self._practice.moved(before, data, [urn for urn, _ in made], self._write.intent)
            after = in_service(after, opening.proposal)
        else:
            if self._claims_slots:
                await self._steps.claim([slot for slot in opening.run if slot.reference in data["slots"]])
            after = self._practice.moved(before, data, data["run"], self._write.intent)
        after["identifier"] = with_identifier(after, CLAIMS, self._write.id)
        stored = await self._steps.change(before, after, made)
        if self._practice.differs(after, stored) or self._practice.status(stored) != "booked":
            await self._undo_change(before, stored, WriteOutcome("declined", reason=BOOKED_OTHERWISE))
        other = await self._verified(stored)
        if other is not None:
            await self._undo_change(before, stored, other)
        return self._executed(data["reference"], now)

    async def _status(self, now: datetime) -> WriteOutcome:
        before, data = self._asked.before, self._write.data
        assert before is not None
        if self._practice.status(before) == data["status"]:
            return WriteOutcome("unchanged", self.subjects, stored_result(self._write))
        change = self._asked.change
        assert isinstance(change, ChangeStatus)
        if self._cancels:
            stored = await self._operations.cancel(before)
            if change.reason:
                await self._operations.explain(
                    stored, self._practice.in_status(stored, "cancelled", change.reason, self._write.intent)
                )
            return self._executed(data["reference"], now)
        if self._cancels_at_once and data["status"] == "cancelled":
            stored = await self._operations.cancel_at_once(before, change.reason)
        else:
            after = self._practice.in_status(before, data["status"], change.reason, self._write.intent)
            stored = await self._steps.change(before, after)
        if self._practice.status(stored) != data["status"]:
            await self._undo_change(before, stored, WriteOutcome("declined", reason=NOT_CARRIED_OUT))
        return self._executed(data["reference"], now)

    async def _create_patient(self, now: datetime) -> WriteOutcome:
        await self._refuse_double(None)
        wanted = patients.new_patient(self._details, self._write.intent)
        wanted["identifier"] = with_identifier(wanted, CLAIMS, self._write.id)
        stored = await self._steps.mark_as_ours(await self._steps.create(wanted, partial(self._refuse_double, None)))
        if patients.differs(stored, self._details):
            await self._steps.undo(undone(stored, self._write.intent, NOT_CARRIED_OUT))
            raise WriteEnded(WriteOutcome("declined", reason=NOT_CARRIED_OUT))
        return self._executed(reference_of(stored), now)

    async def _update_patient(self, now: datetime) -> WriteOutcome:
        before, change = self._asked.before, self._asked.change
        assert before is not None
        assert isinstance(change, UpdatePatient)
        if change.affects_matching:
            await self._refuse_double(reference_of(before))
        after = patients.changed_patient(before, self._details, self._write.intent)
        stored = await self._steps.change(before, after)
        if patients.differs(stored, self._details):
            await self._undo_change(before, stored, WriteOutcome("declined", reason=NOT_CARRIED_OUT))
        return self._executed(self._write.data["reference"], now)

    async def _undo_created(self, stored: Resource, reason: str) -> None:
        if self._cancels:
            await self._operations.undo(stored)
        else:
            await self._steps.undo(undone(stored, self._write.intent, reason))

    async def _undo_change(self, before: Resource, stored: Resource, ending: WriteOutcome) -> NoReturn:
        if self._made_slots:
            self._steps.releases.append({"occupied": True})
        await self._steps.undo({**before, "meta": stored.get("meta")})  # as it was, at the version that is now
        raise WriteEnded(ending)

    async def _undo_found(self, found: Resource) -> WriteOutcome:
        """Undoes what a lost write did instead of what it was asked for, as far as that is kept."""
        change, data, intent = self._write.change, self._write.data, self._write.intent
        if self._creates is not None:
            await self._undo_created(found, BOOKED_OTHERWISE)
        elif change == "reschedule":
            await self._steps.undo(self._practice.put_back(found, data["before"], intent))
        booked = change in ("book", "reschedule")
        return WriteOutcome("declined", self.subjects, reason=BOOKED_OTHERWISE if booked else NOT_CARRIED_OUT)

    async def _stop_if_taken(self) -> None:
        other = await self._overlaps.find(None, self._steps.marked)
        if other is not None:
            raise WriteEnded(other)

    async def _verified(self, stored: Resource) -> WriteOutcome | None:
        """None if the appointment has its time to itself, or how the write ends. Looked at once the appointment is
        stored: who takes the time later can see it there."""
        try:
            return await self._overlaps.find(stored, self._steps.marked)
        except SystemUnavailable as error:
            raise WriteOutcomeUnknown from error

    async def _refuse_double(self, changed: str | None) -> None:
        asked = self._details
        found = await self._reader.matching(asked.first_name, asked.last_name, asked.phone, asked.dob)
        if any(reference_of(other) != changed for other in found):
            raise WriteEnded(WriteOutcome("conflict", reason="patient_exists"))

    async def _find(self) -> Resource | None:
        """The record that the write created or changed, if any."""
        if self._creates is not None:
            return await self._steps.created(self._creates)
        found = await self._client.read(self._deadline, self._write.data["reference"])
        return found if found is not None and has_identifier(found, INTENTS, self._write.intent) else None

    def _is_wrong(self, found: Resource) -> bool:
        """Whether the record differs from what was asked for; False if a later write of ours has changed it."""
        change, data = self._write.change, self._write.data
        if not self._is_latest(found):
            return False
        if change == "status":
            return bool(self._practice.status(found) == data["from"])
        return change in ("book", "reschedule") and self._practice.differs(self._wanted(), found)

    def _is_latest(self, found: Resource) -> bool:
        """Whether no later write of ours has changed the record."""
        return identifier_values(found, INTENTS)[-1] == self._write.intent

    def _executed(self, reference: str, now: datetime) -> WriteOutcome:
        """The ending of an executed write; slots that it held belong to the appointment now."""
        self._steps.releases = list(self._write.data.get("givesUp", ()))
        return executed_outcome(self._write, reference, now)

    def _wanted(self) -> Resource:
        data = self._write.data
        wanted = self._practice.new_appointment(data, data["patient"], data["run"], self._write.intent)
        return {**wanted, "identifier": with_identifier(wanted, CLAIMS, self._write.id)}

    @property
    def _details(self) -> PatientDetails:
        change = self._asked.change
        assert isinstance(change, CreatePatient | UpdatePatient)
        return change.details

    @property
    def subjects(self) -> list[str]:
        return subject_ids(self._write)
