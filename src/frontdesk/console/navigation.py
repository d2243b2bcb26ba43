"""The navigation menu, and the notices shown after an action."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from frontdesk.desk.context import Role
from frontdesk.feature import Feature, features
from frontdesk.texts import N_

HOME = "/calendar"


@dataclass(frozen=True, slots=True)
class NavItem:
    path: str
    label: str
    icon: str  # a name in icons.html
    role: Role
    covers: tuple[str, ...] = ()  # other sections that mark this entry as current


_NAVIGATION: tuple[tuple[str, tuple[NavItem, ...]], ...] = (
    (
        N_("Front desk"),
        (
            NavItem(
                "/calendar",
                N_("Calendar"),
                "calendar",
                "staff",
                ("/appointments", "/book", "/override", "/blocks", "/day-sheet"),
            ),
            NavItem("/arrivals", N_("Arrivals"), "clock", "staff", ("/walk-in",)),
            NavItem("/patients", N_("Patients"), "people", "staff"),
            NavItem("/reports", N_("Reports"), "chart", "admin"),
        ),
    ),
    (
        N_("Agents"),
        (
            NavItem("/assistants", N_("Connected assistants"), "plug", "staff"),
            NavItem("/clients", N_("Clients"), "key", "admin"),
            NavItem("/usage", N_("Usage"), "chart", "admin"),
            NavItem("/confirmations", N_("Confirmations"), "check", "staff"),
        ),
    ),
    (
        N_("Practice"),
        (
            NavItem("/setup", N_("Set-up"), "list", "admin"),
            NavItem("/practice/rules", N_("Practice"), "building", "admin", ("/practice",)),
            NavItem("/staff", N_("Staff"), "badge", "admin"),
            NavItem("/audit", N_("Audit"), "shield", "admin"),
        ),
    ),
)

_PRACTICE_TABS = (
    ("/practice/rules", N_("Booking rules")),
    ("/practice/locations", N_("Locations")),
    ("/practice/providers", N_("Providers")),
    ("/practice/visit-types", N_("Visit types")),
    ("/practice/closures", N_("Closures")),
    ("/practice", N_("Practice file")),
    ("/practice/system", N_("Scheduling system")),
    ("/practice/webhooks", N_("Webhooks")),
)

# URLs carry only the key, so that a link cannot make a page show an arbitrary text.
_NOTICES = {
    "staff_changed": N_("The staff member has been changed."),
    "passkey_added": N_("The passkey has been added."),
    "passkey_removed": N_("The passkey has been removed."),
    "pin_set": N_("The PIN has been set."),
    "pin_removed": N_("The PIN has been removed."),
    "language_chosen": N_("The language has been changed."),
    "session_ended": N_("The session has been ended."),
    "staff_removed": N_("The staff member has been removed."),
    "appointment_booked": N_("The appointment is booked."),
    "override_booked": N_("The appointment is booked against the rules."),
    "override_moved": N_("The appointment has been moved against the rules."),
    "walk_in_arrived": N_("The walk-in is booked and has arrived."),
    "appointment_moved": N_("The appointment has been moved."),
    "appointment_cancelled": N_("The appointment is cancelled and its time is free again."),
    "attendance_confirmed": N_("Attendance is confirmed."),
    "arrival_recorded": N_("The arrival has been recorded."),
    "visit_completed": N_("The visit has been recorded as completed."),
    "no_show_recorded": N_("The no-show has been recorded."),
    "called_in": N_("The patient is with the provider."),
    "waiting_again": N_("Undone. The patient is waiting again."),
    "undo_needs_reason": N_("This was recorded a while ago. Give a reason for undoing it."),
    "appointment_restored": N_("Undone."),
    "patient_created": N_("The patient has been added."),
    "patient_changed": N_("The patient's record has been changed."),
    "nothing_changed": N_("Nothing was changed."),
    "time_blocked": N_("The time is blocked and can no longer be booked."),
    "time_unblocked": N_("The time is open again."),
    "client_changed": N_("The client has been changed."),
    "client_disabled": N_("The client is disabled: its calls are refused within seconds."),
    "client_enabled": N_("The client is enabled."),
    "assistant_disconnected": N_("The assistant is disconnected: its calls are refused within seconds."),
    "client_trusted": N_("The client is trusted to ask people. This takes effect within seconds."),
    "client_distrusted": N_("The client is no longer trusted to ask people. This takes effect within seconds."),
    "host_trusted": N_("The assistants of this host are trusted to ask people. This takes effect within seconds."),
    "host_distrusted": N_("The assistants of this host are no longer trusted. This takes effect within seconds."),
    "tokens_revoked": N_("Every token issued so far is refused within seconds."),
    "misses_forgotten": N_("The failed matches are forgotten: the client can match again."),
    "secret_shown": N_("This form was sent before. Its secret was shown then and cannot be shown again."),
    "practice_changed": N_("The practice has been changed."),
    "practice_file_applied": N_("The practice file has been applied."),
    "address_shown": N_("This form was sent before. The address was shown then and cannot be shown again."),
    "webhook_removed": N_("The endpoint is removed, with the events that waited for it."),
    "webhook_replayed": N_("Undelivered events are being sent again."),
    "webhook_paused": N_("Nothing is sent to this endpoint until it is resumed."),
    "webhook_resumed": N_("The endpoint is active again. Waiting events are being sent."),
}


def navigation(of: Sequence[Feature]) -> tuple[tuple[str, tuple[NavItem, ...]], ...]:
    """The groups of the menu, each with the entries of features at its end."""
    return tuple(
        (
            title,
            (
                *(_with_sections(item, of) for item in items),
                *(item for feature in of for item in feature.parts.navigation.get(title, ())),
            ),
        )
        for title, items in _NAVIGATION
    )


def _with_sections(item: NavItem, of: Sequence[Feature]) -> NavItem:
    added = [path for feature in of for path in feature.parts.covers.get(item.path, ())]
    return replace(item, covers=(*item.covers, *added)) if added else item


def practice_tabs(of: Sequence[Feature]) -> tuple[tuple[str, str], ...]:
    """Path and title of each tab of the practice's page, those of features at the end."""
    return (*_PRACTICE_TABS, *(tab for feature in of for tab in feature.parts.practice_tabs))


@cache
def notices() -> dict[str, str]:
    return _NOTICES | {key: text for feature in features() for key, text in feature.parts.notices.items()}
