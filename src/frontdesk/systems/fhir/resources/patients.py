"""Converts Patient resources to patients and back, and matches them."""

from datetime import date

from frontdesk.domain.names import words
from frontdesk.domain.patients import Patient, PhoneMatch, same_phone, spelling_key
from frontdesk.domain.text import cleaned
from frontdesk.systems.changes import PatientDetails
from frontdesk.systems.fhir.resources.elements import INTENTS, Resource, listed, with_identifier, without_empty

_PREFERRED_NAMES = ("official", "usual")
_PREFERRED_PHONES = ("mobile", "home")


def parse_patient(resource: Resource, local_id: str, number: int, *, seen: bool) -> Patient | None:
    """Converts a Patient; None if it has no name or no complete date of birth."""
    name, dob = _name(resource), _birth_date(resource)
    if name is None or dob is None:
        return None
    first_name, last_name = name
    phones, emails = _contacts(resource, "phone", _PREFERRED_PHONES), _contacts(resource, "email")
    return Patient(
        id=local_id,
        number=number,
        first_name=first_name,
        last_name=last_name,
        dob=dob,
        phone=phones[0] if phones else "",
        email=emails[0] if emails else None,
        seen=seen or _is_existing(resource),
    )


def _is_existing(resource: Resource) -> bool:
    """Whether another frontdesk says that its practice has seen the patient."""
    mark = {"url": "urn:frontdesk:patient-kind", "valueCode": "existing"}
    return mark in listed(resource.get("extension"))


def is_closed(resource: Resource) -> bool:
    """Whether the record is inactive, or was merged into another one."""
    replaced = any(link.get("type") == "replaced-by" for link in listed(resource.get("link")))
    return resource.get("active") is False or replaced


def is_same(
    resource: Resource, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
) -> bool:
    """Our match rule, on all names and phone numbers of the record. Inactive and merged records do not match."""
    if is_closed(resource) or _birth_date(resource) != dob:
        return False
    wanted = spelling_key(first_name, last_name)
    return any(spelling_key(*name) == wanted for name in _names(resource)) and any(
        same_phone(phone, stored, phone_match) for stored in _contacts(resource, "phone")
    )


def new_patient(details: PatientDetails, intent: str) -> Resource:
    return without_empty(
        {
            "resourceType": "Patient",
            "identifier": [{"system": INTENTS, "value": intent}],
            "active": True,
            "name": [{"use": "official", "family": details.last_name, "given": [details.first_name]}],
            "telecom": _telecom(details),
            "birthDate": details.dob.isoformat(),
        }
    )


def changed_patient(resource: Resource, details: PatientDetails, intent: str) -> Resource:
    """The record with the given name, date of birth and contacts; everything else is kept."""
    name = _name_element(resource)
    names = [dict(each) for each in listed(resource.get("name"))]
    if name is None:
        names.insert(0, {"use": "official", "family": details.last_name, "given": [details.first_name]})
    elif _spelt(name) != (details.first_name, details.last_name):
        # The text of the old name is dropped; middle names are kept.
        kept = {key: value for key, value in name.items() if key != "text"}
        given = [details.first_name, *_given(name)[1:]]
        names[names.index(name)] = {**kept, "family": details.last_name, "given": given}
    telecom = [dict(each) for each in listed(resource.get("telecom"))]
    if details.email is None:
        removed = _contact_elements(resource, "email")
        telecom = [each for each in telecom if each not in removed]
    for contact in _telecom(details):
        preferred = _PREFERRED_PHONES if contact["system"] == "phone" else ()
        current = _contact_elements(resource, contact["system"], preferred)
        if not current:
            telecom.append(contact)
        elif _value(current[0]) != contact["value"]:
            telecom[telecom.index(current[0])] = {**current[0], "value": contact["value"]}
    return without_empty(
        {
            **resource,
            "identifier": with_identifier(resource, INTENTS, intent),
            "name": names,
            "telecom": telecom,
            "birthDate": details.dob.isoformat(),
        }
    )


def differs(resource: Resource, details: PatientDetails) -> bool:
    """Whether a stored record differs from the patient that was asked for."""
    name, phones, emails = _name(resource), _contacts(resource, "phone"), _contacts(resource, "email")
    return (
        name is None
        or [words(part, marks=True) for part in name]
        != [words(part, marks=True) for part in (details.first_name, details.last_name)]
        or resource.get("birthDate") != details.dob.isoformat()
        or (details.phone not in ("", *phones) and not any(same_phone(details.phone, stored) for stored in phones))
        or (details.email is None and bool(emails))
        or (details.email is not None and details.email.casefold() not in map(str.casefold, emails))
    )


def _telecom(details: PatientDetails) -> list[Resource]:
    contacts = [("phone", details.phone), ("email", details.email)]
    return [{"system": system, "value": value} for system, value in contacts if value]


def _birth_date(resource: Resource) -> date | None:
    try:
        return date.fromisoformat(resource["birthDate"])
    except (KeyError, TypeError, ValueError):
        return None  # missing, or only a year or month


def _name(resource: Resource) -> tuple[str, str] | None:
    element = _name_element(resource)
    return None if element is None else _spelt(element)


def _names(resource: Resource) -> list[tuple[str, str]]:
    """All first and last names of the record, with and without middle names."""
    elements = [each for each in listed(resource.get("name")) if _spelt(each) is not None]
    return [
        (first, cleaned(element["family"]))
        for element in elements
        for first in (_given(element)[0], " ".join(_given(element)))
    ]


def _name_element(resource: Resource) -> Resource | None:
    usable = [each for each in listed(resource.get("name")) if each.get("use") != "old" and _spelt(each) is not None]
    return min(usable, key=lambda each: _rank(each.get("use"), _PREFERRED_NAMES), default=None)


def _spelt(element: Resource) -> tuple[str, str] | None:
    given, family = _given(element), element.get("family")
    last_name = cleaned(family) if isinstance(family, str) else ""
    return (given[0], last_name) if given and last_name else None


def _given(element: Resource) -> list[str]:
    given = element.get("given")
    spelt = [cleaned(part) for part in given if isinstance(part, str)] if isinstance(given, list) else []
    return [part for part in spelt if part]


def _contacts(resource: Resource, system: str, preferred: tuple[str, ...] = ()) -> list[str]:
    return [_value(element) for element in _contact_elements(resource, system, preferred)]


def _value(element: Resource) -> str:
    value = element.get("value")
    return cleaned(value) if isinstance(value, str) else ""


def _contact_elements(resource: Resource, system: str, preferred: tuple[str, ...] = ()) -> list[Resource]:
    usable = [
        each
        for each in listed(resource.get("telecom"))
        if each.get("system") == system and each.get("use") != "old" and _value(each)
    ]
    return sorted(usable, key=lambda each: (_number(each.get("rank")), _rank(each.get("use"), preferred)))


def _number(rank: object) -> int:
    return rank if isinstance(rank, int) else 99


def _rank(use: object, preferred: tuple[str, ...]) -> int:
    return preferred.index(use) if use in preferred else len(preferred)
