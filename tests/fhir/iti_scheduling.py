"""A FHIR server in memory with the scheduling operations of IHE ITI Scheduling, or of Argonaut, and no Slots.

Its CapabilityStatement lists them, and with Argonaut's a `$cancel`. `$find` knows Practitioner, Location and the code
of the visit.
"""

import json
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from tests.fhir.door import Answer
from tests.fhir.fake import Fake, Resource, json_answer, outcome
from tests.fhir.proposing import Interval, aligned, instant_text, interval, opening_times, searchset, without

DEFINITIONS = {
    "ihe": "https://profiles.ihe.net/ITI/Scheduling/OperationDefinition/appointment-",
    "argonaut": "http://fhir.org/guides/argonaut-scheduling/OperationDefinition/appointment-",
}
_OPERATIONS = {"ihe": ("find", "book"), "argonaut": ("find", "book", "cancel")}
_PARAMETERS = {"ihe": "appointment-resource", "argonaut": "appt-resource"}
_MINUTES = {"http://harbor.example.com/visits|FU15": 15}
_CHEN = "Practitioner/chen"


class ItiScheduling(Fake):
    def __init__(self, public_base: str, shape: str) -> None:
        super().__init__(public_base)
        self._shape = shape
        self.operations = _OPERATIONS[shape]

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(target)
        if parts.path == "/metadata":
            return json_answer(200, self._statement())
        if parts.path == "/Appointment/$find":
            return json_answer(200, self._found(dict(parse_qsl(parts.query))))
        if parts.path == "/Appointment/$book":
            return self._booked(json.loads(body))
        reference, _, operation = parts.path.strip("/").rpartition("/$")
        if operation == "cancel" and operation in self.operations:
            return json_answer(200, self._store({**self._kept[reference], "status": "cancelled"}))
        return await super().answer(method, target, headers, body)

    def _statement(self) -> Resource:
        interaction = [{"code": code} for code in ("read", "search-type", "create", "update")]
        operations = [{"name": each, "definition": DEFINITIONS[self._shape] + each} for each in self.operations]
        resource: list[Resource] = [
            {"type": kind, "interaction": interaction, "versioning": "versioned"}
            for kind in ("Appointment", "Encounter", "Location", "Patient", "Practitioner")
        ]
        resource[0]["operation"] = operations
        rest = [{"mode": "server", "resource": resource}]
        return {"resourceType": "CapabilityStatement", "fhirVersion": "4.0.1", "rest": rest}

    def _found(self, given: dict[str, str]) -> Resource:
        if (given.get("practitioner"), given.get("location-reference")) != (_CHEN, "Location/downtown"):
            return searchset([])
        starts, ends = datetime.fromisoformat(given["start"]), datetime.fromisoformat(given["end"])
        length = timedelta(minutes=_MINUTES.get(given.get("visit-type", ""), 45))
        participant = [{"actor": {"reference": _CHEN}, "status": "needs-action"}]
        return searchset(
            {
                "resourceType": "Appointment",
                "status": "proposed",
                "start": instant_text(begins),
                "end": instant_text(begins + length),
                "participant": participant,
            }
            for begins in aligned(without(opening_times(starts, ends), self._busy()), length)
        )

    def _busy(self) -> list[Interval]:
        found = self._search("Appointment", [("actor", _CHEN)])
        return [interval(each) for each in found if each["status"] in ("booked", "pending")]

    def _booked(self, document: Resource) -> Answer:
        name = _PARAMETERS[self._shape]
        [appointment] = [each["resource"] for each in document["parameter"] if each["name"] == name]
        starts, ends = interval(appointment)
        if self._shape == "ihe" and appointment["status"] != "pending":
            return json_answer(422, outcome("the status must be pending"))
        if any(first < ends and last > starts for first, last in self._busy()):
            return json_answer(409, outcome("the time is taken"))
        stored = self._store({**appointment, "id": f"made-{next(self._ids)}", "status": "booked"})
        returned = {"name": "return", "resource": searchset([stored])}
        return json_answer(200, {"resourceType": "Parameters", "parameter": [returned]})
