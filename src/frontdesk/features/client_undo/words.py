"""What a client did to an appointment and what takes it back, in words."""

from collections.abc import Mapping

from frontdesk.console.language import gettext as _
from frontdesk.features.client_undo.plan import UndoEntry, Undoing
from frontdesk.texts import N_

_DID = {
    "book_appointment": N_("Booked"),
    "reschedule_appointment": N_("Moved"),
    "cancel_appointment": N_("Cancelled"),
    "confirm_attendance": N_("Confirmed"),
    "create_patient": N_("Created"),
    "update_patient": N_("Updated"),
}
_PLANNED: Mapping[tuple[Undoing, ...], str] = {
    ("cancel",): N_("The booking will be cancelled."),
    ("restore",): N_("The cancellation will be undone."),
    ("restore", "move_back"): N_("The cancellation will be undone, and the appointment moved back."),
    ("restore", "unconfirm"): N_("The cancellation will be undone, and the confirmation too."),
    ("move_back",): N_("The appointment will be moved back."),
    ("unconfirm",): N_("The confirmation will be undone."),
}
_MADE: Mapping[tuple[Undoing, ...], str] = {
    ("cancel",): N_("The booking was cancelled."),
    ("restore",): N_("The cancellation was undone."),
    ("restore", "move_back"): N_("The cancellation was undone, and the appointment moved back."),
    ("restore", "unconfirm"): N_("The cancellation was undone, and the confirmation too."),
    ("move_back",): N_("The appointment was moved back."),
    ("unconfirm",): N_("The confirmation was undone."),
}


def what_it_did(operations: tuple[str, ...]) -> str:
    """For example: Booked, Moved."""
    return ", ".join(_(_DID[each]) for each in operations)


def what_will_be_done(entry: UndoEntry) -> str:
    return _(_PLANNED[entry.changes])


def what_was_done(entry: UndoEntry) -> str:
    """Empty if nothing was."""
    return _(_MADE[entry.made]) if entry.made else ""
