"""What an audit record says, as a sentence: the actor's name, what they did, and whom it was about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from frontdesk.console.language import gettext as _
from frontdesk.desk.names import Actor
from frontdesk.texts import N_


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
    frame: str  # of the sentence, with the placeholders `done` and `names`
    about: Sequence[Named]
    reason: str | None = None  # of an override, with its rules
    folded: "Sequence[Line]" = ()


# How a sentence names those whom it is about.
_FOR, _OF, _WITH = N_("%(done)s for %(names)s"), N_("%(done)s of %(names)s"), N_("%(done)s with %(names)s")
_ABOUT, _TO, _AS = N_("%(done)s about %(names)s"), N_("%(done)s to %(names)s"), N_("%(done)s as %(names)s")
_FOUND, _COLON, _NAMES = N_("%(done)s and found %(names)s"), N_("%(done)s: %(names)s"), N_("%(done)s %(names)s")


class Phrase(NamedTuple):
    past: str
    infinitive: str
    frame: str = _FOR
    is_view: bool = False  # a page that staff open: there are many, and people rarely search for them


PHRASES: Mapping[str, Phrase] = {
    "book_appointment": Phrase(N_("booked an appointment"), N_("book an appointment")),
    "cancel_appointment": Phrase(N_("cancelled an appointment"), N_("cancel an appointment"), _OF),
    "confirm_attendance": Phrase(N_("confirmed the attendance"), N_("confirm the attendance"), _OF),
    "reschedule_appointment": Phrase(N_("moved an appointment"), N_("move an appointment"), _OF),
    "create_patient": Phrase(N_("added the patient"), N_("add the patient"), _NAMES),
    "update_patient": Phrase(N_("changed the record"), N_("change the record"), _OF),
    "match_patient": Phrase(N_("searched for a patient"), N_("search for a patient"), _FOUND),
    "get_patient": Phrase(N_("read the record"), N_("see the record"), _OF),
    "get_appointment": Phrase(N_("read an appointment"), N_("see an appointment"), _OF),
    "list_appointments": Phrase(N_("listed appointments"), N_("list appointments"), _OF),
    "console.record_arrived": Phrase(N_("recorded the arrival"), N_("record the arrival"), _OF),
    "console.record_completed": Phrase(N_("recorded the completed visit"), N_("record the completed visit"), _OF),
    "console.record_no_show": Phrase(N_("recorded a no-show"), N_("record a no-show"), _OF),
    "console.call_in": Phrase(N_("called a patient in"), N_("call a patient in"), _COLON),
    "console.return_to_waiting": Phrase(N_("sent a patient back to wait"), N_("send a patient back to wait"), _COLON),
    "console.override_booking": Phrase(
        N_("booked an appointment against the rules"), N_("book an appointment against the rules")
    ),
    "console.override_move": Phrase(
        N_("moved an appointment against the rules"), N_("move an appointment against the rules"), _OF
    ),
    "console.restore_appointment": Phrase(
        N_("took back a state of an appointment"), N_("take back a state of an appointment"), _OF
    ),
    "console.new_patient_link": Phrase(N_("made a patient's link"), N_("make a patient's link")),
    "console.end_patient_link": Phrase(N_("ended a patient's link"), N_("end a patient's link"), _OF),
    "patient_link.read": Phrase(N_("opened an appointment"), N_("open an appointment"), _OF),
    "console.arrivals": Phrase(
        N_("looked at the arrivals board"), N_("look at the arrivals board"), _WITH, is_view=True
    ),
    "console.add_note": Phrase(N_("added a note"), N_("add a note"), _ABOUT),
    "console.remove_note": Phrase(N_("removed a note"), N_("remove a note"), _ABOUT),
    "console.calendar": Phrase(N_("looked at the calendar"), N_("look at the calendar"), _WITH, is_view=True),
    "console.day_sheet": Phrase(N_("looked at the day sheet"), N_("look at the day sheet"), _WITH, is_view=True),
    "console.patient": Phrase(N_("looked at the record"), N_("look at the record"), _OF, is_view=True),
    "console.appointment": Phrase(N_("looked at an appointment"), N_("look at an appointment"), _OF, is_view=True),
    "console.search_patients": Phrase(N_("searched patients"), N_("search patients"), _FOUND, is_view=True),
    "console.compare_patients": Phrase(N_("compared patients"), N_("compare patients"), _WITH),
    "console.blocked_appointments": Phrase(
        N_("looked at appointments in blocked time"), N_("look at appointments in blocked time"), _OF, is_view=True
    ),
    "console.audit": Phrase(N_("looked at the audit trail"), N_("look at the audit trail"), _WITH, is_view=True),
    "console.agent_view": Phrase(N_("tried out the agent's view"), N_("try out the agent's view"), _WITH),
    "console.block_time": Phrase(N_("blocked time"), N_("block time"), _OF),
    "console.unblock_time": Phrase(N_("opened blocked time"), N_("open blocked time"), _OF),
    "console.absence": Phrase(
        N_("looked at an absence of a provider"), N_("look at an absence of a provider"), _WITH, is_view=True
    ),
    "console.call_list": Phrase(N_("looked at a call list"), N_("look at a call list"), _WITH, is_view=True),
    "console.start_absence": Phrase(N_("recorded an absence"), N_("record an absence"), _OF),
    "console.reassign_appointments": Phrase(
        N_("reassigned the appointments of a provider who is away"),
        N_("reassign the appointments of a provider who is away"),
        _COLON,
    ),
    "console.undo_reassignment": Phrase(
        N_("took back new times of a provider who is away"), N_("take back new times of a provider who is away"), _COLON
    ),
    "console.move_back": Phrase(N_("moved an appointment back"), N_("move an appointment back"), _OF),
    "console.record_call": Phrase(N_("recorded a call"), N_("record a call"), _TO),
    "console.withdraw_call": Phrase(N_("took back the record of a call"), N_("take back the record of a call"), _TO),
    "console.sign_in": Phrase(N_("signed in"), N_("sign in"), _AS),
    "console.sign_out": Phrase(N_("signed out"), N_("sign out"), _AS),
    "console.sign_out_everywhere": Phrase(N_("signed out everywhere"), N_("sign out everywhere"), _AS),
    "console.lock": Phrase(N_("locked the desk"), N_("lock the desk"), _AS),
    "console.unlock": Phrase(N_("unlocked the desk"), N_("unlock the desk"), _AS),
    "console.set_pin": Phrase(N_("set a PIN"), N_("choose a PIN")),
    "console.remove_pin": Phrase(N_("removed a PIN"), N_("remove a PIN"), _OF),
    "console.link_identity": Phrase(
        N_("linked an account of the identity provider"), N_("link an account of the identity provider")
    ),
    "console.new_link": Phrase(N_("made a sign-in link"), N_("make a sign-in link")),
    "console.mail_link": Phrase(N_("mailed a sign-in link"), N_("mail a sign-in link"), _TO),
    "console.reset_sign_in": Phrase(N_("reset the sign-in"), N_("start the sign-in anew"), _OF),
    "console.end_session": Phrase(N_("ended a session"), N_("end a session"), _OF),
    "console.add_passkey": Phrase(N_("added a passkey"), N_("add a passkey")),
    "console.remove_passkey": Phrase(N_("removed a passkey"), N_("remove a passkey"), _OF),
    "console.add_staff": Phrase(N_("added the staff member"), N_("add the staff member"), _NAMES),
    "console.remove_staff": Phrase(N_("removed the staff member"), N_("remove the staff member"), _NAMES),
    "console.enable_staff": Phrase(N_("enabled the staff member"), N_("enable the staff member"), _NAMES),
    "console.disable_staff": Phrase(N_("disabled the staff member"), N_("disable the staff member"), _NAMES),
    "console.set_staff_role": Phrase(N_("changed the role"), N_("change the role"), _OF),
    "console.add_client": Phrase(N_("added the client"), N_("add the client"), _NAMES),
    "console.change_client": Phrase(N_("changed the client"), N_("change the client"), _NAMES),
    "console.enable_client": Phrase(N_("enabled the client"), N_("enable the client"), _NAMES),
    "console.disable_client": Phrase(N_("disabled the client"), N_("disable the client"), _NAMES),
    "console.rotate_client_secret": Phrase(N_("made a new secret"), N_("make a new secret")),
    "console.revoke_client_tokens": Phrase(N_("revoked the access tokens"), N_("revoke the access tokens"), _OF),
    "console.forget_client_misses": Phrase(N_("forgot the failed matches"), N_("forget the failed matches"), _OF),
    "console.connect_assistant": Phrase(N_("connected the assistant"), N_("connect the assistant"), _NAMES),
    "console.disconnect_assistant": Phrase(N_("disconnected the assistant"), N_("disconnect the assistant"), _NAMES),
    "console.import_practice_file": Phrase(N_("imported the practice file"), N_("import the practice file")),
    "console.change_booking_rules": Phrase(N_("changed the booking rules"), N_("change the booking rules")),
    "console.change_closures": Phrase(N_("changed the closures of locations"), N_("change the closures of locations")),
    "console.add_location": Phrase(N_("added a location"), N_("add a location")),
    "console.change_location": Phrase(N_("changed a location"), N_("change a location")),
    "console.remove_location": Phrase(N_("removed a location"), N_("remove a location")),
    "console.add_visit_type": Phrase(N_("added a visit type"), N_("add a visit type")),
    "console.change_visit_type": Phrase(N_("changed a visit type"), N_("change a visit type")),
    "console.remove_visit_type": Phrase(N_("removed a visit type"), N_("remove a visit type")),
    "console.add_procedure": Phrase(N_("added a procedure"), N_("add a procedure")),
    "console.change_procedure": Phrase(N_("changed a procedure"), N_("change a procedure")),
    "console.remove_procedure": Phrase(N_("removed a procedure"), N_("remove a procedure")),
    "console.add_provider": Phrase(N_("added a provider"), N_("add a provider")),
    "console.change_provider": Phrase(N_("changed a provider"), N_("change a provider")),
    "console.remove_provider": Phrase(N_("removed a provider"), N_("remove a provider")),
    "console.export_practice_file": Phrase(N_("exported the practice file"), N_("export the practice file")),
    "console.export_audit": Phrase(N_("exported the audit trail"), N_("export the audit trail")),
    "console.verify_audit": Phrase(N_("verified the audit trail"), N_("verify the audit trail")),
    "console.check_system": Phrase(N_("checked the scheduling system"), N_("check the scheduling system")),
    "console.pause_webhook": Phrase(N_("paused a webhook"), N_("pause a webhook")),
    "console.resume_webhook": Phrase(N_("resumed a webhook"), N_("resume a webhook")),
    "console.replay_webhook": Phrase(
        N_("sent the events of a webhook again"), N_("send the events of a webhook again")
    ),
    "console.add_webhook": Phrase(N_("added a webhook"), N_("add a webhook")),
    "console.remove_webhook": Phrase(N_("removed a webhook"), N_("remove a webhook")),
    "console.rotate_webhook_secret": Phrase(N_("made a new secret of a webhook"), N_("make a new secret of a webhook")),
    "console.test_webhook": Phrase(N_("sent a test message to a webhook"), N_("send a test message to a webhook")),
    "command.add_webhook": Phrase(N_("added a webhook"), N_("add a webhook")),
    "command.remove_webhook": Phrase(N_("removed a webhook"), N_("remove a webhook")),
    "command.rotate_webhook_secret": Phrase(N_("made a new secret of a webhook"), N_("make a new secret of a webhook")),
    "console.add_feed": Phrase(N_("added a calendar feed"), N_("add a calendar feed")),
    "console.revoke_feed": Phrase(N_("revoked a calendar feed"), N_("revoke a calendar feed")),
    "command.add_feed": Phrase(N_("added a calendar feed"), N_("add a calendar feed")),
    "command.add_feed_with_names": Phrase(N_("added a calendar feed with names"), N_("add a calendar feed with names")),
    "command.revoke_feed": Phrase(N_("revoked a calendar feed"), N_("revoke a calendar feed")),
    "command.export_patients": Phrase(
        N_("exported the practice file with patients"), N_("export the practice file with patients"), _COLON
    ),
    "command.import_patients": Phrase(N_("imported patients"), N_("import patients"), _COLON),
    "command.read_events": Phrase(N_("read events"), N_("see events"), _ABOUT),
    "command.remove_client": Phrase(N_("removed the client"), N_("remove the client"), _NAMES),
    "command.remove_practice": Phrase(N_("removed the practice"), N_("remove the practice")),
    "command.suspend_practice": Phrase(N_("suspended the practice"), N_("suspend the practice")),
    "command.resume_practice": Phrase(N_("resumed the practice"), N_("resume the practice")),
    "command.rotate_keys": Phrase(N_("rotated the keys"), N_("rotate the keys")),
    "command.reencrypt_keys": Phrase(N_("encrypted the keys again"), N_("encrypt the keys again")),
    # The name in records from before the command was renamed.
    "command.reseal_keys": Phrase(N_("encrypted the keys again"), N_("encrypt the keys again")),
    "command.backup": Phrase(N_("made a backup"), N_("make a backup")),
    "command.restore": Phrase(N_("restored a backup"), N_("restore a backup")),
}
VIEWS = frozenset(name for name, phrase in PHRASES.items() if phrase.is_view)
_HAPPENED = ("executed", "unchanged", "replayed")


def operation_label(operation: str) -> str:
    """The name of an operation in a list of choices, such as "Book an appointment"."""
    text = _phrase(operation).infinitive
    return text[:1].upper() + text[1:]


def line(record: Mapping[str, Any], actor: Actor, about: Sequence[Named], reason: str | None = None) -> Line:
    phrase = _phrase(record["operation"])
    if record["outcome"] in _HAPPENED:
        done = phrase.past
    elif record["outcome"] == "confirmation_required":
        done = _("asked to %(act)s", act=phrase.infinitive)
    else:
        done = _("tried to %(act)s", act=phrase.infinitive)
    others = [each for each in about if each.id != actor.id]
    return Line(record, actor, done, phrase.frame, others, reason)


def fold_views(lines: Sequence[Line]) -> list[Line]:
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


def _phrase(operation: str) -> Phrase:
    """In the language of the request; an operation without a phrase is shown by its name."""
    plain = operation.rpartition(".")[2].replace("_", " ")
    phrase = PHRASES.get(operation) or Phrase(plain, plain)
    return phrase._replace(past=_(phrase.past), infinitive=_(phrase.infinitive), frame=_(phrase.frame))
