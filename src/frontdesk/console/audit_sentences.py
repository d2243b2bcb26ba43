"""What an audit record says, as a sentence: the actor's name, what they did, and whom it was about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from frontdesk.console.names import Actor


class Phrase(NamedTuple):
    past: str
    infinitive: str
    object: str
    joint: str = "for"  # leads to the names


@dataclass(frozen=True, slots=True)
class Named:
    """A person, client or location that a record is about."""

    id: str
    name: str
    path: str  # of their page, below /console


@dataclass(frozen=True, slots=True)
class Line:
    """A record of the trail as the page shows it. Views of pages that follow each other are folded into the newest."""

    record: Mapping[str, Any]
    actor: Actor
    done: str
    joint: str
    about: Sequence[Named]
    reason: str | None = None  # of an override, with its rules
    folded: "Sequence[Line]" = ()


_READ, _SHOWN = ("read", "read"), ("looked at", "look at")
PHRASES: Mapping[str, Phrase] = {
    "book_appointment": Phrase("booked", "book", "an appointment"),
    "cancel_appointment": Phrase("cancelled", "cancel", "an appointment", "of"),
    "confirm_attendance": Phrase("confirmed", "confirm", "the attendance", "of"),
    "reschedule_appointment": Phrase("moved", "move", "an appointment", "of"),
    "create_patient": Phrase("added", "add", "the patient", ""),
    "update_patient": Phrase("changed", "change", "the record", "of"),
    "match_patient": Phrase("searched for", "search for", "a patient", "and found"),
    "get_patient": Phrase(*_READ, "the record", "of"),
    "get_appointment": Phrase(*_READ, "an appointment", "of"),
    "list_appointments": Phrase("listed", "list", "appointments", "of"),
    "console.record_arrived": Phrase("recorded", "record", "the arrival", "of"),
    "console.record_completed": Phrase("recorded", "record", "the completed visit", "of"),
    "console.record_no_show": Phrase("recorded", "record", "a no-show", "of"),
    "console.call_in": Phrase("called", "call", "a patient in:", ""),
    "console.return_to_waiting": Phrase("sent", "send", "a patient back to wait:", ""),
    "console.override_booking": Phrase("booked", "book", "an appointment against the rules"),
    "console.override_move": Phrase("moved", "move", "an appointment against the rules", "of"),
    "console.restore_appointment": Phrase("took back", "take back", "a state of an appointment", "of"),
    "console.arrivals": Phrase(*_SHOWN, "the arrivals board", "with"),
    "console.add_note": Phrase("added", "add", "a note", "about"),
    "console.remove_note": Phrase("removed", "remove", "a note", "about"),
    "console.calendar": Phrase(*_SHOWN, "the calendar", "with"),
    "console.day_sheet": Phrase(*_SHOWN, "the day sheet", "with"),
    "console.patient": Phrase(*_SHOWN, "the record", "of"),
    "console.appointment": Phrase(*_SHOWN, "an appointment", "of"),
    "console.search_patients": Phrase("searched", "search", "patients", "and found"),
    "console.compare_patients": Phrase("compared", "compare", "patients", "with"),
    "console.blocked_appointments": Phrase(*_SHOWN, "appointments in blocked time", "of"),
    "console.audit": Phrase(*_SHOWN, "the audit trail", "with"),
    "console.agent_view": Phrase("tried out", "try out", "the agent's view", "with"),
    "console.block_time": Phrase("blocked", "block", "time", "of"),
    "console.unblock_time": Phrase("opened", "open", "blocked time", "of"),
    "console.absence": Phrase(*_SHOWN, "an absence of a provider", "with"),
    "console.call_list": Phrase(*_SHOWN, "a call list", "with"),
    "console.start_absence": Phrase("recorded", "record", "an absence", "of"),
    "console.reassign_appointments": Phrase(
        "reassigned", "reassign", "the appointments of a provider who is away:", ""
    ),
    "console.undo_reassignment": Phrase("took back", "take back", "new times of a provider who is away:", ""),
    "console.move_back": Phrase("moved", "move", "an appointment back", "of"),
    "console.record_call": Phrase("recorded", "record", "a call", "to"),
    "console.withdraw_call": Phrase("took back", "take back", "the record of a call", "to"),
    "console.sign_in": Phrase("signed in", "sign in", "", "as"),
    "console.sign_out": Phrase("signed out", "sign out", "", "as"),
    "console.sign_out_everywhere": Phrase("signed out", "sign out", "everywhere", "as"),
    "console.lock": Phrase("locked", "lock", "the desk", "as"),
    "console.unlock": Phrase("unlocked", "unlock", "the desk", "as"),
    "console.set_pin": Phrase("set", "set", "a PIN"),
    "console.remove_pin": Phrase("removed", "remove", "a PIN", "of"),
    "console.link_identity": Phrase("linked", "link", "an account of the identity provider"),
    "console.new_link": Phrase("made", "make", "a sign-in link"),
    "console.mail_link": Phrase("mailed", "mail", "a sign-in link", "to"),
    "console.reset_sign_in": Phrase("reset", "reset", "the sign-in", "of"),
    "console.end_session": Phrase("ended", "end", "a session", "of"),
    "console.add_passkey": Phrase("added", "add", "a passkey"),
    "console.remove_passkey": Phrase("removed", "remove", "a passkey", "of"),
    "console.add_staff": Phrase("added", "add", "the staff member", ""),
    "console.remove_staff": Phrase("removed", "remove", "the staff member", ""),
    "console.enable_staff": Phrase("enabled", "enable", "the staff member", ""),
    "console.disable_staff": Phrase("disabled", "disable", "the staff member", ""),
    "console.set_staff_role": Phrase("changed", "change", "the role", "of"),
    "console.add_client": Phrase("added", "add", "the client", ""),
    "console.change_client": Phrase("changed", "change", "the client", ""),
    "console.enable_client": Phrase("enabled", "enable", "the client", ""),
    "console.disable_client": Phrase("disabled", "disable", "the client", ""),
    "console.rotate_client_secret": Phrase("made", "make", "a new secret"),
    "console.revoke_client_tokens": Phrase("revoked", "revoke", "the access tokens", "of"),
    "console.forget_client_misses": Phrase("forgot", "forget", "the failed matches", "of"),
    "console.connect_assistant": Phrase("connected", "connect", "the assistant", ""),
    "console.disconnect_assistant": Phrase("disconnected", "disconnect", "the assistant", ""),
    "console.import_practice_file": Phrase("imported", "import", "the practice file"),
    "console.change_booking_rules": Phrase("changed", "change", "the booking rules"),
    "console.change_closures": Phrase("changed", "change", "the closures of locations"),
    "console.add_location": Phrase("added", "add", "a location"),
    "console.change_location": Phrase("changed", "change", "a location"),
    "console.remove_location": Phrase("removed", "remove", "a location"),
    "console.add_visit_type": Phrase("added", "add", "a visit type"),
    "console.change_visit_type": Phrase("changed", "change", "a visit type"),
    "console.remove_visit_type": Phrase("removed", "remove", "a visit type"),
    "console.add_procedure": Phrase("added", "add", "a procedure"),
    "console.change_procedure": Phrase("changed", "change", "a procedure"),
    "console.remove_procedure": Phrase("removed", "remove", "a procedure"),
    "console.add_provider": Phrase("added", "add", "a provider"),
    "console.change_provider": Phrase("changed", "change", "a provider"),
    "console.remove_provider": Phrase("removed", "remove", "a provider"),
    "console.export_practice_file": Phrase("exported", "export", "the practice file"),
    "console.export_audit": Phrase("exported", "export", "the audit trail"),
    "console.verify_audit": Phrase("verified", "verify", "the audit trail"),
    "console.check_system": Phrase("checked", "check", "the scheduling system"),
    "console.pause_webhook": Phrase("paused", "pause", "a webhook"),
    "console.resume_webhook": Phrase("resumed", "resume", "a webhook"),
    "console.replay_webhook": Phrase("sent", "send", "the events of a webhook again"),
    "command.add_webhook": Phrase("added", "add", "a webhook"),
    "command.remove_webhook": Phrase("removed", "remove", "a webhook"),
    "command.rotate_webhook_secret": Phrase("made", "make", "a new secret of a webhook"),
    "console.add_feed": Phrase("added", "add", "a calendar feed"),
    "console.revoke_feed": Phrase("revoked", "revoke", "a calendar feed"),
    "command.add_feed": Phrase("added", "add", "a calendar feed"),
    "command.add_feed_with_names": Phrase("added", "add", "a calendar feed with names"),
    "command.revoke_feed": Phrase("revoked", "revoke", "a calendar feed"),
    "command.export_patients": Phrase("exported", "export", "the practice file with patients:", ""),
    "command.import_patients": Phrase("imported", "import", "patients:", ""),
    "command.read_events": Phrase(*_READ, "events", "about"),
    "command.remove_client": Phrase("removed", "remove", "the client", ""),
    "command.remove_practice": Phrase("removed", "remove", "the practice"),
    "command.suspend_practice": Phrase("suspended", "suspend", "the practice"),
    "command.resume_practice": Phrase("resumed", "resume", "the practice"),
    "command.rotate_keys": Phrase("rotated", "rotate", "the keys"),
    "command.reseal_keys": Phrase("encrypted", "encrypt", "the keys again"),
    "command.backup": Phrase("made", "make", "a backup"),
    "command.restore": Phrase("restored", "restore", "a backup"),
}
# Records of pages that staff open: many, and rarely what somebody searches for.
VIEWS = frozenset(name for name, phrase in PHRASES.items() if phrase[:2] == _SHOWN) | {"console.search_patients"}
_HAPPENED = ("executed", "unchanged", "replayed")


def operation_label(operation: str) -> str:
    """For a list of choices, such as "Book an appointment"."""
    phrase = PHRASES.get(operation)
    text = _plain(operation) if phrase is None else f"{phrase.infinitive} {phrase.object}"
    return text[:1].upper() + text[1:].strip(" :")


def line(record: Mapping[str, Any], actor: Actor, about: Sequence[Named], reason: str | None = None) -> Line:
    phrase = PHRASES.get(record["operation"]) or Phrase(_plain(record["operation"]), _plain(record["operation"]), "")
    begins = {True: phrase.past, False: f"tried to {phrase.infinitive}"}[record["outcome"] in _HAPPENED]
    if record["outcome"] == "confirmation_required":
        begins = f"asked to {phrase.infinitive}"
    others = [each for each in about if each.id != actor.id]
    return Line(record, actor, f"{begins} {phrase.object}".strip(), phrase.joint, others, reason)


def folded(lines: Sequence[Line]) -> list[Line]:
    """Views of pages by the same actor that follow each other become one line."""
    found: list[list[Line]] = []
    for each in lines:
        before = found[-1][0] if found else None
        if before is not None and _is_view(before) and _is_view(each) and before.actor.id == each.actor.id:
            found[-1].append(each)
        else:
            found.append([each])
    return [replace(first, folded=rest) for first, *rest in found]


def _is_view(shown: Line) -> bool:
    return shown.record["operation"] in VIEWS and shown.record["outcome"] == "executed"


def _plain(operation: str) -> str:
    return operation.rpartition(".")[2].replace("_", " ")
