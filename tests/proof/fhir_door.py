"""Calls over the FHIR door, which alone offers holds, with the names and bodies that the operations have."""

from collections.abc import Mapping
from typing import Any

from frontdesk.doors.fhir.addresses import FHIR_PREFIX, fhir_id, our_id
from frontdesk.features.holds.held_appointments import HELD_UNTIL, held_id, hold_of

_APPOINTMENTS = f"{FHIR_PREFIX}/Appointment"


async def over_fhir(node: Any, name: str, given: Mapping[str, Any], token: str | None, sent: Mapping[str, str]) -> Any:
    headers = dict(sent) if token is None else {**sent, "Frontdesk-Confirmation-Token": token}
    match name:
        case "hold_slot":
            wanted = _parameters(fhir_id(given["slotId"]))
            return await node.post(f"{_APPOINTMENTS}/$hold", json=wanted, headers=headers)
        case "get_hold":
            return await node.get(f"{_APPOINTMENTS}/{held_id(given['holdId'])}", headers=headers)
        case "release_hold":
            resource = {"resourceType": "Appointment", "id": held_id(given["holdId"]), "status": "cancelled"}
            return await node.put(f"{_APPOINTMENTS}/{resource['id']}", json=resource, headers=headers)
        case "book_appointment":
            named = _parameters(held_id(given["holdId"]), fhir_id(given["patientId"]))
            return await node.post(f"{_APPOINTMENTS}/$book", json=named, headers=headers)
        case "get_slot":
            return await node.get(f"{FHIR_PREFIX}/Slot/{fhir_id(given['slotId'])}", headers=headers)
        case _:
            raise NotImplementedError(name)


def told_over_fhir(name: str, given: Mapping[str, Any], answer: Any) -> tuple[int, Mapping[str, Any]]:
    """The status and body that REST would have answered. Raises ValueError for a success that does not say of what."""
    if answer.status_code >= 400:
        return answer.status_code, _problem(answer.json())
    return answer.status_code, _body(name, given, answer)


def _parameters(appointment: str, patient: str | None = None) -> dict[str, Any]:
    named = {"appointment-reference": f"Appointment/{appointment}"}
    if patient is not None:
        named["patient-reference"] = f"Patient/{patient}"
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": name, "valueReference": {"reference": to}} for name, to in named.items()],
    }


def _problem(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    if "issue" not in outcome:  # not written by the door
        return outcome
    first = outcome["issue"][0]
    problem = {"code": first["details"]["coding"][0]["code"], "detail": first["diagnostics"]}
    for confirmation in outcome.get("extension", ()):
        extensions = {each["url"]: each for each in confirmation["extension"]}
        problem["confirmationToken"] = extensions["token"]["valueString"]
        problem["expiresAt"] = extensions["expiresAt"]["valueInstant"]
    return problem


def _body(name: str, given: Mapping[str, Any], answer: Any) -> Mapping[str, Any]:
    if name == "release_hold":
        return {"holdId": given["holdId"]}
    if name == "hold_slot":
        hold = {"holdId": hold_of(_last(answer.headers["location"]))}
        return hold if not answer.content else {**hold, "heldUntil": _held_until(answer.json())}
    if not answer.content:  # what was booked could not be read
        if "location" not in answer.headers:
            raise ValueError("the answer names no appointment")
        return {"appointmentId": our_id("apt", _last(answer.headers["location"]))}
    resource = answer.json()
    if name == "book_appointment":
        return {"appointmentId": our_id("apt", resource["entry"][0]["resource"]["id"])}
    if name == "get_slot":
        return {"available": resource["status"] == "free", "held": resource["status"] == "busy-tentative"}
    return {
        "slotId": our_id("slt", _last(resource["slot"][0]["reference"])),
        "heldUntil": _held_until(resource),
    }


def _held_until(resource: Mapping[str, Any]) -> str:
    return next(str(each["valueInstant"]) for each in resource["extension"] if each["url"] == HELD_UNTIL)


def _last(address: str) -> str:
    return address.rpartition("/")[2]
