"""The navigation menu, and the notices shown after an action."""

from dataclasses import dataclass

from frontdesk.console.actions.context import Role

HOME = "/calendar"


@dataclass(frozen=True, slots=True)
class NavItem:
    path: str
    label: str
    icon: str  # a name in icons.html
    role: Role
    covers: tuple[str, ...] = ()  # other sections that mark this entry as current


NAV: tuple[tuple[str, tuple[NavItem, ...]], ...] = (
    (
        "Front desk",
        (
            NavItem(
                "/calendar",
                "Calendar",
                "calendar",
                "staff",
                ("/appointments", "/book", "/override", "/blocks", "/away", "/day-sheet"),
            ),
            NavItem("/arrivals", "Arrivals", "clock", "staff", ("/walk-in",)),
            NavItem("/patients", "Patients", "people", "staff"),
            NavItem("/reports", "Reports", "chart", "admin"),
        ),
    ),
    (
        "Agents",
        (
            NavItem("/assistants", "Connected assistants", "plug", "staff"),
            NavItem("/clients", "Clients", "key", "admin"),
            NavItem("/usage", "Usage", "chart", "admin"),
            NavItem("/confirmations", "Confirmations", "check", "staff"),
            NavItem("/agent", "Agent's view", "agent", "admin"),
        ),
    ),
    (
        "Practice",
        (
            NavItem("/setup", "Set-up", "list", "admin"),
            NavItem("/practice/rules", "Practice", "building", "admin", ("/practice",)),
            NavItem("/staff", "Staff", "badge", "admin"),
            NavItem("/audit", "Audit", "shield", "admin"),
        ),
    ),
)

# URLs carry only the key, so that a link cannot make a page show an arbitrary text.
NOTICES = {
    "staff_changed": "The staff member has been changed.",
    "passkey_added": "The passkey has been added.",
    "passkey_removed": "The passkey has been removed.",
    "pin_set": "The PIN has been set.",
    "pin_removed": "The PIN has been removed.",
    "session_ended": "The session has been ended.",
    "staff_removed": "The staff member has been removed.",
    "appointment_booked": "The appointment is booked.",
    "override_booked": "The appointment is booked against the rules.",
    "override_moved": "The appointment has been moved against the rules.",
    "walk_in_arrived": "The walk-in is booked and has arrived.",
    "appointment_moved": "The appointment has been moved.",
    "appointment_cancelled": "The appointment is cancelled and its time is free again.",
    "attendance_confirmed": "Attendance is confirmed.",
    "arrival_recorded": "The arrival has been recorded.",
    "visit_completed": "The visit has been recorded as completed.",
    "no_show_recorded": "The no-show has been recorded.",
    "called_in": "The patient is with the provider.",
    "waiting_again": "Undone: the patient waits again.",
    "undo_needs_reason": "This was recorded a while ago. Say why it is undone.",
    "appointment_restored": "Undone.",
    "patient_created": "The patient has been added.",
    "patient_changed": "The patient's record has been changed.",
    "note_added": "The note has been added.",
    "note_removed": "The note has been removed.",
    "nothing_changed": "Nothing was changed.",
    "time_blocked": "The time is blocked and can no longer be booked.",
    "time_unblocked": "The time is open again.",
    "call_recorded": "The call has been recorded.",
    "call_withdrawn": "The call is open again.",
    "client_changed": "The client has been changed.",
    "client_disabled": "The client is disabled: its calls are refused within seconds.",
    "client_enabled": "The client is enabled.",
    "assistant_disconnected": "The assistant is disconnected: its calls are refused within seconds.",
    "tokens_revoked": "Every access token issued so far is refused within seconds.",
    "misses_forgotten": "The failed matches are forgotten: the client can match again.",
    "secret_shown": "This form was sent before. Its secret was shown then and cannot be shown again.",
    "practice_changed": "The practice has been changed.",
    "practice_file_applied": "The practice file has been applied.",
    "feed_revoked": "The calendar feed is revoked: its address no longer works.",
    "webhook_replayed": "Undelivered events are being sent again.",
    "webhook_paused": "Nothing is sent to this endpoint until it is resumed.",
    "webhook_resumed": "The endpoint is active again. Waiting events are being sent.",
}
