"""Approvals: staff approve or refuse what agents propose, where the practice demands the consent `staff`."""

from frontdesk.feature import Feature
from frontdesk.texts import N_

FEATURE = Feature(
    name="approvals",
    title=N_("Approvals"),
    about=N_("Staff approve or refuse what agents propose, for operations that need the consent of a staff member."),
    events=("approval.approved", "approval.refused"),
    approvals=("staff",),
)
