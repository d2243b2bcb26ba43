"""Booking and moving against the booking rules, which staff may do and no client."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.desk.appointments import Appointments
from frontdesk.desk.context import ActionContext
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.booking_rules import BrokenRule
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.engine.execute import Engine
from frontdesk.operations import OVERRIDE_BOOKING, OVERRIDE_MOVE, check_override
from frontdesk.systems.port import Capability


@dataclass(frozen=True, slots=True)
class Overrides:
    engine: Engine
    appointments: Appointments

    async def offered(self, context: ActionContext) -> bool:
        """Whether staff can book against the rules: only where the practice keeps its own calendar."""
        return Capability.OVERRIDE in (await self.engine.systems(context.staff.caller())).capabilities

    async def broken_rules(
        self, context: ActionContext, slot: SlotRef, patient_id: str, moved: Appointment | None = None
    ) -> Sequence[BrokenRule]:
        """What the booking would break. Raises Problem if not even staff may book it."""
        system = await self.engine.systems(context.staff.caller())
        _, checked = await check_override(system, slot, patient_id, context.now, moved)
        return checked.broken

    async def book(
        self,
        context: ActionContext,
        *,
        patient_id: str,
        slot_id: str,
        rules: Sequence[str],
        reason: str,
        key: str,
        arrived: bool,
    ) -> str:
        """Books against `rules`, those that were shown, and returns the appointment's id. The same key does so once."""
        given = {"patientId": patient_id, "slotId": slot_id, "rules": rules, "reason": reason}
        made = (await self.engine.execute(context.call(OVERRIDE_BOOKING, given, key))).body
        if arrived:
            await self.appointments.record(context, made["appointmentId"], "arrived", f"{key} arrived")
        return str(made["appointmentId"])

    async def move(
        self,
        context: ActionContext,
        *,
        appointment_id: str,
        slot_id: str,
        rules: Sequence[str],
        reason: str,
        key: str,
    ) -> None:
        given = {"appointmentId": appointment_id, "slotId": slot_id, "rules": rules, "reason": reason}
        await self.engine.execute(context.call(OVERRIDE_MOVE, given, key))
