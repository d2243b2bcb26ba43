"""Checks a history against the model, part by part: a provider's day, an appointment, a patient, a person, a result.

A call that concerns several parts is checked in each of them. Every anomaly that is found is one; an order that only
two parts together exclude is not noticed.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

from tests.proof import lanes, model
from tests.proof.answers import refused, shown
from tests.proof.facts import Effect, Facts, Findings, Key, Slot
from tests.proof.linearize import Read, Step, Write, impossible
from tests.proof.practices import CAPACITY, DAY_CELLS, PROCEDURES
from tests.proof.recorder import WRITES, History, Op
from tests.proof.stored import Stored, compare
from tests.proof.write_limits import compare_write_limits

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


class Checker:
    def __init__(self, history: History, agents: frozenset[str]) -> None:
        self.history = history
        self.findings = Findings(operations=len(history.ops))
        self.parts: defaultdict[Key, list[Step]] = defaultdict(list)
        self.facts = Facts(history, agents, self.findings)
        self.limited: list[Op] = []  # writes that were refused because of a limit on them

    def check(self, stored: Stored | None = None) -> Findings:
        """The verdict on the history, and on what is stored after it."""
        self.facts.learn(stored)
        for effect in self.findings.effects:
            self._place_effect(effect)
        for op in self.history.ops:
            if op.status:
                self._place_answer(op)
        self._count_calls()
        if stored is not None:
            compare(self, stored)
            compare_write_limits(self, stored)
        self._search()
        return self.findings

    # what each call did

    def _place_effect(self, effect: Effect) -> None:
        op, status = effect.op, (effect.body or {}).get("status")
        if op.name == "book_appointment":
            if effect.body is None:
                return  # nothing ever showed it
            appointment, patient, slot = effect.body["appointmentId"], op.given["patientId"], self.facts.slot(op)
            booked = model.Appointment(patient, slot.provider, slot.start, slot.procedure, "booked")
            self._write(("appointment", appointment), effect, model.becomes(booked))
            self._take_place(effect, appointment, patient, slot)
            if "holdId" in op.given:
                self._end_hold(effect)
            return
        if op.name == "hold_slot":
            if effect.body is not None:
                self._begin_hold(effect)
            return
        if op.name == "release_hold":
            self._end_hold(effect)
            self._write(self.facts.day(op.practice, self.facts.slot(op)), effect,
                        lanes.ends_hold(op.given["holdId"], effect.when))  # fmt: skip
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
            self._write(self.facts.person(patient), effect, model.is_updated(patient, changes))
            return
        appointment = op.given["appointmentId"]
        if appointment not in self.facts.booked:
            return  # found elsewhere: another practice's, or one that no booking explains
        patient = self.facts.booked[appointment].op.given["patientId"]
        if op.name == "reschedule_appointment":
            slot = self.facts.slot(op)
            move = model.moves_to(slot.provider, slot.start, slot.procedure, status)
            self._write(("appointment", appointment), effect, move)
            self._take_place(effect, appointment, patient, slot)
        elif op.name == "confirm_attendance":
            self._write(("appointment", appointment), effect, model.is_confirmed_by(status))
        else:
            self._write(("appointment", appointment), effect, model.is_cancelled_by(status))
            self._write(("diary", patient), effect, model.no_longer_attends(appointment))
            for day in self.facts.places[appointment]:
                self._write(day, effect, lanes.vacates(appointment))

    def _take_place(self, effect: Effect, appointment: str, patient: str, slot: Slot) -> None:
        procedure, here = PROCEDURES[slot.procedure], self.facts.day(effect.op.practice, slot)
        wanted = lanes.cells(slot.start % DAY_CELLS, procedure.busy)
        self._write(here, effect, lanes.occupies(appointment, wanted, effect.when, effect.op.given.get("holdId")))
        self._write(("diary", patient), effect, model.attends(appointment, slot.start, slot.start + procedure.cells))
        if effect.op.name == "reschedule_appointment":
            for day in self.facts.places[appointment]:
                if day != here:
                    self._write(day, effect, lanes.vacates(appointment))

    def _begin_hold(self, effect: Effect) -> None:
        op, hold, slot = effect.op, effect.body["holdId"], self.facts.slot(effect.op)
        wanted, expiry = lanes.cells(slot.start % DAY_CELLS, PROCEDURES[slot.procedure].busy), self.facts.expiry(hold)
        self._write(("hold", hold), effect, model.begins)
        self._write(("holds", op.client), effect, model.is_allowed(hold, expiry, effect.when))
        self._write(self.facts.day(op.practice, slot), effect, lanes.begins_hold(hold, wanted, expiry, effect.when))

    def _end_hold(self, effect: Effect) -> None:
        hold = effect.op.given["holdId"]
        self._write(("hold", hold), effect, model.ends)
        self._write(("holds", effect.op.client), effect, model.is_given_up(hold, self.facts.expiry(hold)))

    def _place_answer(self, op: Op) -> None:
        if op.code in _OUTAGE:
            if not self.history.faults and op.practice not in self.history.upstream:
                self.findings.add("refused without a fault", op)
        elif op.code == "rate_limited":
            if op.client in self.history.write_limits and op.name in WRITES:
                self.limited.append(op)
            elif op.client not in self.history.caps:
                self.findings.add("refused without a cap", op)
        elif op.code == "confirmation_incomplete":
            if op.practice not in self.history.upstream:
                self.findings.add("an open outcome without another system", op)
        elif self._is_foreign(op):
            if op.code != "not_found":
                self.findings.add("another practice's record was found", op)
        elif self._is_hold_of_another(op):
            if op.code != ("slot_unavailable" if op.name == "book_appointment" else "not_found"):
                self.findings.add("another client's hold was found", op)
        elif op.name in _DIRECTORY:
            known = self.history.directory.setdefault((op.practice, op.name, str(op.given)), op.body)
            if op.body != known:
                self.findings.add("the directory differs", op)
        elif op.name in WRITES:
            self._place_write_answer(op)
        else:
            for key, run in shown(self.facts, op):
                self._read(key, op, run)

    def _is_foreign(self, op: Op) -> bool:
        owners, practice, given = self.facts.owners, op.practice, op.given
        return (
            owners.get(given.get("appointmentId", ""), practice) != practice
            or owners.get(given.get("patientId", ""), practice) != practice
        )

    def _is_hold_of_another(self, op: Op) -> bool:
        return "holdId" in op.given and self.facts.held[op.given["holdId"]].op.client != op.client

    def _place_write_answer(self, op: Op) -> None:
        challenge = None if op.token is None else self.facts.challenges.get(op.token)
        mine = challenge is not None and challenge.client == op.client
        if challenge is not None and mine and op.status == 428:
            self._check_expiry(op, challenge)
        if challenge is not None and mine and op.given != challenge.given:
            may_be_refused = op.status == 428 or self._may_have_expired(op, challenge)
            if op.succeeded or not (op.code == "confirmation_mismatch" or may_be_refused):
                self.findings.add("a token confirmed another request", op)
            return
        effect = self.facts.effect_of(op)
        if op.succeeded and op.token is not None and not mine:
            self.findings.add("a token of another client was accepted", op)
        if op.key is not None and effect is not None and op.given != effect.op.given:
            if op.code != "conflict":
                self.findings.add("a key answered another request", op)
            return
        if op.token is not None or op.key is not None:
            part: Key = ("result", op.client, op.token or op.key)
            if op.succeeded:
                self.parts[part].append(Step(op.invoked, op.answered, True, model.answers(_result(op)), op))
            elif op.status != 428:
                self._read(part, op, model.is_unused)
        if not op.succeeded:
            own = None if effect is None else effect.appointment
            shows = list(
                refused(self.facts, op, own if op.name == "book_appointment" else op.given.get("appointmentId"))
            )
            if not shows:
                self.findings.add("an answer that nothing explains", op)
            for key, run in shows:
                self._read(key, op, run)

    def _may_have_expired(self, op: Op, challenge: Op) -> bool:
        """A call whose token has expired is answered like one without it, which may be refused for any reason."""
        return self.history.latest_service_time(op) >= datetime.fromisoformat(challenge.body["expiresAt"]).timestamp()

    def _check_expiry(self, op: Op, challenge: Op) -> None:
        latest, effect = self.history.latest_service_time(op), self.facts.effect_of(op)
        if not self._may_have_expired(op, challenge):
            self.findings.add("a valid token was not recognized", op)
        elif effect is not None and effect.body is not None and effect.answered < op.invoked:
            executed = effect.answered / 1e9 + self.history.wall_clock
            if latest < executed + KEEP_RESULTS_SECONDS + min(offset.least for offset in self.history.offsets):
                self.findings.add("a stored result was forgotten", op)

    def _write(self, key: Key, effect: Effect, run: Write) -> None:
        if not self._is_skipped(key, effect.op):
            self.parts[key].append(Step(effect.op.invoked, effect.answered, True, run, effect.op))

    def _read(self, key: Key, op: Op, run: Read) -> None:
        if not self._is_skipped(key, op):
            self.parts[key].append(Step(op.invoked, op.answered, False, run, op))

    def _is_skipped(self, key: Key, op: Op) -> bool:
        """Another system takes a time step by step: what is seen in between is not checked, but what is left in the
        end; nor is an appointment that was undone because the time was taken."""
        if op.practice not in self.history.upstream:
            return False
        return key[0] in ("day", "diary") or (key[0] == "appointment" and key[1] not in self.facts.booked)

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
            return lanes.empty_day(CAPACITY[key[2]])
        if key[0] == "diary":
            return frozenset()
        if key[0] == "holds":
            return model.Holds(0, frozenset())
        if key[0] == "person":
            return frozenset(self.facts.on_file[key])
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


def _result(op: Op) -> Any:
    """What a write is stored to have answered; until when a hold lasts is read anew."""
    return tuple(sorted((name, value) for name, value in op.body.items() if name != "heldUntil"))
