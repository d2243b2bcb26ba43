"""What the answers of a history name and explain: slots, patients, appointments, and every write with its outcome."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.proof import model
from tests.proof.lanes import Expiry, When
from tests.proof.practices import DAY_CELLS, cell_of
from tests.proof.recorder import NEVER, WRITES, History, Op
from tests.proof.stored import Stored

AT_THE_END = NEVER - 3  # before the stored rows are read

Key = tuple[Any, ...]  # of a part of the model


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(slots=True, eq=False)
class Effect:
    """One write, however often it was sent. `body` is None as long as nobody knows whether it executed."""

    ops: list[Op]
    body: Any = None
    answered: int = NEVER

    @property
    def op(self) -> Op:
        return self.ops[0]

    @property
    def when(self) -> When:
        return When(self.op.invoked, self.answered)

    @property
    def appointment(self) -> str | None:
        return None if self.body is None else self.body.get("appointmentId")


@dataclass(frozen=True, slots=True)
class Slot:
    provider: int
    start: int
    procedure: int


@dataclass
class Findings:
    anomalies: list[Anomaly] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    operations: int = 0
    lost_answers: int = 0
    resolved_by_resend: int = 0
    resolved_by_reads: int = 0
    resolved_by_audit: int = 0

    def add(self, kind: str, text: object) -> None:
        self.anomalies.append(Anomaly(kind, str(text)))


_CREATED = {"book_appointment": "appointmentId", "create_patient": "patientId", "hold_slot": "holdId"}


class Facts:
    def __init__(self, history: History, agents: frozenset[str], findings: Findings) -> None:
        self.history = history
        self.agents = agents
        self.findings = findings
        self.slots: dict[str, Slot] = {}
        self.challenges: dict[str, Op] = {}
        self.owners: dict[str, str] = {}  # patients and appointments: their practice
        self.persons: dict[str, tuple[str, str]] = {}  # patient: practice, last name
        self.booked: dict[str, Effect] = {}
        self.held: dict[str, Effect] = {}
        self.expiries: dict[str, Expiry] = {}  # of holds
        self.places: defaultdict[str, set[Key]] = defaultdict(set)  # the days in which an appointment has been
        self.of_patient: defaultdict[str, set[str]] = defaultdict(set)
        self.of_day: defaultdict[Key, set[str]] = defaultdict(set)
        self.on_file: defaultdict[Key, set[model.Record]] = defaultdict(set)  # before the history begins
        self.intents: dict[Key, Effect] = {}  # writes with a token or key

    def learn(self, stored: Stored | None) -> None:
        seen: dict[str, tuple[Op, Any]] = {}
        groups: dict[Any, Effect] = {}
        for (practice, patient), person in self.history.persons.items():
            self.owners[patient] = practice
            self.persons[patient] = (practice, person.last)
            record = model.Record(patient, person.first, person.phone, person.email)
            self.on_file["person", practice, person.last].add(record)
        for op in self.history.ops:
            name, body = op.name, op.body
            if op.status == 428:
                self.challenges[body["confirmationToken"]] = op
            if op.status == 200:
                if name in ("search_slots", "find_first_available"):
                    for item in body["items"]:
                        if item["id"] not in self.slots:
                            slot = Slot(item["providerId"], cell_of(item["start"]), item["procedureId"])
                            self.slots[item["id"]] = slot
                elif name == "list_appointments":
                    for item in body["items"]:
                        seen.setdefault(item["id"], (op, item))
                elif name == "get_appointment":
                    seen.setdefault(body["id"], (op, body))
            if name == "hold_slot" and op.succeeded and "heldUntil" in body:
                self._expires(body["holdId"], datetime.fromisoformat(body["heldUntil"]))
            if name in WRITES and (op.token or op.client not in self.agents):
                challenge = None if op.token is None else self.challenges.get(op.token)
                if challenge is not None and op.given != challenge.given:
                    continue  # a token with another request
                group: Any = op if op.token is None and op.key is None else (op.client, op.token, op.key)
                if group not in groups:
                    groups[group] = Effect([op])
                elif op.given == groups[group].op.given:
                    groups[group].ops.append(op)
        for effect in groups.values():
            self._settle(effect)
        self._resolve_by_reads(seen)
        if stored is not None:
            self._resolve_by_audit(stored)
            for row in stored.holds:
                self._expires(row["hold_id"], row["held_until"])
        for effect in self.findings.effects:
            self._know(effect)

    def _settle(self, effect: Effect) -> None:
        findings, lost = self.findings, 0
        for op in effect.ops:
            lost += op.is_unknown
            if not op.succeeded:
                continue
            if op.name in _CREATED and _CREATED[op.name] not in op.body:
                findings.add("an answer of another operation", op)
                continue
            if op.answered < effect.answered:
                effect.body, effect.answered = op.body, op.answered
            if op.name == "hold_slot":  # two of one token are an anomaly, and both are named later
                self.held.setdefault(op.body["holdId"], effect)
        findings.lost_answers += lost
        if lost and effect.body is not None:
            findings.resolved_by_resend += 1
        if effect.body is not None or lost:
            findings.effects.append(effect)
            if effect.op.token is not None or effect.op.key is not None:
                self.intents[effect.op.client, effect.op.token, effect.op.key] = effect

    def _resolve_by_reads(self, seen: dict[str, tuple[Op, Any]]) -> None:
        """A booking whose answer was lost is the one that made an appointment which no answer explains."""
        claimed = {effect.appointment for effect in self.findings.effects if effect.op.name == "book_appointment"}
        wanted: defaultdict[tuple[str, Slot], list[Effect]] = defaultdict(list)
        for effect in self.findings.effects:
            if effect.op.name == "book_appointment" and effect.body is None:
                wanted[effect.op.given["patientId"], self.slot(effect.op)].append(effect)
        for appointment, (read, item) in seen.items():
            if appointment in claimed or read.practice != self.owners.get(item["patientId"]):
                continue
            slot = Slot(item["providerId"], cell_of(item.get("rescheduledFrom", item["start"])), item["procedureId"])
            if effects := wanted.get((item["patientId"], slot)):
                effect = effects.pop(0)
                effect.body, effect.answered = {"appointmentId": appointment}, read.answered
                self.findings.resolved_by_reads += 1

    def _resolve_by_audit(self, stored: Stored) -> None:
        """A write commits with its audit record: what has none was not executed."""
        subjects = {
            row["request_id"]: row["subject_ids"]
            for row in stored.audit
            if row["outcome"] in ("executed", "unchanged") and row["operation"] in WRITES
        }
        for effect in [effect for effect in self.findings.effects if effect.body is None]:
            self.findings.resolved_by_audit += 1
            found = [subjects[op.request_id] for op in effect.ops if op.request_id in subjects]
            if not found:
                self.findings.effects.remove(effect)
                continue
            kinds = {"apt_": "appointmentId", "pat_": "patientId", "hld_": "holdId"}
            effect.body = {kinds[subject[:4]]: subject for subject in reversed(found[0]) if subject[:4] in kinds}
            effect.answered = AT_THE_END

    def _know(self, effect: Effect) -> None:
        op, body = effect.op, effect.body
        if body is None:
            return
        if op.name == "book_appointment":
            appointment, slot = body["appointmentId"], self.slot(op)
            if appointment in self.booked:
                self.findings.add("one id for two bookings", op)
            self.booked[appointment] = effect
            self.owners[appointment] = op.practice
            self.of_patient[op.given["patientId"]].add(appointment)
            self._has_been(appointment, self.day(op.practice, slot))
        elif op.name == "hold_slot":
            self.held[body["holdId"]] = effect
        elif op.name == "create_patient":
            self.owners[body["patientId"]] = op.practice
            self.persons[body["patientId"]] = (op.practice, op.given["lastName"])
        elif op.name == "reschedule_appointment":
            self._has_been(op.given["appointmentId"], self.day(op.practice, self.slot(op)))

    def _has_been(self, appointment: str, day: Key) -> None:
        self.places[appointment].add(day)
        self.of_day[day].add(appointment)

    @staticmethod
    def day(practice: str, slot: Slot) -> Key:
        return ("day", practice, slot.provider, slot.start // DAY_CELLS)

    def slot(self, op: Op) -> Slot:
        """The slot that a call names, or that the hold which it names is of."""
        if "holdId" in op.given:
            op = self.held[op.given["holdId"]].op
        return self.slots[op.given["slotId"]]

    def expiry(self, hold: str) -> Expiry:
        """Of a hold that nothing shows: at any time."""
        return self.expiries.get(hold, Expiry(0, NEVER))

    def _expires(self, hold: str, until: datetime) -> None:
        if hold not in self.expiries:
            self.expiries[hold] = Expiry(*self.history.moments_of(until.timestamp()))

    def person(self, patient: str) -> Key:
        return ("person", *self.persons.get(patient, ("", "")))

    def effect_of(self, op: Op) -> Effect | None:
        """The write that a token or key stands for."""
        return self.intents.get((op.client, op.token, op.key))
