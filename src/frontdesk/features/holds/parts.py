from frontdesk.doors.fhir.pending import PendingAppointments, TypeOperation
from frontdesk.doors.fhir.resource_types import ListedOperation
from frontdesk.doors.fhir.writing.table import IHE
from frontdesk.feature import Parts
from frontdesk.features.holds.held_appointments import PREFIX, book, hold, read, release
from frontdesk.features.holds.operations import GET_HOLD, HOLD_SLOT, RELEASE_HOLD

_LISTED = ListedOperation(
    f"{IHE}/appointment-hold",
    "Refused with 503 (capability_not_supported) at a practice whose calendar is on another FHIR server, or that has "
    "switched holds off.",
)

PARTS = Parts(
    pending_appointments=PendingAppointments(
        prefix=PREFIX,
        operations=(HOLD_SLOT, GET_HOLD, RELEASE_HOLD),
        type_operations={"hold": TypeOperation(_LISTED, HOLD_SLOT, hold)},
        read=read,
        book=book,
        cancel=release,
        cancel_by=RELEASE_HOLD,
    )
)
