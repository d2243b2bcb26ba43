"""Takes back what one client did since a time: a client that was misused, or an agent that went wrong."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="client_undo",
    title=N_("Undo what a client did"),
    about=N_("Cancels the bookings of a client since a time, and restores what it cancelled and moved."),
)
