"""Checks a history against the model, part by part: a provider's day, an appointment, a patient, a person, a result.

A call that concerns several parts is checked in each of them. Every anomaly that is found is one; an order that only
two parts together exclude is not noticed.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.proof import model
from tests.proof.linearize import Step, impossible
from tests.proof.practices import CAPACITY, DAY_CELLS, PROCEDURES, cell_of
from tests.proof.recorder import NEVER, WRITES, History, Op
from tests.proof.stored import Stored, compare

KEEP_RESULTS_SECONDS = 24 * 3600
_GAP_BETWEEN_MINUTES = 5.0
_DIRECTORY = frozenset(
    {
        "get_capabilities", "get_practice", "list_locations", "get_location", "list_providers", "get_provider",
        "list_visit_types", "get_visit_type", "list_procedures",
    }
)  # fmt: skip
_OUTAGE = frozenset({"internal", "upstream_unavailable", "unauthorized"})
_TOLD = 12  # calls that are told with an anomaly
AT_THE_END = NEVER - 3  # before the stored rows are read
_ALL_DAY = (1 << DAY_CELLS) - 1

Key = tuple[Any, ...]


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


class Checker:
    def __init__(self, history: History, agents: frozenset[str]) -> None:
        self.history = history
        self.agents = agents
        self.findings = Findings(operations=len(history.ops))
        self.parts: defaultdict[Key, list[Step]] = defaultdict(list)
        self.slots: dict[str, Slot] = {}
        self.challenges: dict[str, Op] = {}
        self.owners: dict[str, str] = {}  # patients and appointments: their practice
        self.persons: dict[str, tuple[str, str, str]] = {}  # patient: practice, last name, date of birth
        self.booked: dict[str, Effect] = {}
        self.places: defaultdict[str, set[Key]] = defaultdict(set)  # the days in which an appointment has been
        self.of_patient: defaultdict[str, set[str]] = defaultdict(set)
        self.of_day: defaultdict[Key, set[str]] = defaultdict(set)
        self.on_file: defaultdict[Key, set[model.Record]] = defaultdict(set)  # before the history begins
        self.intents: dict[Key, Effect] = {}  # writes with a token or key

    def check(self, stored: "Stored | None" = None) -> Findings:
        """The verdict on the history, and on what is stored after it."""
        self._learn(stored)
        for effect in self.findings.effects:
            self._place_effect(effect)
        for op in self.history.ops:
            if op.status:
                self._place_answer(op)
        self._count_calls()
        if stored is not None:
            compare(self, stored)
        self._search()
        return self.findings

    # what the answers name

    def _learn(self, stored: Stored | None) -> None:
        seen: dict[str, tuple[Op, Any]] = {}
        groups: dict[Any, Effect] = {}
        for (practice, patient), person in self.history.persons.items():
            self.owners[patient] = practice
            self.persons[patient] = (practice, person.last, person.dob)
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
        for effect in self.findings.effects:
            self._know(effect)

    def _settle(self, effect: Effect) -> None:
        findings, lost = self.findings, 0
        for op in effect.ops:
            lost += op.is_unknown
            if op.succeeded and op.answered < effect.answered:
                effect.body, effect.answered = op.body, op.answered
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
        wanted: defaultdict[tuple[str, Slot | None], list[Effect]] = defaultdict(list)
        for effect in self.findings.effects:
            if effect.op.name == "book_appointment" and effect.body is None:
                wanted[effect.op.given["patientId"], self.slots.get(effect.op.given["slotId"])].append(effect)
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
            row["request_id"]: row["subject_ids"] for row in stored.audit if row["outcome"] in ("executed", "unchanged")
        }
        for effect in [effect for effect in self.findings.effects if effect.body is None]:
            self.findings.resolved_by_audit += 1
            found = [subjects[op.request_id] for op in effect.ops if op.request_id in subjects]
            if not found:
                self.findings.effects.remove(effect)
                continue
            kinds = {"apt_": "appointmentId", "pat_": "patientId"}
            effect.body = {kinds[subject[:4]]: subject for subject in reversed(found[0]) if subject[:4] in kinds}
            effect.answered = AT_THE_END

    def _know(self, effect: Effect) -> None:
        op, body = effect.op, effect.body
        if body is None:
            return
        if op.name == "book_appointment":
            appointment, slot = body["appointmentId"], self.slots[op.given["slotId"]]
            if appointment in self.booked:
                self.findings.add("one id for two bookings", op)
            self.booked[appointment] = effect
            self.owners[appointment] = op.practice
            self.of_patient[op.given["patientId"]].add(appointment)
            self._has_been(appointment, self._day(op.practice, slot))
        elif op.name == "create_patient":
            self.owners[body["patientId"]] = op.practice
            self.persons[body["patientId"]] = (op.practice, op.given["lastName"], op.given["dob"])
        elif op.name == "reschedule_appointment":
            self._has_been(op.given["appointmentId"], self._day(op.practice, self.slots[op.given["slotId"]]))

    def _has_been(self, appointment: str, day: Key) -> None:
        self.places[appointment].add(day)
        self.of_day[day].add(appointment)

    @staticmethod
    def _day(practice: str, slot: Slot) -> Key:
        return ("day", practice, slot.provider, slot.start // DAY_CELLS)

    # what each call did

    def _place_effect(self, effect: Effect) -> None:
        op, told = effect.op, (effect.body or {}).get("status")
        if op.name == "book_appointment":
            if effect.body is None:
                return  # nothing ever showed it
            appointment, patient, slot = effect.body["appointmentId"], op.given["patientId"], self._slot(op)
            booked = model.Appointment(patient, slot.provider, slot.start, slot.procedure, "booked")
            self._write(("appointment", appointment), effect, model.becomes(booked))
            self._take_place(effect, appointment, patient, slot)
            return
        if op.name == "create_patient":
            if effect.body is not None:
                given = op.given
                record = model.Record(effect.body["patientId"], given["firstName"], given["phone"], given.get("email"))
                self._write(("person", op.practice, given["lastName"]), effect, model.is_created(record))
            return
        if op.name == "update_patient":
            patient = op.given["patientId"]
            names = {"firstName": "first", "phone": "phone", "email": "email"}
            changes = {names[name]: value for name, value in op.given.items() if name in names}
            self._write(self._person(patient), effect, model.is_updated(patient, changes))
            return
        appointment = op.given["appointmentId"]
        if appointment not in self.booked:
            return  # found elsewhere: another practice's, or one that no booking explains
        patient = self.booked[appointment].op.given["patientId"]
        if op.name == "reschedule_appointment":
            slot = self._slot(op)
            move = model.moves_to(slot.provider, slot.start, slot.procedure, told)
            self._write(("appointment", appointment), effect, move)
            self._take_place(effect, appointment, patient, slot)
        elif op.name == "confirm_attendance":
            self._write(("appointment", appointment), effect, model.is_confirmed_by(told))
        else:
            self._write(("appointment", appointment), effect, model.is_cancelled_by(told))
            self._write(("diary", patient), effect, model.no_longer_attends(appointment))
            for day in self.places[appointment]:
                self._write(day, effect, model.vacates(appointment))

    def _take_place(self, effect: Effect, appointment: str, patient: str, slot: Slot) -> None:
        procedure, here = PROCEDURES[slot.procedure], self._day(effect.op.practice, slot)
        wanted = model.cells(slot.start % DAY_CELLS, procedure.busy)
        self._write(here, effect, model.occupies(appointment, wanted))
        self._write(("diary", patient), effect, model.attends(appointment, slot.start, slot.start + procedure.cells))
        if effect.op.name == "reschedule_appointment":
            for day in self.places[appointment]:
                if day != here:
                    self._write(day, effect, model.vacates(appointment))

    def _place_answer(self, op: Op) -> None:
        if op.code in _OUTAGE:
            if not self.history.faults:
                self.findings.add("refused without a fault", op)
        elif op.code == "rate_limited":
            if op.client not in self.history.caps:
                self.findings.add("refused without a cap", op)
        elif self._is_foreign(op):
            if op.code != "not_found":
                self.findings.add("another practice's record was found", op)
        elif op.name in _DIRECTORY:
            known = self.history.directory.setdefault((op.practice, op.name, str(op.given)), op.body)
            if op.body != known:
                self.findings.add("the directory differs", op)
        elif op.name in WRITES:
            self._place_write_answer(op)
        else:
            for key, run in self._shown(op):
                self._read(key, op, run)

    def _is_foreign(self, op: Op) -> bool:
        named = (op.given.get("appointmentId"), op.given.get("patientId"))
        return any(self.owners.get(each, op.practice) != op.practice for each in named if each is not None)

    def _place_write_answer(self, op: Op) -> None:
        challenge = None if op.token is None else self.challenges.get(op.token)
        mine = challenge is not None and challenge.client == op.client
        if op.token is not None and op.status == 428 and mine:
            self._check_expiry(op, challenge)
        if challenge is not None and mine and op.given != challenge.given:
            if op.code != "confirmation_mismatch" and op.status != 428:
                self.findings.add("a token confirmed another request", op)
            return
        effect = self._effect_of(op)
        if op.succeeded and op.token is not None and not mine:
            self.findings.add("a token of another client was accepted", op)
        if op.key is not None and effect is not None and op.given != effect.op.given:
            if op.code != "conflict":
                self.findings.add("a key answered another request", op)
            return
        if op.token is not None or op.key is not None:
            part: Key = ("result", op.client, op.token or op.key)
            if op.succeeded:
                self.parts[part].append(Step(op.invoked, op.answered, True, model.answers(_frozen(op.body)), op))
            elif op.status != 428:
                self._read(part, op, model.is_unused)
        if not op.succeeded:
            own = None if effect is None else effect.appointment
            shown = list(self._refused(op, own if op.name == "book_appointment" else op.given.get("appointmentId")))
            if not shown:
                self.findings.add("an answer that nothing explains", op)
            for key, run in shown:
                self._read(key, op, run)

    def _effect_of(self, op: Op) -> Effect | None:
        return self.intents.get((op.client, op.token, op.key))

    def _check_expiry(self, op: Op, challenge: Op | None) -> None:
        assert challenge is not None
        latest, effect = self.history.latest_service_time(op), self._effect_of(op)
        if latest < datetime.fromisoformat(challenge.body["expiresAt"]).timestamp():
            self.findings.add("a valid token was not recognized", op)
        elif effect is not None and effect.body is not None and effect.answered < op.invoked:
            executed = effect.answered / 1e9 + self.history.wall_clock
            if latest < executed + KEEP_RESULTS_SECONDS + min(offset for _, offset in self.history.offsets):
                self.findings.add("a stored result was forgotten", op)

    def _refused(self, op: Op, but: str | None) -> Iterator[tuple[Key, model.Read]]:
        """What a refusal or a challenge shows of the state."""
        code, name = op.code, op.name
        if name in ("book_appointment", "reschedule_appointment") and code != "conflict":
            slot = self._slot(op)
            if name == "book_appointment":
                patient = op.given["patientId"]
            elif op.given["appointmentId"] in self.booked:
                patient = self.booked[op.given["appointmentId"]].op.given["patientId"]
            else:
                return
            procedure = PROCEDURES[slot.procedure]
            wanted = model.cells(slot.start % DAY_CELLS, procedure.busy)
            times = (slot.start, slot.start + procedure.cells, but)
            if code == "slot_unavailable":
                yield self._day(op.practice, slot), model.shows_taken(wanted, but)
            elif code == "validation" and op.status == 422:
                yield ("diary", patient), model.has_no_time(*times)
            elif code == "confirmation_required":
                yield self._day(op.practice, slot), model.shows_free(wanted, but)
                yield ("diary", patient), model.has_time(*times)
                if name == "reschedule_appointment":
                    yield ("appointment", but), model.is_live
        elif name == "create_patient" and code in ("conflict", "confirmation_required"):
            created = model.is_created(model.Record("", op.given["firstName"], op.given["phone"], None))
            exists = code == "conflict"
            yield (
                ("person", op.practice, op.given["lastName"]),
                lambda people: (created(people) is None) == exists,
            )
        elif name == "update_patient" and code == "confirmation_required":
            updated = model.is_updated(op.given["patientId"], {})
            yield self._person(op.given["patientId"]), lambda people: updated(people) is not None
        elif name.endswith("appointment") or name == "confirm_attendance":
            if code == "conflict":
                yield ("appointment", op.given["appointmentId"]), model.is_cancelled
            elif code == "confirmation_required":
                yield ("appointment", op.given["appointmentId"]), model.is_live

    def _shown(self, op: Op) -> Iterator[tuple[Key, model.Read]]:
        """What the answer of a read shows of the state."""
        name, body, given = op.name, op.body, op.given
        if name == "match_patient":
            found = frozenset(item["id"] for item in body["items"]) if op.status == 200 else frozenset[str]()
            yield ("person", op.practice, given["lastName"]), model.matches(given["firstName"], given["phone"], found)
        elif op.status != 200:
            yield ("answer", op.request_id), model.never
        elif name == "search_slots":
            day = cell_of(f"{given['from']}T00:00:00+00:00") // DAY_CELLS
            listed = sum(1 << cell_of(item["start"]) % DAY_CELLS for item in body["items"])
            yield (
                ("day", op.practice, given["providerId"], day),
                model.shows_open(PROCEDURES[given["procedureId"]], listed, _ALL_DAY),
            )
        elif name == "find_first_available":
            yield from self._earliest(op)
        elif name == "get_slot":
            slot = self._slot(op)
            wanted = model.cells(slot.start % DAY_CELLS, PROCEDURES[slot.procedure].busy)
            shows = model.shows_free if body["available"] else model.shows_taken
            yield self._day(op.practice, slot), shows(wanted, None)
        elif name == "get_patient":
            record = model.Record(body["id"], body["firstName"], body["phone"], body.get("email"))
            yield self._person(body["id"]), model.is_on_file(record)
        elif name == "get_appointment":
            yield ("appointment", body["id"]), model.is_exactly(shown_appointment(body))
        else:
            yield from self._listed(op)

    def _earliest(self, op: Op) -> Iterator[tuple[Key, model.Read]]:
        """The answer covers, of each provider, what comes before its last item."""
        day, items = cell_of(f"{op.given['from']}T00:00:00+00:00") // DAY_CELLS, op.body["items"]
        last = (NEVER, 0)
        if len(items) == op.body["limit"]:
            last = (cell_of(items[-1]["start"]), items[-1]["providerId"])
        for provider in CAPACITY if "providerId" not in op.given else (op.given["providerId"],):
            listed = sum(
                1 << cell % DAY_CELLS
                for item in items
                if item["providerId"] == provider and (cell := cell_of(item["start"])) // DAY_CELLS == day
            )
            covered = min(DAY_CELLS, max(0, last[0] - day * DAY_CELLS + (provider <= last[1])))
            yield (
                ("day", op.practice, provider, day),
                model.shows_open(PROCEDURES[op.given["procedureId"]], listed, (1 << covered) - 1),
            )

    def _listed(self, op: Op) -> Iterator[tuple[Key, model.Read]]:
        items = {item["id"]: item for item in op.body["items"]}
        for appointment, item in items.items():
            yield ("appointment", appointment), model.is_exactly(shown_appointment(item))
        if "nextCursor" in op.body:
            return
        if "patientId" in op.given:
            for appointment in self.of_patient[op.given["patientId"]] - items.keys():
                yield ("appointment", appointment), model.is_elsewhere(None, None, DAY_CELLS)
        else:
            provider, day = op.given["providerId"], cell_of(f"{op.given['from']}T00:00:00+00:00") // DAY_CELLS
            for appointment in self.of_day["day", op.practice, provider, day] - items.keys():
                yield ("appointment", appointment), model.is_elsewhere(provider, day, DAY_CELLS)

    def _slot(self, op: Op) -> Slot:
        return self.slots[op.given["slotId"]]

    def _person(self, patient: str) -> Key:
        practice, last, _ = self.persons.get(patient, ("", "", ""))
        return ("person", practice, last)

    def _write(self, key: Key, effect: Effect, run: model.Write) -> None:
        self.parts[key].append(Step(effect.op.invoked, effect.answered, True, run, effect.op))

    def _read(self, key: Key, op: Op, run: model.Read) -> None:
        self.parts[key].append(Step(op.invoked, op.answered, False, run, op))

    # the verdict

    def _count_calls(self) -> None:
        """Calls of a capped client that were let through in one minute of its rate limit."""
        minutes: defaultdict[str, list[float]] = defaultdict(list)
        for op in self.history.ops:
            if op.minute_ends is not None and op.succeeded:
                minutes[op.client].append(op.minute_ends)
        for client, ends in minutes.items():
            ends.sort()
            began = 0
            for at in range(1, len(ends) + 1):
                if at == len(ends) or ends[at] - ends[at - 1] > _GAP_BETWEEN_MINUTES:
                    if at - began > self.history.caps[client]:
                        self.findings.add(
                            "cap exceeded", f"{at - began} calls in a minute, {self.history.caps[client]}"
                        )
                    began = at

    def _search(self) -> None:
        for key, steps in self.parts.items():
            if (step := impossible(steps, self._initial(key))) is not None:
                self.findings.add(f"not linearizable ({key[0]})", _story(steps, step))

    def _initial(self, key: Key) -> Any:
        if key[0] == "day":
            return model.empty_day(CAPACITY[key[2]])
        if key[0] == "diary":
            return frozenset()
        if key[0] == "person":
            return frozenset(self.on_file[key])
        return None


def _story(steps: list[Step], failed: Step) -> str:
    """The call that cannot be explained, and those on the same part before it."""
    before = sorted(
        (step for step in steps if step.invoked < failed.answered and step is not failed), key=lambda step: step.invoked
    )[-_TOLD:]
    return "\n".join(
        [str(failed.op or "what is stored in the end")]
        + [f"    {step.invoked / 1e9:.4f} to {step.answered / 1e9:.4f}: {step.op}" for step in before]
    )


def shown_appointment(item: Any) -> model.Appointment:
    return model.Appointment(
        item["patientId"], item["providerId"], cell_of(item["start"]), item["procedureId"], item["status"]
    )


def _frozen(body: Any) -> Any:
    return tuple(sorted(body.items()))
