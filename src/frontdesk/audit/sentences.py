"""What the audit trail says in whole sentences, which translators get as they are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditSentence:
    """Of an operation that was executed, with %(actor)s, and %(names)s of the people whom the record is about."""

    done: str  # if nobody's name is known
    with_names: str | None = None  # None: it is never about people


@dataclass(frozen=True, slots=True)
class Action:
    """What is recorded besides operations: what staff do at the console, and what commands do."""

    name: str
    title: str
    audit: AuditSentence
    is_view: bool = False  # a page that staff open: there are many, and people rarely search for them
