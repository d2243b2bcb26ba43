"""Single steps of a write to a FHIR server: claim and free slots, create, change, undo, and look up lost answers.

A step that was not executed raises `WriteEnded` with how the write ends, or `SystemUnavailable`; one with an unknown
outcome raises `WriteOutcomeUnknown`. A 409 or 412 alone says nothing about who was faster: what is there is looked up,
and the step is retried.
`writes.py` says which steps make up a write.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome
from frontdesk.systems.fhir.resources.elements import (
    CLAIMS,
    INTENTS,
    Resource,
    has_identifier,
    identifier_values,
    reference_of,
    version_of,
    with_identifier,
    without_identifiers,
)
from frontdesk.systems.fhir.resources.slots import Slot, claims, slot
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined, FhirClient, Made, Written
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.write_data import Release
from frontdesk.systems.fhir.writing.releases import Releases, find_created
from frontdesk.systems.port import SystemUnavailable

UNAVAILABLE = "upstream_unavailable"
MAX_ATTEMPTS = 6
RETRY_SECONDS = 0.1  # before the second attempt; the next pauses double


class WriteEnded(Exception):
    """The write was not executed; `ending` is its outcome."""

    def __init__(self, ending: WriteOutcome) -> None:
        super().__init__(ending.outcome)
        self.ending = ending


class WriteOutcomeUnknown(Exception):
    """The outcome is unknown; `wrong`: the server did something else, which has to be undone."""

    def __init__(self, *, wrong: bool = False) -> None:
        super().__init__("the outcome of a write is not known")
        self.wrong = wrong


class WriteSteps:
    """The requests of one write. `releases` lists what has to be freed or watched if it ends now, `marked` the slots
    that the server stored with our claim. `cancels`: an appointment is undone by `$cancel`."""

    def __init__(self, client: FhirClient, deadline: Deadline, write: PendingWrite, *, cancels: bool = False) -> None:
        self._client = client
        self._cancels = cancels
        self._deadline = deadline
        self._write = write
        self.releases: list[Release] = []
        self.marked: set[str] = set()

    async def claim(self, slots: Sequence[Slot]) -> None:
        """Marks every slot as ours, or stops. Versioned updates make a concurrent writer fail."""
        waiting = list(slots)
        async for _ in self.attempts():
            written = await self._client.update_all(self._deadline, [self._marked(each) for each in waiting])
            answers = list(zip(waiting, written, strict=True))
            for each, answer in answers:
                if isinstance(answer, dict | AnswerLost):  # a lost request may still arrive
                    self._hold(each)
            again = [await self._after_claim(each, answer) for each, answer in answers]
            waiting = [each for each in again if each is not None]
            if not waiting:
                return
        raise WriteEnded(WriteOutcome(UNAVAILABLE))

    def _hold(self, slot: Slot) -> None:
        entry: Release = {"slot": slot.reference, "claims": [self._write.id], "ours": True}
        if entry not in self.releases:
            self.releases.append(entry)

    def _marked(self, slot: Slot) -> Resource:
        """The slot with our claim instead of abandoned ones."""
        mark = {"system": CLAIMS, "value": self._write.id}
        return {
            **slot.resource,
            "status": "busy",
            "identifier": [*without_identifiers(slot.resource, CLAIMS), mark],
        }

    async def _after_claim(self, claimed: Slot, answer: Written | None) -> Slot | None:
        """None if the slot is ours, or the slot as it is now to try again; stops if it is somebody else's."""
        if answer is None:
            return claimed
        if isinstance(answer, dict):
            if self._write.id in claims(answer):
                self.marked.add(claimed.reference)
            return None
        if isinstance(answer, SystemUnavailable):
            raise answer
        if isinstance(answer, Declined) and not answer.contended:
            raise WriteEnded(WriteOutcome("declined", reason=answer.reason)) from answer
        now = await self._client.read(self._deadline, claimed.reference)
        if now is not None and self._write.id in claims(now):
            self._hold(claimed)
            self.marked.add(claimed.reference)
            return None
        fresh = None if now is None else slot(now)
        is_unchanged = now is not None and version_of(now) == version_of(claimed.resource)
        is_free = fresh is not None and fresh.free and (fresh.starts, fresh.ends) == (claimed.starts, claimed.ends)
        if not is_unchanged and not is_free:
            raise WriteEnded(WriteOutcome("slot_unavailable")) from answer
        if isinstance(answer, AnswerLost):  # the request may still arrive
            unavailable = SystemUnavailable(answer.retry_after)
            raise WriteEnded(WriteOutcome(UNAVAILABLE, unavailable=unavailable)) from answer
        return claimed if is_unchanged else fresh

    async def create(self, resource: Resource, look: Callable[[], Awaitable[None]]) -> Resource:
        """Creates the record, unless one with our intent as its identifier exists. `look` stops the write if something
        else is in the way of it."""
        async for _ in self.attempts():
            try:
                return await self._client.create(self._deadline, resource, f"identifier={INTENTS}|{self._write.intent}")
            except Declined as declined:
                if not declined.contended:
                    raise WriteEnded(WriteOutcome("declined", reason=declined.reason)) from declined
                found = await self.created(resource["resourceType"])
                if found is not None:
                    return found
                await look()
            except AnswerLost as lost:
                return await self.created_after_lost_answer(resource["resourceType"], lost)
        raise WriteEnded(WriteOutcome(UNAVAILABLE))

    def watch(self, kind: str) -> None:
        """Makes sure that a record of this kind is undone if it is created late."""
        self.releases.append({"watch": kind, "cancels": self._cancels})

    async def created_after_lost_answer(self, kind: str, lost: AnswerLost) -> Resource:
        try:
            found = await self.created(kind)
        except SystemUnavailable:
            raise WriteOutcomeUnknown from lost
        if found is not None:
            return found
        if lost.failed:
            self.watch(kind)  # it may have been created nevertheless
        raise self.lost_answer_outcome(lost) from lost

    async def mark_as_ours(self, stored: Resource) -> Resource:
        """Marks a record that an earlier attempt of the same intent created as ours."""
        if self._write.id in identifier_values(stored, CLAIMS):
            return stored
        marked = {**stored, "identifier": with_identifier(stored, CLAIMS, self._write.id)}
        try:
            return await self.change(stored, marked)
        except (WriteEnded, SystemUnavailable) as error:
            raise WriteOutcomeUnknown from error

    async def created(self, kind: str) -> Resource | None:
        """The record that our intent created, if any."""
        return await find_created(self._client, self._deadline, self._write.intent, kind, live=self._cancels)

    async def change(self, before: Resource, after: Resource, beside: Sequence[Made] = ()) -> Resource:
        """Updates the record, and creates others `beside` it; stops as stale if it has changed since it was read."""
        return await self.changed_by(before, lambda: self._client.update(self._deadline, after, beside))

    async def changed_by(self, before: Resource, send: Callable[[], Awaitable[Resource]]) -> Resource:
        """The record after a versioned request that stores our intent with it."""
        async for _ in self.attempts():
            try:
                return await send()
            except Declined as declined:
                if not declined.contended:
                    raise WriteEnded(WriteOutcome("declined", reason=declined.reason)) from declined
                now = await self._client.read(self._deadline, reference_of(before))
                if now is not None and has_identifier(now, INTENTS, self._write.intent):
                    return now
                if now is None or version_of(now) != version_of(before):
                    raise WriteEnded(WriteOutcome("stale")) from declined
            except AnswerLost as lost:
                return await self._changed_after_lost_answer(before, lost)
        raise WriteEnded(WriteOutcome(UNAVAILABLE))

    async def _changed_after_lost_answer(self, before: Resource, lost: AnswerLost) -> Resource:
        try:
            now = await self._client.read(self._deadline, reference_of(before))
        except SystemUnavailable:
            raise WriteOutcomeUnknown from lost
        if now is not None and has_identifier(now, INTENTS, self._write.intent):
            return now
        if now is None or version_of(now) != version_of(before):
            raise WriteEnded(WriteOutcome("stale")) from lost  # our update can no longer succeed
        raise self.lost_answer_outcome(lost) from lost

    async def supersede_version(self, reference: str) -> bool:
        """Gives the record a new version, so that a change that is still on its way fails.

        False if the record has changed meanwhile or cannot be written.
        """
        now = await self._client.read(self._deadline, reference)
        if now is None:
            return True
        if has_identifier(now, INTENTS, self._write.intent):
            return False
        marked = {**now, "identifier": with_identifier(now, CLAIMS, self._write.id)}
        try:
            stored = await self._client.update(self._deadline, marked)
        except (Declined, AnswerLost):
            return False
        return version_of(stored) != version_of(now)

    async def undo(self, resource: Resource) -> None:
        """Undoes a wrong change; the outcome stays open until that has succeeded."""
        try:
            await self._client.update(self._deadline, resource)
        except (Declined, SystemUnavailable, AnswerLost) as error:
            raise WriteOutcomeUnknown(wrong=True) from error

    async def release(self, *, final: bool = False) -> None:
        """Frees what can be freed now and keeps the rest."""
        self.releases = await Releases(self._client, self._deadline, self._write).free(self.releases, final=final)

    async def attempts(self) -> AsyncIterator[int]:
        """Attempts of a step with growing pauses, as long as the deadline leaves time for one."""
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))  # noqa: S311
                if not self._deadline.allows(write=True):
                    return
            yield attempt

    def lost_answer_outcome(self, lost: AnswerLost) -> Exception:
        """How a write ends whose record was not found: declined or unavailable if the server answered with a failure.
        Otherwise it stays open, because the request may still arrive."""
        if lost.reason:
            return WriteEnded(WriteOutcome("declined", reason=lost.reason))
        unavailable = SystemUnavailable(lost.retry_after)
        return WriteEnded(WriteOutcome(UNAVAILABLE, unavailable=unavailable)) if lost.failed else WriteOutcomeUnknown()
