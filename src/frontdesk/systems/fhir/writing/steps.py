"""Single steps of a write to a FHIR server: claim and free slots, create, change, undo, and look up lost answers.

A step that was not executed raises `Stopped` with how the write ends, or `SystemUnavailable`; one with an unknown
outcome raises `OutcomeOpen`.
`writes.py` says which steps make up a write.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources.appointments import TAKES_TIME, undone
from frontdesk.systems.fhir.resources.elements import (
    CLAIMS,
    INTENTS,
    Resource,
    has_identifier,
    identifier_values,
    reference_of,
    stated,
    version_of,
    with_identifier,
    without_identifiers,
)
from frontdesk.systems.fhir.resources.slots import Slot, claims
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined, FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.port import SystemUnavailable

UNAVAILABLE = "upstream_unavailable"


class Stopped(Exception):  # noqa: N818 - a state of the write
    """The write was not executed; `ending` is its outcome."""

    def __init__(self, ending: WriteOutcome) -> None:
        super().__init__(ending.outcome)
        self.ending = ending


class OutcomeOpen(Exception):  # noqa: N818
    """The outcome is unknown; `wrong`: the server did something else, which has to be undone."""

    def __init__(self, *, wrong: bool = False) -> None:
        super().__init__("the outcome of a write is not known")
        self.wrong = wrong


class WriteSteps:
    """The requests of one write. `releases` lists what has to be freed or watched if it ends now."""

    def __init__(self, client: FhirClient, deadline: Deadline, write: PendingWrite) -> None:
        self._client = client
        self._deadline = deadline
        self._write = write
        self.releases: list[Mapping[str, Any]] = []

    async def claim(self, slots: Sequence[Slot]) -> None:
        """Marks every slot as ours, or stops. Versioned updates make a concurrent writer fail."""
        for slot in slots:
            marked = {
                **slot.resource,
                "status": "busy",
                "identifier": with_identifier(slot.resource, CLAIMS, self._write.id),
            }
            held = {"slot": slot.reference, "claims": [self._write.id], "ours": True}
            try:
                await self._client.update(self._deadline, marked)
            except Declined as declined:
                raise self._stopped(declined, WriteOutcome("slot_unavailable")) from declined
            except AnswerLost as lost:
                self.releases.append(held)  # the request may still arrive
                await self._claimed(slot, lost)
            else:
                self.releases.append(held)

    async def _claimed(self, slot: Slot, lost: AnswerLost) -> None:
        """Checks whether the slot was claimed although the answer was lost; stops if not."""
        unavailable = Stopped(WriteOutcome(UNAVAILABLE, retry_after=lost.retry_after))
        try:
            now = await self._client.read(self._deadline, slot.reference)
        except SystemUnavailable:
            raise unavailable from lost
        if now is not None and self._write.id in claims(now):
            return
        if now is not None and version_of(now) != version_of(slot.resource):
            raise Stopped(WriteOutcome("slot_unavailable")) from lost
        raise unavailable from lost

    async def create(self, resource: Resource) -> Resource:
        """Creates the record, unless one with our intent as its identifier exists."""
        try:
            return await self._client.create(self._deadline, resource, f"identifier={INTENTS}|{self._write.intent}")
        except Declined as declined:
            taken = resource["resourceType"] == "Appointment"
            contended = WriteOutcome("slot_unavailable") if taken else WriteOutcome("conflict", reason="patient_exists")
            raise self._stopped(declined, contended) from declined
        except AnswerLost as lost:
            try:
                found = await self.created(resource["resourceType"])
            except SystemUnavailable:
                raise OutcomeOpen from lost
            if found is not None:
                return found
            if lost.failed:
                self.releases.append({"watch": resource["resourceType"]})  # it may have been created nevertheless
            raise self._unanswered(lost) from lost

    async def adopt(self, stored: Resource) -> Resource:
        """Marks a record as ours that an earlier attempt of the same intent created."""
        if self._write.id in identifier_values(stored, CLAIMS):
            return stored
        marked = {**stored, "identifier": with_identifier(stored, CLAIMS, self._write.id)}
        try:
            return await self.change(stored, marked)
        except (Stopped, SystemUnavailable) as error:
            raise OutcomeOpen from error

    async def created(self, kind: str) -> Resource | None:
        """The record that our intent created, if any."""
        wanted = [("identifier", f"{INTENTS}|{self._write.intent}")]
        found = await self._client.search(self._deadline, kind, wanted)
        return next((each for each in found if has_identifier(each, INTENTS, self._write.intent)), None)

    async def change(self, before: Resource, after: Resource) -> Resource:
        """Updates the record; stops as stale if it has changed since it was read."""
        try:
            return await self._client.update(self._deadline, after)
        except Declined as declined:
            raise self._stopped(declined, WriteOutcome("stale")) from declined
        except AnswerLost as lost:
            try:
                now = await self._client.read(self._deadline, reference_of(before))
            except SystemUnavailable:
                raise OutcomeOpen from lost
            if now is not None and has_identifier(now, INTENTS, self._write.intent):
                return now
            if now is None or version_of(now) != version_of(before):
                raise Stopped(WriteOutcome("stale")) from lost  # our update can no longer succeed
            raise self._unanswered(lost) from lost

    async def undo(self, resource: Resource) -> None:
        """Undoes a wrong change; the outcome stays open until that has succeeded."""
        try:
            await self._client.update(self._deadline, resource)
        except (Declined, SystemUnavailable, AnswerLost) as error:
            raise OutcomeOpen(wrong=True) from error

    async def release(self, *, final: bool = False) -> None:
        """Frees what can be freed now and keeps the rest. A slot without our mark may still get it, unless `final`: no
        request can arrive any more."""
        left = []
        for entry in self.releases:
            try:
                freed = await self._free(entry) or final
            except (Declined, SystemUnavailable, AnswerLost):
                freed = False
            if not freed:
                left.append(entry)
        self.releases = left

    async def _free(self, entry: Mapping[str, Any]) -> bool:
        """Frees a slot, or undoes a record that was created late; False if there is nothing to free yet."""
        if "watch" in entry:
            return await self._undo_late(entry["watch"])
        resource = await self._client.read(self._deadline, entry["slot"])
        if resource is None:
            return True
        marks = claims(resource)
        if entry["ours"] and self._write.id not in marks:
            return False
        if resource.get("status") != "busy" or not set(marks) <= set(entry["claims"]):
            return True  # already free, or claimed by another write
        if not entry["ours"] and await self._is_used(entry["slot"]):
            return True
        identifiers = without_identifiers(resource, CLAIMS)
        await self._client.update(self._deadline, stated({**resource, "status": "free", "identifier": identifiers}))
        return True

    async def _undo_late(self, kind: str) -> bool:
        """Undoes a record that was created despite a reported failure, unless a later attempt has adopted it."""
        found = await self.created(kind)
        if found is None:
            return False
        if identifier_values(found, CLAIMS) == [self._write.id]:
            await self._client.update(self._deadline, undone(found, self._write.intent))
        return True

    async def _is_used(self, slot: str) -> bool:
        found = await self._client.search(self._deadline, "Appointment", [("slot", slot)])
        return any(each.get("status") in TAKES_TIME for each in found)

    async def are_taken(self, slots: Sequence[str]) -> bool:
        """Whether a server that updates slots itself has marked these as taken."""
        for slot in slots:
            try:
                found = await self._client.read(self._deadline, slot)
            except SystemUnavailable as error:
                raise OutcomeOpen from error
            if found is not None and found.get("status") == "free":
                return False
        return True

    def _stopped(self, declined: Declined, contended: WriteOutcome) -> Stopped:
        return Stopped(contended if declined.contended else WriteOutcome("declined", reason=declined.reason))

    def _unanswered(self, lost: AnswerLost) -> Exception:
        """Nothing was found: final if the server answered with a failure, otherwise the request may still arrive."""
        if lost.reason:
            return Stopped(WriteOutcome("declined", reason=lost.reason))
        return Stopped(WriteOutcome(UNAVAILABLE, retry_after=lost.retry_after)) if lost.failed else OutcomeOpen()
