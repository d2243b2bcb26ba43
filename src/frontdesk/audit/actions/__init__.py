"""The actions of staff and of commands, by the name that audit records carry."""

from collections.abc import Mapping
from functools import cache

from frontdesk.audit.actions import (
    clients,
    desk,
    practice,
    service,
    staff,
    webhooks,
)
from frontdesk.audit.sentences import Action
from frontdesk.feature import features

_CORE = (
    *desk.ACTIONS,
    *staff.ACTIONS,
    *clients.ACTIONS,
    *webhooks.ACTIONS,
    *practice.ACTIONS,
    *service.ACTIONS,
)


@cache
def actions() -> Mapping[str, Action]:
    """By name, those of the core and of the features."""
    of_features = (action for feature in features() for action in feature.parts.actions)
    return {action.name: action for action in (*_CORE, *of_features)}
