"""The JSON that is stored of a write until it is settled; a key is absent where it has no meaning."""

from typing import Any, TypedDict


class Release(TypedDict, total=False):
    """What may have to be freed: a slot, what a move `occupied`, or a late record of the type in `watch`."""

    slot: str
    claims: list[str]
    ours: bool
    made: bool
    occupied: bool
    watch: str
    cancels: bool


WriteData = TypedDict(
    "WriteData",
    {
        "subject": str,
        "consent": str,
        "approvedBy": str,
        "traceparent": str,
        "limits": dict[str, int],
        "unchangedSince": str,
        "reference": str,
        "patientId": str,
        "appointmentId": str,
        "status": str,
        "from": str | None,
        "cancels": bool,
        "givesUp": list[Release],
        "providerId": int,
        "locationId": int,
        "visitTypeId": int,
        "procedureId": int,
        "startsAt": str,
        "endsAt": str,
        "askedAt": str,
        "patient": str,
        "run": list[str],
        "slots": list[str],
        "proposed": bool,
        "before": dict[str, Any],  # of an Appointment: what a move changes
        "movedFrom": dict[str, Any],  # the place before a move, as `appointment_move` has it
        "releases": list[Release],
        "wrong": bool,
    },
    total=False,
)
