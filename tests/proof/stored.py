"""Compares what is stored and what was sent after a run with its history: rows, audit records, events and webhooks."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg

from frontdesk.features.holds.operations import MAX_HOLDS_PER_HOUR
from tests.proof import model
from tests.proof.lanes import When
from tests.proof.linearize import Read, Step
from tests.proof.practices import CELL_MINUTES
from tests.proof.receipts import Issued, compare_receipts
from tests.proof.recorder import AUDITED_READS, NEVER, WRITES

if TYPE_CHECKING:
    from tests.proof.checker import Checker

_APPOINTMENTS = """
SELECT p.slug AS practice, a.*, extract(epoch FROM a.starts_at)::bigint AS start
FROM appointment a JOIN practice p USING (practice_id)
"""
_CLASHES = """
SELECT a.appointment_id FROM appointment a JOIN appointment b ON a.practice_id = b.practice_id
    AND a.appointment_id < b.appointment_id AND a.status <> 'cancelled' AND b.status <> 'cancelled'
    AND ((a.provider_id = b.provider_id AND a.lane = b.lane
          AND a.starts_at < b.busy_until AND b.starts_at < a.busy_until)
         OR (a.patient_id = b.patient_id AND a.starts_at < b.ends_at AND b.starts_at < a.ends_at))
"""
_HOLDS = "SELECT * FROM slot_hold"
_PATIENTS = "SELECT p.slug AS practice, t.* FROM patient t JOIN practice p USING (practice_id)"
_AUDIT = "SELECT at, actor, operation, outcome, subject_ids, request_id FROM audit_record WHERE actor LIKE 'fd\\_%'"
_OUTBOX = """
SELECT event_id, type, coalesce(subject ->> 'appointmentId', subject ->> 'patientId', subject ->> 'clientId') AS subject
FROM outbox
ORDER BY event_id
"""
_HOUR = timedelta(hours=1)
_EVENTS = {
    "book_appointment": "appointment.booked",
    "cancel_appointment": "appointment.cancelled",
    "confirm_attendance": "appointment.confirmed",
    "reschedule_appointment": "appointment.rescheduled",
    "create_patient": "patient.created",
    "update_patient": "patient.updated",
}


@dataclass
class Stored:
    appointments: list[Any]
    holds: list[Any]
    patients: list[Any]
    clashes: list[Any]
    audit: list[Any]
    outbox: list[Any]
    received: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # webhooks: id, type, subject, in order of arrival
    broken_chains: list[str] = field(default_factory=list)
    agreed: list[Any] = field(default_factory=list)  # records of writes that were agreed to
    receipts: list[Issued] = field(default_factory=list)  # of some of them
    read_at: int = field(default_factory=time.monotonic_ns)
    upstream_faults: list[str] = field(default_factory=list)
    reads_may_be_lost: bool = False  # a killed process may take the audit records of its last reads with it


async def read_stored(dsn: str) -> Stored:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        statements = (_APPOINTMENTS, _HOLDS, _PATIENTS, _CLASHES, _AUDIT, _OUTBOX)
        return Stored(*[await connection.fetch(each) for each in statements])
    finally:
        await connection.close()


def compare(checker: "Checker", stored: Stored) -> None:
    _rows(checker, stored)
    _audit(checker, stored)
    _events(checker, stored)
    compare_receipts(checker, stored)
    for text in stored.broken_chains:
        checker.findings.add("audit chain broken", text)
    for text in stored.upstream_faults:
        checker.findings.add("left in the other system", text)


def _rows(checker: "Checker", stored: Stored) -> None:
    """Stored rows are one more read of everything, after the last call."""
    findings, kept = checker.findings, {row["appointment_id"]: row for row in stored.appointments}

    def read(key: tuple[Any, ...], run: Read) -> None:
        checker.parts[key].append(Step(NEVER - 2, NEVER - 1, False, run, None))

    for appointment in checker.facts.booked.keys() - kept.keys():
        findings.add("booking lost", checker.facts.booked[appointment].op)
    for appointment, row in kept.items():
        if appointment not in checker.facts.booked:
            if row["practice"] in checker.history.upstream and row["status"] == "cancelled":
                continue  # undone, because the time was taken
            findings.add("an appointment that no answer explains", appointment)
            continue
        start = row["start"] // (CELL_MINUTES * 60)
        shown = model.Appointment(row["patient_id"], row["provider_id"], start, row["procedure_id"], row["status"])
        read(("appointment", appointment), model.is_exactly(shown))
    _holds(checker, stored, read)
    on_file = set()
    for row in stored.patients:
        on_file.add(row["patient_id"])
        if row["patient_id"] not in checker.facts.persons:
            findings.add("a patient that no answer explains", row["patient_id"])
            continue
        record = model.Record(row["patient_id"], row["first_name"], row["phone"], row["email"])
        read(("person", row["practice"], row["last_name"]), model.is_on_file(record))
    for patient in checker.facts.persons.keys() - on_file:
        findings.add("patient lost", patient)
    for row in stored.clashes:
        findings.add("double booking", row["appointment_id"])


def _holds(checker: "Checker", stored: Stored, read: Callable[[tuple[Any, ...], Read], None]) -> None:
    findings, facts, now = checker.findings, checker.facts, When(stored.read_at, stored.read_at)
    begun: defaultdict[str, list[datetime]] = defaultdict(list)
    for row in stored.holds:
        begun[row["client_id"]].append(row["held_at"])
        may_have_expired = facts.expiry(row["hold_id"]).may_have_come(now)
        if row["hold_id"] not in facts.held:
            findings.add("a hold that no answer explains", row["hold_id"])
        else:
            read(
                ("hold", row["hold_id"]),
                model.is_held if row["live"] else model.is_over(may_have_expired=may_have_expired),
            )
    for hold in facts.held.keys() - {row["hold_id"] for row in stored.holds}:
        if not facts.expiry(hold).may_have_come(now):  # those of long ago are deleted
            findings.add("hold lost", facts.held[hold].op)
    for client, times in begun.items():
        times.sort()
        if any(last - first < _HOUR for first, last in zip(times, times[MAX_HOLDS_PER_HOUR:], strict=False)):
            findings.add("too many holds in an hour", client)


def _audit(checker: "Checker", stored: Stored) -> None:
    findings = checker.findings
    recorded: defaultdict[str, list[Any]] = defaultdict(list)
    for row in stored.audit:
        recorded[row["request_id"]].append(row)
    explained = set()
    for effect in checker.findings.effects:
        requests = [op.request_id for op in effect.ops]
        explained.update(requests)
        done = [
            row
            for each in requests
            for row in recorded[each]
            if row["outcome"] in ("executed", "unchanged") and row["operation"] == effect.op.name
        ]
        if len(done) > 1:
            findings.add("executed twice", effect.op)
        elif not done and effect.body is not None:
            findings.add("audit record missing", effect.op)
        elif done and effect.body is not None and not set(effect.body.values()) & set(done[0]["subject_ids"]):
            findings.add("audit record of something else", effect.op)
    for request, rows in recorded.items():
        for row in rows:
            is_write = row["operation"] in WRITES and row["outcome"] in ("executed", "unchanged")
            if is_write and request not in explained:
                findings.add("audit record that no call explains", f"{row['operation']} {request}")
    if not stored.reads_may_be_lost:
        for op in checker.history.ops:
            executed = any(row["outcome"] == "executed" for row in recorded[op.request_id])
            if op.name in AUDITED_READS and op.status == 200 and not executed:
                findings.add("read without an audit record", op)


def _events(checker: "Checker", stored: Stored) -> None:
    findings = checker.findings
    written = Counter((row["type"], row["subject"]) for row in stored.outbox if row["type"] in _EVENTS.values())
    executed = Counter(
        (_EVENTS[row["operation"]], subject)
        for row in stored.audit
        if row["outcome"] == "executed" and row["operation"] in _EVENTS
        for subject in row["subject_ids"]
        if subject.startswith("pat_" if row["operation"].endswith("patient") else "apt_")
    )
    for event, count in ((executed - written) + (written - executed)).items():
        findings.add("events differ from the audit trail", f"{event} by {count}")
    for effect in findings.effects:
        if effect.body is not None and effect.op.name in ("book_appointment", "cancel_appointment", "create_patient"):
            subject = effect.body.get("appointmentId") or effect.body["patientId"]
            if written[_EVENTS[effect.op.name], subject] != 1:
                findings.add("not exactly one event", effect.op)
    _webhooks(checker, stored)


def _webhooks(checker: "Checker", stored: Stored) -> None:
    findings = checker.findings
    sent = {f"evt_{row['event_id']}": (row["type"], row["subject"]) for row in stored.outbox}
    arrived = Counter(event for event, _, _ in stored.received)
    for event in sent.keys() - arrived.keys():
        findings.add("webhook never", f"{event} {sent[event]}")
    first_arrivals: dict[str, None] = {}
    for event, kind, subject in stored.received:
        first_arrivals.setdefault(event)
        if sent.get(event) != (kind, subject):
            findings.add("webhook of something else", f"{event} {kind} {subject}")
    if not checker.history.faults:
        for event, count in arrived.items():
            if count > 1:
                findings.add("webhook twice", f"{event} {count} times")
    last: dict[str, int] = {}
    for event in first_arrivals:
        if event in sent:
            subject, number = sent[event][1], int(event.removeprefix("evt_"))
            if number < last.get(subject, 0):
                findings.add("webhooks out of order", f"{event} {sent[event]}")
            last[subject] = max(number, last.get(subject, 0))
