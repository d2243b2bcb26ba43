"""How a write to a FHIR server ended, as it is stored and audited."""

from datetime import datetime

from frontdesk.systems.fhir.records import PendingWrite, WriteOutcome

_EVENTS = {
    "book": "appointment.booked",
    "reschedule": "appointment.rescheduled",
    "create_patient": "patient.created",
    "update_patient": "patient.updated",
}


def executed_outcome(write: PendingWrite, reference: str, now: datetime) -> WriteOutcome:
    change, data = write.change, write.data
    local_id = data["appointmentId"] if "appointmentId" in data else data["patientId"]
    facts: dict[str, object] = {}
    if change == "reschedule":
        facts = {"rescheduledFrom": data["before"]["start"], "attendanceConfirmedAt": None}
        if "movedFrom" in data:
            facts["movedFrom"] = data["movedFrom"]
    elif data.get("status") == "cancelled":
        facts = {"cancelledAt": now}
    elif data.get("status") == "confirmed":
        facts = {"attendanceConfirmedAt": now}
    ids: dict[str, str] = {key: data[key] for key in ("appointmentId", "patientId") if key in data}
    return WriteOutcome(
        "executed",
        list(ids.values()),
        stored_result(write),
        event=_EVENTS.get(change) or f"appointment.{data['status']}",
        event_subject=ids,
        record={"localId": local_id, "reference": reference, **facts},
    )


def stored_result(write: PendingWrite) -> dict[str, object]:
    """What the caller gets."""
    data = write.data
    if "appointmentId" not in data:
        return {"patientId": data["patientId"]}
    status = "booked" if write.change == "reschedule" else data.get("status")
    return {"appointmentId": data["appointmentId"], **({"status": status} if status else {})}


def subject_ids(write: PendingWrite) -> list[str]:
    """The ids that a write was about, without the id of a record that was not created."""
    data, new = write.data, {"book": "appointmentId", "create_patient": "patientId"}.get(write.change)
    return [data[key] for key in ("appointmentId", "patientId") if key in data and key != new]
