"""The sentences of the audit trail in the language of the request."""

from collections.abc import Mapping
from functools import cache

from frontdesk.audit.actions import actions
from frontdesk.audit.sentences import Action
from frontdesk.console.domain_texts import actor_name
from frontdesk.console.language import gettext as _
from frontdesk.desk.audit_lines import Line, Subject
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


@cache
def recorded() -> Mapping[str, Operation | Action]:
    """By name, what an audit record can be of."""
    operations = {name: each for name, each in every_operation().items() if each.audit is not None}
    return {**operations, **actions()}


def operation_title(operation: str) -> str:
    """The name of an operation for people, such as "Book an appointment"; that of an unknown one in words."""
    known = every_operation().get(operation) or actions().get(operation)
    if known:
        return _(known.title)
    words = operation.rpartition(".")[2].replace("_", " ")
    return words[:1].upper() + words[1:]


def audit_sentence(line: Line) -> str:
    """In the language of the request, with the placeholders `actor`, `title` (of the operation) and `names`."""
    known, outcome = recorded().get(line.record["operation"]), line.record["outcome"]
    if outcome == "confirmation_required":
        plain, naming = _CHALLENGED
    elif outcome not in _HAPPENED:
        plain, naming = _ATTEMPTED
    elif known is None or known.audit is None:
        plain, naming = _UNKNOWN
    else:
        plain, naming = known.audit.done, known.audit.with_names or known.audit.done
    return _(naming if line.about else plain)


def subject_name(subject: Subject | Actor) -> str:
    return actor_name(subject) if isinstance(subject, Actor) else subject.name


def subject_path(subject: Subject | Actor) -> str:
    """The path of their page, below /console."""
    if isinstance(subject, Actor):
        return f"/{'staff' if subject.kind == 'staff' else 'clients'}/{subject.id}"
    return f"/patients/{subject.id}" if subject.kind == "patient" else f"/calendar?{subject.kind}={subject.id}"
