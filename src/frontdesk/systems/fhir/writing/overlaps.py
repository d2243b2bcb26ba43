"""Checks whether somebody else has taken the time of a booking, through frontdesk or not."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from frontdesk.domain.local_time import minute_of
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.systems.fhir.reading.lookups import Reader
from frontdesk.systems.fhir.reading.open_slots import SlotFinder, records_of
from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources.appointments import PracticeMap, time_taken
from frontdesk.systems.fhir.resources.elements import Resource, reference_of, references, whole_minutes
from frontdesk.systems.fhir.resources.slots import claims
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.transport.queries import CombinedQuery, SearchQuery
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.texts import N_

BOOKED_OTHERWISE = N_("The scheduling system's booking differed from the request and was undone.")
TIME_TAKEN = N_("The time was taken by another booking.")


class OverlapCheck:
    """Of one booking or move."""

    def __init__(self, upstream: Upstream, practice: PracticeMap, deadline: Deadline, write: PendingWrite) -> None:
        self._upstream = upstream
        self._deadline = deadline
        self._write = write
        self._practice = practice
        self._reader = Reader(upstream, practice, deadline)
        self._finder = SlotFinder(upstream, practice, deadline)

    async def find(self, stored: Resource | None, marked: AbstractSet[str]) -> WriteOutcome | None:
        """How the write ends because of what takes its time, None if nothing does. `stored` is the booking's own
        appointment, `marked` the slots that were stored with its claim."""
        if stored is not None and self._upstream.server.is_frontdesk:
            return None
        data = self._write.data
        starts, ends = datetime.fromisoformat(data["startsAt"]), datetime.fromisoformat(data["endsAt"])
        first, last = whole_minutes(starts, ends)
        own = self._own(stored)
        by_slot = [SearchQuery("Appointment", [("slot", ",".join(data["run"]))])] if data["run"] else []

        async def queries() -> Sequence[CombinedQuery[object]]:
            beside = await self._finder.practitioners_of(data["providerId"])
            together = data["patient"] if beside else None
            return [
                await self._finder.window(data["providerId"], data["locationId"], starts, ends, own, together),
                self._reader.is_busy(data["patient"], starts, ends, own, beside),
                CombinedQuery(by_slot, lambda found: [each for page in found for each in page]),
                await self._is_open(stored, starts),
            ]

        window, patient_is_busy, users, is_open = await self._upstream.read_live(
            self._deadline, self._practice, queries
        )
        run = [each for each in window.slots if reference_of(each) in data["run"]]
        if (
            window.busy.overlap(data["providerId"], data["locationId"], first, last)
            or any(self._is_rival(each, first, last) for each in users if reference_of(each) not in own)
            or any(self._is_lost(each, marked) for each in run)
            or not is_open
        ):
            return WriteOutcome("slot_unavailable", reason=TIME_TAKEN)
        if patient_is_busy:
            return WriteOutcome("declined", reason="patient_overlap")
        marks_slots_itself = not self._upstream.server.can("Slot update")
        if stored is not None and marks_slots_itself and any(each.get("status") == "free" for each in run):
            return WriteOutcome("declined", reason=BOOKED_OTHERWISE)
        return None

    async def _is_open(self, stored: Resource | None, starts: datetime) -> CombinedQuery[bool]:
        """Whether a server that proposes times still proposes this one, before it is booked."""
        data = self._write.data
        if stored is not None or not data.get("proposed"):
            return CombinedQuery((), lambda _: True)
        visit_type = self._practice.directory.visit_types[data["visitTypeId"]]
        procedure = visit_type.procedure(data["procedureId"])
        assert procedure is not None
        minutes = int((datetime.fromisoformat(data["endsAt"]) - starts).total_seconds()) // 60
        ref = SlotRef(data["providerId"], data["locationId"], visit_type.id, procedure.id, minute_of(starts), minutes)
        now = datetime.fromisoformat(data["askedAt"])
        query = await self._finder.opening(ref, visit_type, procedure, now)
        return CombinedQuery(query.queries, lambda found: query.result(found) is not None)

    def _own(self, stored: Resource | None) -> set[str]:
        """What the booking has stored itself, or gives up when it has succeeded."""
        data = self._write.data
        own = {*data["run"], *references(data.get("before", {}).get("slot"), "Slot")}
        if "reference" in data:
            own.add(data["reference"])
        return own if stored is None else own | records_of(stored)

    def _is_rival(self, appointment: Resource, first: int, last: int) -> bool:
        """Whether an appointment takes the time through one of the booking's slots, with any participants."""
        span = time_taken(appointment)
        uses = references(appointment.get("slot"), "Slot")  # a server may ignore the search parameter
        return (
            span is not None
            and span[0] < last
            and span[1] > first
            and not set(uses).isdisjoint(self._write.data["run"])
        )

    def _is_lost(self, slot: Resource, marked: AbstractSet[str]) -> bool:
        """Whether a slot that this write claimed is somebody else's now."""
        marks, reference = claims(slot), reference_of(slot)
        if self._write.id in marks or reference not in self._write.data["slots"]:
            return False
        return bool(marks) or (reference in marked and slot.get("status") != "free")
