"""Bugs that the checker has to find. Each is an edit of a copy of the source, made before the service starts."""
# ruff: noqa: E501 - the edited lines as they stand in the source

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WRITES = "store/functions/writes.sql"
PATIENTS = "store/functions/patients.sql"
STATUSES = "store/functions/status_changes.sql"
WEBHOOKS = "store/functions/webhooks.sql"
SLOTS = "store/functions/slots.sql"
CONFIRMATION = "engine/confirmation.py"
ANSWER_CACHE = "engine/answer_cache.py"
HOLDS = "store/functions/holds.sql"
WRITE_LIMITS = "store/functions/write_limits.sql"


@dataclass(frozen=True, slots=True)
class Edit:
    file: str  # under src/frontdesk
    before: str
    after: str

    def fits(self, source: Path) -> bool:
        return (source / self.file).read_text().count(self.before) == 1


class Bug:
    """Edits, and the kinds of anomaly of which the checker has to find one."""

    def __init__(self, kinds: set[str], *edits: Edit) -> None:
        self.kinds = kinds
        self.edits = edits


def apply(edits: tuple[Edit, ...], source: Path) -> None:
    for edit in edits:
        path = source / edit.file
        path.write_text(path.read_text().replace(edit.before, edit.after))


BUGS: Mapping[str, Bug] = {
    "lost update: a patient's fields are written as they were read before": Bug(
        {"not linearizable (person)"},
        Edit(PATIENTS, "IF (p.first_name, p.last_name, p.dob, p.phone, p.email) IS", "IF false AND (p.first_name, p.last_name, p.dob, p.phone, p.email) IS"),
    ),
    "lost write: an e-mail is acknowledged and not stored": Bug(
        {"not linearizable (person)"},
        Edit(PATIENTS, "phone_digits = c ->> 'phoneDigits', email = c ->> 'email',", "phone_digits = c ->> 'phoneDigits',"),
    ),
    "lost booking: acknowledged and not stored": Bug(
        {"booking lost"},
        Edit(WRITES, "    INSERT INTO appointment (\n", "    IF v_lane < 2 THEN INSERT INTO appointment (\n"),
        Edit(WRITES, "v_starts, v_ends, v_busy_until, 'booked', p_actor, p_now, p_now\n    );",
             "v_starts, v_ends, v_busy_until, 'booked', p_actor, p_now, p_now\n    ); END IF;"),
    ),
    "stale read: cached answers are not compared with the calendar": Bug(
        {"not linearizable (day)"},
        Edit(ANSWER_CACHE, "return all(current.calendars.get(provider, 0) == changes for provider, changes in calendars.items())",
             "return True"),
    ),
    "stale read: cached calendars are not read again": Bug(
        {"not linearizable (day)"},
        Edit("systems/native/calendar_reader.py", "if calendar.changes == current.calendars.get(provider_id, 0)", "if True"),
    ),
    "stale read: changes of an appointment are not counted": Bug(
        {"not linearizable (day)"},
        Edit("store/functions/triggers.sql", "UNION ALL SELECT practice_id, provider_id, starts_at, busy_until FROM after) changed",
             ") changed WHERE false"),
    ),
    "stale read: open times of a week that changed are used again": Bug(
        {"not linearizable (day)"},
        Edit("systems/native/calendar_cache.py", "weeks.without(touched, begin)", "weeks"),
    ),
    "stale read: a worker remembers appointments": Bug(
        {"not linearizable (appointment)"},
        Edit("operations/_lookups.py", 'R = TypeVar("R", Location, Provider, VisitType)\n',
             'R = TypeVar("R", Location, Provider, VisitType)\n_seen: dict[str, Appointment] = {}\n'),
        Edit("operations/_lookups.py", "    context.subjects.extend((found.id, found.patient_id))\n    return found",
             "    context.subjects.extend((found.id, found.patient_id))\n    return _seen.setdefault(found.id, found)"),
    ),
    "another practice's answer: the cache is keyed without the practice": Bug(
        {"an answer that nothing explains", "not linearizable (answer)", "the directory differs"},
        Edit(ANSWER_CACHE, "entry = self._entries.get((caller.practice_id, *key))", "entry = self._entries.get((0, *key))"),
        Edit(ANSWER_CACHE, "self._entries.put((caller.practice_id, key[0]", "self._entries.put((0, key[0]"),
    ),
    "phantom slot: the buffer after a visit is not busy": Bug(
        {"not linearizable (day)"},
        Edit(SLOTS, "        SELECT string_agg(\n            int4send(epoch_minutes(o.starts_at)) || int4send(end_minutes(o.busy_until))",
             "        SELECT string_agg(\n            int4send(epoch_minutes(o.starts_at)) || int4send(epoch_minutes(o.ends_at))"),
        Edit(SLOTS, "SELECT a.starts_at, a.busy_until, a.lane\n            FROM appointment a\n            WHERE a.practice_id = p_practice AND a.provider_id = wanted.id",
             "SELECT a.starts_at, a.ends_at, a.lane\n            FROM appointment a\n            WHERE a.practice_id = p_practice AND a.provider_id = wanted.id"),
    ),
    "phantom slot: a slot is always said to be available": Bug(
        {"not linearizable (day)"},
        Edit("operations/get_slot.py", '"available": state.available', '"available": True'),
    ),
    "time leaks: a cancelled appointment keeps its time": Bug(
        {"not linearizable (day)"},
        Edit(WRITES, "AND a.status <> 'cancelled' AND a.starts_at >= p_from", "AND a.starts_at >= p_from"),
    ),
    "hold leaks: a released one keeps its time": Bug(
        {"not linearizable (day)", "not linearizable (hold)"},
        Edit(HOLDS, "    IF NOT end_hold(p_practice, v_id, p_actor, p_now) THEN", "    IF false THEN"),
    ),
    "hold leaks: a booked one keeps its time": Bug(
        {"not linearizable (day)", "not linearizable (hold)"},
        Edit(WRITES, "IF v_hold IS NOT NULL AND NOT end_hold(p_practice, v_hold, p_actor, p_now) THEN", "IF false THEN"),
    ),
    "hold leaks: an expired one keeps its time": Bug(
        {"not linearizable (day)", "not linearizable (hold)"},
        Edit(WRITES, "AND h.live AND h.held_until > p_now AND h.starts_at >= p_from", "AND h.live AND h.starts_at >= p_from"),
        Edit(SLOTS, "h.provider_id = p_provider AND h.live AND h.held_until > p_now", "h.provider_id = p_provider AND h.live"),
    ),
    "no receipt: what was read back before a booking is not kept": Bug(
        {"receipt missing"},
        Edit(WRITES, "THEN i.challenge END", "AND p_change <> 'book' THEN i.challenge END"),
    ),
    "a receipt says something else: the read-back is kept without the name": Bug(
        {"receipt of something else"},
        Edit(CONFIRMATION, '"readBack": read_back}', '"readBack": proposal.read_back}'),
    ),
    "a held time is offered": Bug(
        {"not linearizable (day)"},
        Edit(SLOTS, "h.provider_id = wanted.id AND h.live AND h.held_until > p_now", "false"),
    ),
    "a hold of another client is booked": Bug(
        {"another client's hold was found"},
        Edit(HOLDS, "h.hold_id = p_hold AND h.client_id = p_client AND h.live\n      AND h.held_until > p_now;\n    RETURN FOUND;",
             "h.hold_id = p_hold AND h.live AND h.held_until > p_now;\n    RETURN FOUND;"),
        Edit(HOLDS, "AND h.client_id = p_client AND h.hold_id = p_hold AND h.live", "AND h.hold_id = p_hold AND h.live"),
    ),
    "double booking: one lane more where all are taken": Bug(
        {"double booking", "not linearizable (day)"},
        Edit(WRITES, "    END LOOP;\n    RETURN NULL;\n", "    END LOOP;\n    RETURN p_capacity + 1;\n"),
        Edit("operations/_booking.py", "if not checked.slot.available:", "if False:"),
    ),
    "double booking: a patient at two places": Bug(
        {"double booking", "not linearizable (diary)"},
        Edit(WRITES, "v_busy := patient_is_busy(p_practice, v_patient, v_starts, v_ends, NULL);", "v_busy := false;"),
        Edit("operations/_booking.py", "if checked.patient_busy:", "if False:"),
    ),
    "token executed twice: it is not consumed": Bug(
        {"executed twice"},
        Edit(WRITES, "UPDATE intent t SET state = 'consumed', result = done.result, challenge = NULL, keep_until = p_keep_until",
             "UPDATE intent t SET keep_until = p_keep_until"),
    ),
    "token executed twice: two confirmations at once": Bug(
        {"executed twice"},
        Edit(WRITES, "            WHEN i.state = 'consumed' THEN 'replayed'\n            WHEN i.state <> 'challenged' THEN 'incomplete'\n", ""),
    ),
    "result of another token": Bug(
        {"not linearizable (result)"},
        Edit("store/functions/intents.sql",
             "RETURN QUERY SELECT * FROM intent i WHERE i.practice_id = p_practice AND i.intent_id = p_intent;",
             """RETURN QUERY SELECT (jsonb_populate_record(i, CASE i.state WHEN 'consumed' THEN jsonb_build_object('result', (
                    SELECT r.result FROM intent r WHERE r.practice_id = p_practice AND r.state = 'consumed'
                    ORDER BY r.keep_until DESC LIMIT 1)) ELSE '{}' END)).*
                FROM intent i WHERE i.practice_id = p_practice AND i.intent_id = p_intent;"""),
    ),
    "token confirms another request: its fields are not bound": Bug(
        {"a token confirmed another request"},
        Edit(CONFIRMATION, "request = [self.operation.name, self.given.given_fields()]", "request = [self.operation.name]"),
    ),
    "results are forgotten: a second keeps them": Bug(
        {"a valid token was not recognized"},
        Edit("systems/port.py", "KEEP_RESULTS = timedelta(hours=24)", "KEEP_RESULTS = timedelta(seconds=1)"),
    ),
    "audit record missing: of cancellations": Bug(
        {"audit record missing"},
        Edit(WRITES, "IF done.outcome NOT IN ('stale', 'refused') THEN", "IF done.outcome NOT IN ('stale', 'refused') AND p_operation <> 'cancel_appointment' THEN"),
    ),
    "audit record missing: of a read": Bug(
        {"read without an audit record"},
        Edit("engine/execute.py", 'if outcome != "validation":',
             'if outcome != "validation" and call.operation.name != "get_patient":'),
    ),
    "audit chain broken: some records are never sealed": Bug(
        {"audit chain broken"},
        Edit("store/functions/audit.sql", "INSERT INTO audit_unsealed (practice_id, record_id) VALUES (p_practice, new_id);",
             "INSERT INTO audit_unsealed (practice_id, record_id) SELECT p_practice, new_id WHERE new_id % 10 > 0;"),
    ),
    "event missing: of confirmations": Bug(
        {"events differ from the audit trail"},
        Edit(WRITES, "IF done.event IS NOT NULL THEN", "IF done.event <> 'appointment.confirmed' THEN"),
    ),
    "webhook twice": Bug(
        {"webhook twice"},
        Edit(WEBHOOKS, "state = CASE WHEN p_failure IS NULL THEN 'delivered'",
             "state = CASE WHEN p_failure IS NULL AND d.attempts > 0 THEN 'delivered' WHEN p_failure IS NULL THEN 'pending'"),
    ),
    "webhook never: some events are not handed over": Bug(
        {"webhook never"},
        Edit(WEBHOOKS, "AND (w.events = '{}' OR o.type = ANY (w.events))", "AND o.event_id % 5 <> 0"),
    ),
    "webhooks out of order: the newest first": Bug(
        {"webhooks out of order"},
        Edit(WEBHOOKS, "                  ORDER BY b.event_id LIMIT 1\n", "                  ORDER BY b.event_id DESC LIMIT 1\n"),
    ),
    "cap exceeded: leases are not counted": Bug(
        {"cap exceeded"},
        Edit("store/functions/limits.sql", "u.minute_leased := u.minute_leased + v_granted;", "NULL;"),
    ),
    "write limit exceeded: executed writes are not counted": Bug(
        {"write limit exceeded"},
        Edit(WRITE_LIMITS, "UPDATE SET writes = c.writes + 1;", "UPDATE SET writes = c.writes;"),
    ),
    "write limit too strict: those of all kinds are counted together": Bug(
        {"refused below the write limit"},
        Edit(WRITE_LIMITS, "        WHERE c.practice_id = p_practice AND c.client_id = p_client AND c.operation = p_operation AND c.minute >= v_since;",
             "        WHERE c.practice_id = p_practice AND c.client_id = p_client AND c.minute >= v_since;"),
    ),
    "nobody hears of a reached write limit": Bug(
        {"no event of a reached limit"},
        Edit(WRITE_LIMITS, "          <= p_now - interval '1 hour';", "          > p_now;"),
    ),
    "a cancelled appointment is confirmed": Bug(
        {"not linearizable (appointment)"},
        Edit("operations/_status_changes.py", "if appointment.status not in states or", "if"),
        Edit(STATUSES, "    IF a.status NOT IN (SELECT jsonb_array_elements_text(c -> 'fromStates'))\n       OR (", "    IF ("),
    ),
    "half a move: the time changes and the provider stays": Bug(
        {"not linearizable (appointment)", "not linearizable (day)"},
        Edit(WRITES, "        provider_id = v_provider, location_id = (c ->> 'locationId')::integer,\n        visit_type_id",
             "        location_id = (c ->> 'locationId')::integer,\n        visit_type_id"),
    ),
    "a patient on file twice": Bug(
        {"not linearizable (person)"},
        Edit(PATIENTS, "    IF patient_is_on_file(p_practice, c) THEN", "    IF false THEN"),
    ),
}  # fmt: skip
