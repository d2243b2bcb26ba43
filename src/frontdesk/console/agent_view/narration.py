"""The text beside each step: what the agent knows now, what it says to the caller, what it must never do."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.domain.errors import CATALOGUE
from frontdesk.operations import Operation


@dataclass(frozen=True, slots=True)
class Narration:
    knows: str
    says: str
    never: str


_IDS = "Say an id aloud, or use one that no tool has returned in this conversation."
_CHOOSE = "Choose for the caller where several records fit: ask which one is meant."
_DIRECTORY = "Nothing yet: this is looked up while the caller speaks."

_AFTER: Mapping[str, Narration] = {
    "get_capabilities": Narration(
        "Which scopes its token holds, and so which tools will be refused.",
        _DIRECTORY,
        "Promise an action that its scopes do not allow.",
    ),
    "get_practice": Narration(
        "The practice's name, time zone and rules, and what its scheduling system supports.",
        "The practice's name, when it answers the call.",
        "Convert times into another zone.",
    ),
    "match_patient": Narration(
        "The patient's id, and whether the practice has seen this person before. Nothing else about them.",
        "That it has found them. No more than the caller has said themselves.",
        "Match by fewer than all four fields, or tell anything about a patient to a caller it has not identified.",
    ),
    "get_patient": Narration(
        "What is on file about the patient.", "Only what was asked for.", "Tell it to anyone but the patient."
    ),
    "list_locations": Narration("The places that fit the name, with their time zones.", _DIRECTORY, _CHOOSE),
    "list_providers": Narration("The doctors that fit, and who takes new patients.", _DIRECTORY, _CHOOSE),
    "list_visit_types": Narration(
        "The kinds of visit, and which are for new and which for known patients.",
        "What kinds of visit there are, by their names.",
        "Offer a kind of visit that does not fit the patient.",
    ),
    "list_procedures": Narration("What is done in such a visit, and how long it takes.", _DIRECTORY, _CHOOSE),
    "search_slots": Narration(
        "Open times of one doctor at one place, earliest first, in that place's own time.",
        "Two or three of them: weekday, date and local time.",
        "Hold a slot to be booked: until it is, another caller may take it.",
    ),
    "find_first_available": Narration(
        "The earliest open times over every doctor and place that fits.",
        "The first one or two, with doctor and place.",
        "Hold a slot to be booked: until it is, another caller may take it.",
    ),
    "get_slot": Narration(
        "That the slot is still open at this moment, and the names that belong to it.",
        "Doctor, place, weekday and local time, and asks whether that suits.",
        "Take silence for a yes.",
    ),
    "list_appointments": Narration(
        "The caller's appointments in short form.", "Which one is meant, by weekday and time.", _CHOOSE
    ),
    "get_appointment": Narration(
        "Everything about the appointment, as it stands now.",
        "Doctor, place, weekday and local time. Never the id.",
        "Read it to a caller it has not identified.",
    ),
}
_READ = Narration("The record that it asked for, by the names people use.", "Only what was asked for.", _IDS)


def before(operation: Operation, *, confirming: bool) -> str:
    """The description of the tool that the agent has."""
    if confirming:
        return (
            "The identical call once more, with the token of the challenge. It goes to the REST door first and then, "
            "with the same token, to the MCP door: what was done once is answered twice."
        )
    return operation.description


def after(operation: Operation, answer: Any, *, resent: bool) -> Narration:
    """`resent`: the same write was sent twice."""
    document = answer if isinstance(answer, dict) else {}
    code = document.get("code")
    if code == "confirmation_required":
        return Narration(
            "That this would succeed now. Nothing has been changed; the token is good for exactly this request.",
            read_back(document.get("readBack", {})),
            "Confirm on its own. The token proves that the request is unchanged, not that a person agreed.",
        )
    kind = CATALOGUE.get(str(code))
    if kind is not None:
        return Narration(
            kind.meaning, "That it could not be done, and what comes next. No code, no id.", f"Again? {kind.retry}"
        )
    if operation.kind == "write":
        return Narration(
            "That it is done."
            + (" The second message asked for the same once more and got the stored answer." if resent else ""),
            "That it is done, once, and when.",
            "Send it again without the token: that would be a new request.",
        )
    return _AFTER.get(operation.name, _READ)


def read_back(told: Any) -> str:
    """The read-back as a sentence, without ids."""
    if not isinstance(told, dict):
        return ""
    if "start" in told and "providerName" in told:
        about = f"{told.get('visitTypeName')} with {told['providerName']} at {told.get('locationName')}"
        if "lastName" in told:
            about = f"{told.get('firstName')} {told['lastName']}: {about}"
        said = f"“{about}, {spoken(str(told['start']))}"
        if told.get("rescheduledFrom"):
            said += f", instead of {spoken(str(told['rescheduledFrom']))}"
        said += "."
        if told.get("reason"):
            said += f" Reason: {told['reason']}."
        return f"{said} Is that right?”"
    said = ", ".join(
        f"{name} {'removed' if value is None else value}" for name, value in told.items() if not name.endswith("Id")
    )
    return f"“{said}. Is that right?”"


def spoken(start: str) -> str:
    """Weekday, date and local time."""
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        return start
    return f"{moment:%A, %B} {moment.day} at {moment:%H:%M}"
