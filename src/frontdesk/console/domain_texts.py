"""Texts of other parts of the service in the language of the request: English if the catalogue does not have them."""

from collections.abc import Collection

from frontdesk.console.language import gettext
from frontdesk.desk.names import Actor
from frontdesk.domain.booking_rules import RULES
from frontdesk.texts import Text


def translated(text: str | Text, **values: object) -> str:
    return gettext(text) if isinstance(text, str) else gettext(text.template, **text.values, **values)


def actor_name(actor: Actor) -> str:
    """The name of an actor: a person, a client, or a part of the service."""
    if actor.connected_by is not None:
        return gettext("%(assistant)s for %(staff)s", assistant=actor.name, staff=actor.connected_by)
    return gettext(actor.name) if actor.kind == "other" else actor.name


def rule_names(rules: Collection[str]) -> str:
    """The booking rules that an override set aside."""
    return ", ".join(gettext(text) for rule, text in RULES.items() if rule in rules)
