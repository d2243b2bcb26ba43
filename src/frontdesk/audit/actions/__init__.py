"""The actions of staff and of commands, by the name that audit records carry."""

from collections.abc import Mapping

from frontdesk.audit.actions import (
    absences,
    agent_view,
    clients,
    desk,
    feeds,
    notes,
    patient_links,
    practice,
    service,
    staff,
    webhooks,
)
from frontdesk.audit.sentences import Action

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        *desk.ACTIONS,
        *notes.ACTIONS,
        *patient_links.ACTIONS,
        *agent_view.ACTIONS,
        *absences.ACTIONS,
        *feeds.ACTIONS,
        *staff.ACTIONS,
        *clients.ACTIONS,
        *webhooks.ACTIONS,
        *practice.ACTIONS,
        *service.ACTIONS,
    )
}
