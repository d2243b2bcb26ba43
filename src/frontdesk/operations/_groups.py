"""The groups under which documents list operations."""

from frontdesk.operations._operation import Group

CAPABILITIES = Group("Capabilities", "What this token may do.")
PRACTICE = Group("Practice", "The practice that the token belongs to.")
LOCATIONS = Group("Locations", "Where the practice sees patients.")
PROVIDERS = Group("Providers", "Who sees them.")
VISIT_TYPES = Group("Visit types", "The kinds of visit, and the procedures under each.")
SLOTS = Group("Slots", "Open times: computed on request, never stored.")
PATIENTS = Group("Patients", "Finding people, and putting them on file.")
APPOINTMENTS = Group("Appointments", "Booking, moving, confirming and cancelling.")
