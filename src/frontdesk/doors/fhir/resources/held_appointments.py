"""The pending Appointment that stands for a hold of the client."""

from typing import Any

from frontdesk.doors.fhir.addresses import Resource, fhir_id, held_id, reference
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import HELD_UNTIL, service_type
from frontdesk.operations import GET_HOLD


async def read_held(calls: Calls, hold_id: str) -> Resource:
    return held_appointment(await calls.run(GET_HOLD, holdId=hold_id))


def held_appointment(record: dict[str, Any]) -> Resource:
    actors = (
        reference("Practitioner", record["providerId"], record["providerName"]),
        reference("Location", record["locationId"], record["locationName"]),
    )
    return {
        "resourceType": "Appointment",
        "id": held_id(record["holdId"]),
        "meta": {"lastUpdated": record["heldAt"]},
        "extension": [{"url": HELD_UNTIL, "valueInstant": record["heldUntil"]}],
        "status": "pending",
        "serviceType": service_type(record),
        "start": record["start"],
        "end": record["end"],
        "slot": [reference("Slot", fhir_id(record["id"]))],
        "created": record["heldAt"],
        "participant": [{"actor": actor, "status": "needs-action"} for actor in actors],
    }
