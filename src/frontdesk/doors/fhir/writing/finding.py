"""`$find`: open times as proposed appointments, by the parameters of IHE ITI Scheduling, Argonaut and Medplum."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from frontdesk.domain.errors import FieldError, invalid
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.codes import tokens
from frontdesk.doors.fhir.fhir_request import MAX_PARAMETERS
from frontdesk.doors.fhir.parameters import Pairs, Query, SearchParameter
from frontdesk.doors.fhir.resource_types import Position, SearchPage
from frontdesk.doors.fhir.resources.directory import whole_list
from frontdesk.doors.fhir.resources.healthcare_services import services
from frontdesk.doors.fhir.resources.practitioners import LIST_PROVIDERS
from frontdesk.doors.fhir.resources.slots import SLOT
from frontdesk.doors.fhir.writing.requested_appointment import relative
from frontdesk.doors.fhir.writing.requests import parameters_of

_PLACES = {"practitioner": "Practitioner", "location-reference": "Location", "location": "Location"}
_SERVICES = ("service-type-reference", "healthcare-service")
_CODES = ("visit-type", "service-type", "service")
_PREFIXES = ("eq", "ge", "gt", "le", "lt")
_IGNORED = ("patient-reference", "patient")
_NOWHERE, _NO_CODE = "Schedule/0-0", "none"  # nothing has them


async def _search(calls: Calls, query: Query, after: Position | None) -> SearchPage:
    found = await SLOT.search(calls, query, after)
    return found._replace(resources=[_proposal(slot) for slot in found.resources])


def _proposal(slot: Resource) -> Resource:
    """An appointment at the time of a slot. Its id is the slot's: `$book` takes it back."""
    provider, location = slot["schedule"]["reference"].removeprefix("Schedule/").split("-")
    actors = (f"Practitioner/{provider}", f"Location/{location}")
    return {
        "resourceType": "Appointment",
        "id": slot["id"],
        "status": "proposed",
        "serviceType": slot["serviceType"],
        "start": slot["start"],
        "end": slot["end"],
        "slot": [{"reference": f"Slot/{slot['id']}"}],
        "participant": [{"actor": {"reference": actor}, "status": "needs-action"} for actor in actors],
    }


PROPOSAL = replace(
    SLOT,
    name="Appointment/$find",
    search=_search,
    parameters=(
        SearchParameter("start", "date", lambda proposal: [proposal["start"]]),
        SearchParameter("end", "date", lambda proposal: [proposal["end"]]),
        SearchParameter("schedule", "reference", lambda proposal: [_schedule(proposal)], ("Schedule",)),
        SearchParameter("service-type", "token", lambda proposal: tokens(proposal["serviceType"])),
    ),
    includes=(),
)


def find_parameters(document: object) -> Pairs:
    """The names and values of the parameters."""
    found = parameters_of(document)
    if len(found) > MAX_PARAMETERS:
        raise invalid([FieldError("parameter", "range", f"there may be at most {MAX_PARAMETERS} parameters")])
    return [(str(each.get("name")), _text(each)) for each in found]


def _text(parameter: Resource) -> str:
    value = next((value for name, value in parameter.items() if name.startswith("value")), "")
    match value:
        case {"reference": str(reference)}:
            return reference
        case {"coding": [{"system": str(system), "code": str(code)}, *_]} | {"system": str(system), "code": str(code)}:
            return f"{system}|{code}"
    return str(value)


async def find_pairs(calls: Calls, given: Pairs, schedule: str | None, base: str) -> Pairs:
    """The parameters of `$find` as those of the search for proposals."""
    pairs: list[tuple[str, str]] = [] if schedule is None else [("schedule", f"Schedule/{schedule}")]
    places: dict[str, list[str]] = {}
    for name, text in given:
        if name in _PLACES:
            references = [relative(each, base) for each in text.split(",")]
            places.setdefault(_PLACES[name], []).extend(number for kind, number in references if kind == _PLACES[name])
        elif name in _SERVICES:
            pairs += [("service-type", token) for token in await _codes(calls, text, base)]
        elif name in _CODES:
            pairs.append(("service-type", text))
        elif name == "start":
            pairs.append(("start", text if text.startswith(_PREFIXES) else f"ge{text}"))
        elif name == "end" and not text.startswith(_PREFIXES):
            pairs += [("start", f"le{text}"), ("end", f"le{text}")]
        elif name not in _IGNORED:
            pairs.append((name, text))
    if places:
        found = await whole_list(calls, LIST_PROVIDERS)
        pairs.append(("schedule", ",".join(_schedules(found, places)) or _NOWHERE))
    return pairs


async def _codes(calls: Calls, text: str, base: str) -> list[str]:
    """The codes of a HealthcareService: its visit type and its procedure."""
    _, identity = relative(text, base)
    known = next((each for each in await services(calls) if each["id"] == identity), None)
    return [_NO_CODE] if known is None else tokens(known["type"])


def _schedules(providers: Iterable[Resource], places: Mapping[str, Sequence[str]]) -> list[str]:
    people, locations = places.get("Practitioner"), places.get("Location")
    return [
        f"Schedule/{provider['id']}-{location}"
        for provider in providers
        for location in provider["locationIds"]
        if (people is None or str(provider["id"]) in people) and (locations is None or str(location) in locations)
    ]


def _schedule(proposal: Resource) -> str:
    practitioner, location = (each["actor"]["reference"].partition("/")[2] for each in proposal["participant"])
    return f"Schedule/{practitioner}-{location}"
