"""Frees what an ended write still holds on a FHIR server, and undoes what it created late."""

from collections.abc import Sequence

from frontdesk.systems.fhir.records import PendingWrite
from frontdesk.systems.fhir.resources.appointments import time_taken, undone
from frontdesk.systems.fhir.resources.elements import (
    CLAIMS,
    INTENTS,
    Resource,
    has_identifier,
    identifier_values,
    reference_of,
    references,
    without_empty,
    without_identifiers,
)
from frontdesk.systems.fhir.resources.slots import claims
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined, FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.write_data import Release
from frontdesk.systems.port import SystemUnavailable

CANCEL = "Appointment/$cancel"  # as a name of requests
ARRIVED_LATE = "Created after the scheduling system had reported a failure"
_NOT_TAKEN = ("free", "entered-in-error")


class Releases:
    """Entries are stored: `slot` with the claims that may be freed, `occupied` for slots that a move made, `watch` for
    the type of a record that may be created late."""

    def __init__(self, client: FhirClient, deadline: Deadline, write: PendingWrite) -> None:
        self._client = client
        self._deadline = deadline
        self._write = write

    async def free(self, entries: Sequence[Release], *, final: bool) -> list[Release]:
        """Returns the entries that are left. What was not found may still arrive, unless `final`: no request can arrive
        any more."""
        left = []
        for entry in entries:
            try:
                freed = await self._free(entry) or final
            except (Declined, SystemUnavailable, AnswerLost):
                freed = False
            if not freed:
                left.append(entry)
        return left

    async def _free(self, entry: Release) -> bool:
        """False if there is nothing to free yet."""
        if "watch" in entry:
            return await self._undo_late(entry)
        if "occupied" in entry:
            return await self._free_made_slots()
        resource = await self._client.read(self._deadline, entry["slot"])
        if resource is None:
            return True
        marks, is_made = claims(resource), entry.get("made", False)
        if entry["ours"] and self._write.id not in marks:
            return False
        is_taken = resource.get("status") not in _NOT_TAKEN if is_made else resource.get("status") == "busy"
        if not is_taken or not set(marks) <= set(entry["claims"]):
            return True  # already free, or claimed by another write
        if not entry["ours"] and await self._is_used(entry["slot"]):
            return True
        await self._client.update(self._deadline, _as_entered_in_error(resource) if is_made else _as_free(resource))
        return True

    async def _free_made_slots(self) -> bool:
        """Voids the slots that this write made."""
        found = await self._client.search(self._deadline, "Slot", [("identifier", f"{CLAIMS}|{self._write.id}")])
        made = [each for each in found if self._write.id in claims(each)]  # a server may ignore the search parameter
        for each in made:
            if each.get("status") not in _NOT_TAKEN:
                await self._client.update(self._deadline, _as_entered_in_error(each))
        return bool(made)

    async def _undo_late(self, entry: Release) -> bool:
        """Undoes a record that was created despite a reported failure, unless a later attempt has adopted it. With the
        same idempotency key another one may have been booked since."""
        cancels = entry.get("cancels", False)
        found = await _created(self._client, self._deadline, self._write.intent, entry["watch"], live=cancels)
        late = [each for each in found if identifier_values(each, CLAIMS) == [self._write.id]]
        for each in late:
            if cancels:
                await cancel(self._client, self._deadline, reference_of(each))
            else:
                await self._client.update(self._deadline, undone(each, self._write.intent, ARRIVED_LATE))
        return bool(late)

    async def _is_used(self, slot: str) -> bool:
        found = await self._client.search(self._deadline, "Appointment", [("slot", slot)])
        return any(time_taken(each) is not None and slot in references(each.get("slot")) for each in found)


async def find_created(
    client: FhirClient, deadline: Deadline, intent: str, kind: str, *, live: bool
) -> Resource | None:
    """The record that the intent created, if any. `live`: not a cancelled one, because `$cancel` keeps the intent."""
    return next(iter(await _created(client, deadline, intent, kind, live=live)), None)


async def _created(client: FhirClient, deadline: Deadline, intent: str, kind: str, *, live: bool) -> list[Resource]:
    found = await client.search(deadline, kind, [("identifier", f"{INTENTS}|{intent}")])
    ours = [each for each in found if has_identifier(each, INTENTS, intent)]
    return [each for each in ours if not live or time_taken(each) is not None]


async def cancel(client: FhirClient, deadline: Deadline, reference: str) -> Resource:
    """Cancels an appointment by the server's operation, which gives its time back; harmless if that has happened."""
    try:
        return await client.operate(deadline, f"{reference}/$cancel", CANCEL, {"resourceType": "Parameters"})
    except (Declined, AnswerLost) as error:
        try:
            now = await client.read(deadline, reference)
        except SystemUnavailable:
            raise AnswerLost from error
        if now is None or now.get("status") != "cancelled":
            raise
        return now


def _as_free(slot: Resource) -> Resource:
    return without_empty({**slot, "status": "free", "identifier": without_identifiers(slot, CLAIMS)})


def _as_entered_in_error(slot: Resource) -> Resource:
    """A slot that was made for one appointment is of no use without it; a free one would open time for booking."""
    return without_empty({**slot, "status": "entered-in-error", "identifier": without_identifiers(slot, CLAIMS)})
