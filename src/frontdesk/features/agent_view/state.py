"""The state of a scenario between two steps, carried in the form.

It comes from the browser: a state that does not fit is dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from frontdesk.features.agent_view.narration import local_time_text
from frontdesk.operations import Operation

Value = int | str

_MAX_STATE_LENGTH = 20_000
_MAX_CHOICES = 12
_ITEMS_ARE = {
    "match_patient": "patientId",
    "list_locations": "locationId",
    "list_providers": "providerId",
    "list_visit_types": "visitTypeId",
    "list_procedures": "procedureId",
    "search_slots": "slotId",
    "find_first_available": "slotId",
    "list_appointments": "appointmentId",
}
_MEMBERS = ("patientId", "appointmentId", "providerId", "locationId", "visitTypeId", "procedureId")


@dataclass(frozen=True, slots=True)
class Choice:
    value: Value
    label: str


@dataclass(slots=True)
class ScenarioState:
    known: dict[str, list[Choice]] = field(default_factory=dict)  # by argument, likeliest first
    pending: tuple[str, dict[str, Value]] | None = None  # a challenged write: operation, and arguments with the token
    outcomes: dict[int, int] = field(default_factory=dict)  # the status of each step that was run

    def learn(self, operation: Operation, arguments: Mapping[str, Value], answer: object) -> None:
        """Stores the ids in an answer for later calls."""
        if not isinstance(answer, dict):
            return
        if answer.get("code") == "confirmation_required" and isinstance(answer.get("confirmationToken"), str):
            self.pending = (operation.name, {**arguments, "confirmationToken": answer["confirmationToken"]})
            return
        if "code" in answer:
            return
        if operation.kind == "write":
            self.pending = None
        for name, choices in self.known.items():  # a chosen value comes first from now on
            choices.sort(key=lambda choice: choice.value != arguments.get(name))
        listed, items = _ITEMS_ARE.get(operation.name), answer.get("items")
        if listed is not None and isinstance(items, list):
            self.known[listed] = [Choice(item["id"], _label(item)) for item in items[:_MAX_CHOICES]]
        for member in _MEMBERS:
            if isinstance(answer.get(member), int | str):
                self.known[member] = [Choice(answer[member], "")]

    def dump(self) -> str:
        return _STATE.dump_json(self).decode()


_STATE = TypeAdapter(ScenarioState)


def load_state(text: str) -> ScenarioState:
    try:
        return _STATE.validate_json(text) if len(text) <= _MAX_STATE_LENGTH else ScenarioState()
    except ValidationError:
        return ScenarioState()


def _label(item: Mapping[str, object]) -> str:
    if "start" in item:
        return local_time_text(str(item["start"]))
    return str(item.get("name") or item.get("patientKind") or item["id"])
