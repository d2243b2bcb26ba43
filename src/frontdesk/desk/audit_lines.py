"""The lines of the audit trail as data, in which views of pages that follow each other are folded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from frontdesk.audit.actions import actions
from frontdesk.desk.applied_overrides import AppliedOverride
from frontdesk.desk.names import Actor
from frontdesk.store.rows import Row


@dataclass(frozen=True, slots=True)
class Subject:
    """A patient, provider or location that a record is about."""

    kind: Literal["patient", "provider", "location"]
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Line:
    """A record of the trail as the page shows it. Views of pages that follow each other are folded into the newest."""

    record: Row
    actor: Actor
    about: Sequence[Subject | Actor]  # without the one who acts
    override: AppliedOverride | None = None
    folded: "Sequence[Line]" = ()


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
    action = actions().get(shown.record["operation"])
    return action is not None and action.is_view and shown.record["outcome"] == "executed"
