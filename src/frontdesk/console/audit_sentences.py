"""Audit records as people read them: a sentence in the language of the request, with the names of those in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from frontdesk.audit.actions import ACTIONS
from frontdesk.audit.sentences import Action
from frontdesk.console.language import gettext as _
from frontdesk.desk.names import Actor
from frontdesk.operations import Operation, every_operation
from frontdesk.texts import N_

_HAPPENED = ("executed", "unchanged", "replayed")
# Without and with names.
_CHALLENGED = (
    N_("%(actor)s was asked to confirm: %(title)s"),
    N_("%(actor)s was asked to confirm: %(title)s (%(names)s)"),
)
_ATTEMPTED = (N_("%(actor)s attempted: %(title)s"), N_("%(actor)s attempted: %(title)s (%(names)s)"))
_UNKNOWN = (N_("%(actor)s: %(title)s"), N_("%(actor)s: %(title)s (%(names)s)"))


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
    sentence: str  # with the placeholders `actor`, `names` and `title`
    title: str
    about: Sequence[Named]
    reason: str | None = None  # of an override, with its rules
    folded: "Sequence[Line]" = ()


@cache
def recorded() -> Mapping[str, Operation | Action]:
    """By name, what an audit record can be of."""
    operations = {name: each for name, each in every_operation().items() if each.audit is not None}
    return {**operations, **ACTIONS}


def operation_title(operation: str) -> str:
    """The name of an operation for people, such as "Book an appointment"; that of an unknown one in words."""
    known = every_operation().get(operation) or ACTIONS.get(operation)
    if known:
        return _(known.title)
    words = operation.rpartition(".")[2].replace("_", " ")
    return words[:1].upper() + words[1:]


def line(record: Mapping[str, Any], actor: Actor, about: Sequence[Named], reason: str | None = None) -> Line:
    known = recorded().get(record["operation"])
    if record["outcome"] == "confirmation_required":
        plain, naming = _CHALLENGED
    elif record["outcome"] not in _HAPPENED:
        plain, naming = _ATTEMPTED
    elif known is None or known.audit is None:
        plain, naming = _UNKNOWN
    else:
        plain, naming = known.audit.done, known.audit.with_names or known.audit.done
    others = [each for each in about if each.id != actor.id]
    return Line(record, actor, _(naming if others else plain), operation_title(record["operation"]), others, reason)


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
    action = ACTIONS.get(shown.record["operation"])
    return action is not None and action.is_view and shown.record["outcome"] == "executed"
