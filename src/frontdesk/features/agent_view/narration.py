"""The text next to each step: what the agent knows now, what it says to the caller, what it must never do."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from frontdesk.console.language import gettext as _
from frontdesk.console.language import months, weekdays
from frontdesk.domain.errors import CATALOGUE
from frontdesk.operations import Operation
from frontdesk.texts import N_


@dataclass(frozen=True, slots=True)
class Narration:
    knows: str
    says: str
    never: str


_IDS = N_("Say an id aloud, or use one that no tool has returned in this conversation.")
_CHOOSE = N_("Choose for the caller where several records fit: ask which one is meant.")
_DIRECTORY = N_("Nothing yet: this is looked up while the caller speaks.")

_AFTER: Mapping[str, Narration] = {
    "get_capabilities": Narration(
        N_("Which scopes its token holds, and so which tools will be refused."),
        _DIRECTORY,
        N_("Promise an action that its scopes do not allow."),
    ),
    "get_practice": Narration(
        N_("The practice's name, time zone and rules, and what its scheduling system supports."),
        N_("The practice's name, when it answers the call."),
        N_("Convert times into another zone."),
    ),
    "match_patient": Narration(
        N_("The patient's id, and whether the practice has seen this person before. Nothing else about them."),
        N_("That it has found them. No more than the caller has said themselves."),
        N_("Match by fewer than all four fields, or tell anything about a patient to a caller it has not identified."),
    ),
    "get_patient": Narration(
        N_("What is on file about the patient."),
        N_("Only what was asked for."),
        N_("Tell it to anyone but the patient."),
    ),
    "list_locations": Narration(N_("The places that fit the name, with their time zones."), _DIRECTORY, _CHOOSE),
    "list_providers": Narration(N_("The doctors that fit, and who takes new patients."), _DIRECTORY, _CHOOSE),
    "list_visit_types": Narration(
        N_("The kinds of visit, and which are for new and which for known patients."),
        N_("What kinds of visit there are, by their names."),
        N_("Offer a kind of visit that does not fit the patient."),
    ),
    "list_procedures": Narration(N_("What is done in such a visit, and how long it takes."), _DIRECTORY, _CHOOSE),
    "search_slots": Narration(
        N_("Open times of one doctor at one place, earliest first, in that place's own time."),
        N_("Two or three of them: weekday, date and local time."),
        N_("Hold a slot to be booked: until it is, another caller may take it."),
    ),
    "find_first_available": Narration(
        N_("The earliest open times over every doctor and place that fits."),
        N_("The first one or two, with doctor and place."),
        N_("Hold a slot to be booked: until it is, another caller may take it."),
    ),
    "get_slot": Narration(
        N_("That the slot is still open at this moment, and the names that belong to it."),
        N_("Doctor, place, weekday and local time, and asks whether that suits."),
        N_("Take silence for a yes."),
    ),
    "list_appointments": Narration(
        N_("The caller's appointments in short form."), N_("Which one is meant, by weekday and time."), _CHOOSE
    ),
    "get_appointment": Narration(
        N_("Everything about the appointment, as it stands now."),
        N_("Doctor, place, weekday and local time. Never the id."),
        N_("Read it to a caller it has not identified."),
    ),
}
_READ = Narration(N_("The record that it asked for, by the names people use."), N_("Only what was asked for."), _IDS)


def before(operation: Operation, *, confirming: bool) -> str:
    """The description of the tool that the agent has."""
    if confirming:
        return _(
            "The identical call once more, with the token of the challenge. It goes to the REST door first and then, "
            "with the same token, to the MCP door: what was done once is answered twice."
        )
    return operation.description


def after(operation: Operation, answer: object, *, resent: bool) -> Narration:
    """Narrates the step after its answer. `resent`: the same write was sent twice."""
    document = answer if isinstance(answer, dict) else {}
    code = document.get("code")
    if code == "confirmation_required":
        return Narration(
            _("That this would succeed now. Nothing has been changed; the token is good for exactly this request."),
            read_back(document.get("readBack", {})),
            _("Confirm on its own. The token proves that the request is unchanged, not that a person agreed."),
        )
    kind = CATALOGUE.get(str(code))
    if kind is not None:
        return Narration(
            _(kind.meaning),
            _("That it could not be done, and what comes next. No code, no id."),
            _("Again? %(advice)s", advice=_(kind.retry)),
        )
    if operation.kind == "write":
        return Narration(
            _("That it is done. The second message asked for the same once more and got the stored answer.")
            if resent
            else _("That it is done."),
            _("That it is done, once, and when."),
            _("Send it again without the token: that would be a new request."),
        )
    narration = _AFTER.get(operation.name, _READ)
    return Narration(_(narration.knows), _(narration.says), _(narration.never))


def read_back(record: object) -> str:
    """The read-back as a sentence, without ids."""
    if not isinstance(record, dict):
        return ""
    if "start" in record and "providerName" in record:
        about = _(
            "%(visit)s with %(provider)s at %(location)s",
            visit=record.get("visitTypeName"),
            provider=record["providerName"],
            location=record.get("locationName"),
        )
        if "lastName" in record:
            about = f"{record.get('firstName')} {record['lastName']}: {about}"
        sentence = f"{about}, {local_time_text(str(record['start']))}"
        if record.get("rescheduledFrom"):
            before = local_time_text(str(record["rescheduledFrom"]))
            sentence = _("%(new)s, instead of %(before)s", new=sentence, before=before)
        if record.get("reason"):
            return _("“%(sentence)s. Reason: %(reason)s. Is that right?”", sentence=sentence, reason=record["reason"])
    else:
        removed = _("removed")
        sentence = ", ".join(
            f"{name} {removed if value is None else value}" for name, value in record.items() if not name.endswith("Id")
        )
    return _("“%(sentence)s. Is that right?”", sentence=sentence)


def local_time_text(start: str) -> str:
    """Weekday, date and local time."""
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        return start
    return _(
        "%(weekday)s, %(month)s %(day)s at %(time)s",
        weekday=weekdays("wide")[moment.weekday()],
        month=months("wide")[moment.month - 1],
        day=moment.day,
        time=f"{moment:%H:%M}",
    )
