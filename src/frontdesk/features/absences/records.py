"""An absence of a provider and the appointments in its time: what is stored, and how it relates to the calendar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from frontdesk.desk.blocks import Block, overlaps
from frontdesk.desk.names import Actor
from frontdesk.domain.appointments import RESCHEDULABLE, Appointment
from frontdesk.domain.directory import Directory
from frontdesk.domain.local_time import minute_of, zone
from frontdesk.domain.patients import Contact
from frontdesk.domain.slot_ids import SlotIds, SlotRef
from frontdesk.features.absences.proposed_times import ProposedTime

Choice = Literal["move", "cancel", "back", "leave"]
State = Literal["open", "pending", "left", "moved", "cancelled", "seen", "gone"]
_CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Absence:
    absence_id: str
    provider_id: int
    starts: datetime  # local, like the block
    ends: datetime
    reason: str | None
    started_by: str
    started_at: datetime
    ended_at: datetime | None  # undone

    @property
    def block(self) -> Block:
        return Block(self.provider_id, None, self.starts, self.ends, self.reason)


@dataclass(frozen=True, slots=True)
class AbsenceEntry:
    """An appointment as it was before, and what was chosen for it."""

    appointment_id: str
    patient_id: str
    location_id: int
    visit_type_id: int
    procedure_id: int
    starts_at: datetime
    ends_at: datetime
    choice: Choice | None = None  # all but leave: not executed yet
    slot_id: str | None = None
    request_id: str | None = None
    failure: str | None = None
    outcome: str | None = None  # the place that the last choice gave it
    announced_place: str | None = None  # the place that the patient was told
    called_by: str | None = None
    called_at: datetime | None = None

    def slot(self, provider_id: int) -> SlotRef:
        start, end = (minute_of(moment) for moment in (self.starts_at, self.ends_at))
        return SlotRef(provider_id, self.location_id, self.visit_type_id, self.procedure_id, start, end - start)


@dataclass(frozen=True, slots=True)
class AbsenceRow:
    """A row of the page."""

    entry: AbsenceEntry
    state: State
    status: str  # of the appointment
    patient: Contact | None
    visit_type: str
    location: str
    before: datetime  # local
    after: datetime | None  # local; None if it is cancelled
    provider: str  # after
    moved_to: str | None  # the location, if it is another one
    place: str
    has_begun: bool
    may_undo: bool
    proposals: Sequence[ProposedTime] = ()
    called_by: Actor | None = None  # None: the patient has not been told of this place

    @property
    def is_undecided(self) -> bool:
        return self.state in ("open", "left")

    @property
    def to_call(self) -> bool:
        """Whether the patient has to know: also one who was told something else."""
        return self.state in ("moved", "cancelled") or self.entry.announced_place is not None


@dataclass(frozen=True, slots=True)
class BlockedPart:
    """Time of an absence, local, that is blocked by something else."""

    starts: datetime
    ends: datetime
    reason: str | None
    absence_id: str | None  # of the current absence that has blocked it; None: blocked without one


@dataclass(frozen=True, slots=True)
class AbsenceView:
    absence: Absence
    provider: str
    by: Actor
    rows: Sequence[AbsenceRow]
    may_block: bool  # False: time is blocked in the practice's own system
    is_blocked: bool
    still_blocked: Sequence[BlockedPart]  # of an absence that was undone
    may_restore: bool  # cancelled appointments
    is_complete: bool  # False: there are more appointments to decide on than a page can hold

    def count(self, *states: State) -> int:
        return sum(row.state in states for row in self.rows)

    @property
    def is_unfinished(self) -> bool:
        return any(row.entry.choice not in (None, "leave") for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(row.state == "open" and row.entry.failure is not None for row in self.rows)

    @property
    def calls(self) -> list[AbsenceRow]:
        return [row for row in self.rows if row.to_call]

    @property
    def uncalled(self) -> int:
        return sum(row.called_by is None for row in self.calls)


def entry_of(appointment: Appointment) -> AbsenceEntry:
    return AbsenceEntry(
        appointment.id,
        appointment.patient_id,
        appointment.location_id,
        appointment.visit_type_id,
        appointment.procedure_id,
        appointment.starts_at,
        appointment.ends_at,
    )


def place_of(appointment: Appointment) -> str:
    """Where an appointment is, as a text to compare."""
    if appointment.status == "cancelled":
        return _CANCELLED
    return _place(appointment.provider_id, appointment.location_id, minute_of(appointment.starts_at))


def place_before(absence: Absence, entry: AbsenceEntry) -> str:
    slot = entry.slot(absence.provider_id)
    return _place(slot.provider_id, slot.location_id, slot.start)


def place_wanted(absence: Absence, entry: AbsenceEntry, slot_ids: SlotIds) -> str | None:
    """Where the choice would move the appointment, as a text to compare; None if the slot id is not valid."""
    if entry.choice == "cancel":
        return _CANCELLED
    if entry.choice == "back":
        return place_before(absence, entry)
    slot = slot_ids.decode(entry.slot_id or "")
    return None if slot is None else _place(slot.provider_id, slot.location_id, slot.start)


def state_of(absence: Absence, entry: AbsenceEntry, appointment: Appointment | None, directory: Directory) -> State:
    """The calendar decides: an appointment that is no longer in the time of the absence is done."""
    if appointment is None:
        return "gone"
    if entry.choice == "back":
        return "pending"
    if appointment.status == "cancelled":
        return "cancelled"
    time_zone = directory.locations[appointment.location_id].time_zone
    if appointment.provider_id != absence.provider_id or not overlaps(
        absence.block, appointment.starts_at, appointment.ends_at, time_zone
    ):
        return "moved"
    if appointment.status not in RESCHEDULABLE:
        return "seen"
    if entry.choice is None:
        return "open"
    return "left" if entry.choice == "leave" else "pending"


def row_of(
    absence: Absence, entry: AbsenceEntry, appointment: Appointment | None, directory: Directory, now: datetime
) -> AbsenceRow:
    state = state_of(absence, entry, appointment, directory)
    location = directory.locations[entry.location_id]
    before = entry.starts_at.astimezone(zone(location.time_zone))
    status, after, there = "", before, location
    provider_id, place = absence.provider_id, place_before(absence, entry)
    if appointment is not None:
        there = directory.locations[appointment.location_id]
        status, after = appointment.status, appointment.starts_at.astimezone(zone(there.time_zone))
        provider_id, place = appointment.provider_id, place_of(appointment)
    return AbsenceRow(
        entry=entry,
        state=state,
        status=status,
        patient=None,
        visit_type=directory.visit_types[entry.visit_type_id].name,
        location=location.name,
        before=before,
        after=None if state == "cancelled" else after,
        provider=directory.providers[provider_id].name,
        moved_to=None if there.id == location.id else there.name,
        place=place,
        has_begun=after <= now,
        may_undo=entry.outcome == place and entry.choice in (None, "leave") and entry.starts_at > now,
    )


def _place(provider_id: int, location_id: int, start: int) -> str:
    return f"{provider_id} {location_id} {start}"
