"""Steps of writes to a FHIR server that proposes times: `$book` and `$cancel`."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources.appointments import marked
from frontdesk.systems.fhir.resources.elements import Resource, reference_of
from frontdesk.systems.fhir.resources.proposals import cancel_parameters
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined, FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.writing.releases import CANCEL, cancel
from frontdesk.systems.fhir.writing.steps import UNAVAILABLE, WriteEnded, WriteOutcomeUnknown, WriteSteps
from frontdesk.systems.port import SystemUnavailable


class OperationSteps:
    """The requests of one write by `$book` and `$cancel`, in addition to its other steps."""

    def __init__(self, client: FhirClient, deadline: Deadline, write: PendingWrite, steps: WriteSteps) -> None:
        self._client = client
        self._deadline = deadline
        self._write = write
        self._steps = steps

    async def book(self, parameters: Resource, look: Callable[[], Awaitable[None]], *, is_resent: bool) -> Resource:
        """The booked appointment, or the one that an earlier attempt of the same intent booked. `look` stops the write
        if the time was taken: a refusal alone does not say so."""
        found = await self._steps.created("Appointment") if is_resent else None
        if found is not None:
            return found
        async for _ in self._steps.attempts():
            try:
                return await self._client.operate(self._deadline, "Appointment/$book", "Appointment/$book", parameters)
            except Declined as declined:
                found = await self._steps.created("Appointment")
                if found is not None:
                    return found
                await look()
                if not declined.contended:
                    raise WriteEnded(WriteOutcome("declined", reason=declined.reason)) from declined
            except AnswerLost as lost:
                return await self._steps.created_after_lost_answer("Appointment", lost)
        raise WriteEnded(WriteOutcome(UNAVAILABLE))

    async def cancel(self, before: Resource) -> Resource:
        """Cancels an appointment. `$cancel` takes no identifier, so the intent is stored before it."""
        stored = await self._steps.change(before, marked(before, self._write.intent))
        async for _ in self._steps.attempts():
            try:
                return await cancel(self._client, self._deadline, reference_of(stored))
            except Declined as declined:
                if not declined.contended:
                    raise WriteEnded(WriteOutcome("declined", reason=declined.reason)) from declined
            except AnswerLost as lost:
                raise self._steps.lost_answer_outcome(lost) from lost
        raise WriteEnded(WriteOutcome(UNAVAILABLE))

    async def cancel_at_once(self, before: Resource, reason: str | None) -> Resource:
        """Cancels an appointment of another frontdesk, whose `$cancel` takes the intent and the reason."""
        target, parameters = f"{reference_of(before)}/$cancel", cancel_parameters(self._write.intent, reason)
        return await self._steps.changed_by(
            before, lambda: self._client.operate(self._deadline, target, CANCEL, parameters, before)
        )

    async def cancel_again(self, found: Resource) -> Resource:
        """Repeats a cancellation whose request may not have arrived, which does no harm."""
        try:
            return await cancel(self._client, self._deadline, reference_of(found))
        except Declined:
            return found
        except AnswerLost as lost:
            raise WriteOutcomeUnknown from lost

    async def explain(self, cancelled: Resource, with_reason: Resource) -> None:
        """Stores the reason of a cancellation, which `$cancel` does not take. It stands without the reason, too."""
        with suppress(WriteEnded, SystemUnavailable, WriteOutcomeUnknown):
            await self._steps.change(cancelled, with_reason)

    async def undo(self, stored: Resource) -> None:
        """Undoes a booking; the outcome stays open until that has succeeded."""
        try:
            await cancel(self._client, self._deadline, reference_of(stored))
        except (Declined, SystemUnavailable, AnswerLost) as error:
            raise WriteOutcomeUnknown(wrong=True) from error
