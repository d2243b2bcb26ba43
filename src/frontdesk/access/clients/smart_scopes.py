"""SMART on FHIR system scopes (versions 1 and 2), mapped to ours in one table."""

import re
from collections.abc import Collection, Iterable

from frontdesk.access.clients.validation import ordered

_DIRECTORY: dict[str, tuple[str, ...]] = {"r": ("practices:read",), "s": ("practices:read",)}
_SCOPES_OF: dict[str, dict[str, tuple[str, ...]]] = {  # resource type -> letter of SMART version 2 -> our scopes
    "Appointment": {
        "c": ("appointments:book",),
        "r": ("appointments:read",),
        "u": ("appointments:book", "appointments:cancel", "appointments:confirm"),
        "s": ("appointments:read",),
    },
    "HealthcareService": _DIRECTORY,
    "Location": _DIRECTORY,
    "Patient": {
        "c": ("patients:write",),
        "r": ("patients:read",),
        "u": ("patients:write",),
        "s": ("patients:read",),
    },
    "Practitioner": _DIRECTORY,
    "PractitionerRole": _DIRECTORY,
    "Schedule": _DIRECTORY,
    "Slot": {"r": ("slots:read",), "s": ("slots:read",)},
}
_VERSION_1 = {"read": "rs", "write": "cud", "*": "cruds"}
_SYSTEM = re.compile(r"system/(\*|[A-Za-z]+)\.(read|write|\*|(?=[cruds])c?r?u?d?s?)\Z")
_SMART = re.compile(r"(system|user|patient)/|(openid|fhirUser|launch|offline_access|online_access)\b")

SMART_SCOPES = tuple(f"system/{resource}.{''.join(letters)}" for resource, letters in _SCOPES_OF.items())


def is_smart(scope: str) -> bool:
    return _SMART.match(scope) is not None


def grant_smart_scopes(requested: Iterable[str], held: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    """Our scopes among those held, and the SMART scopes that they amount to: as requested where everything is granted.

    A scope with conditions, for a user or for a patient grants nothing.
    """
    ours: set[str] = set()
    smart: list[str] = []
    for scope in requested:
        wanted = _read(scope)
        reached = [(resource, _reached(resource, letters, held)) for resource, letters in wanted]
        ours.update(
            name for resource, letters in reached for letter in letters for name in _SCOPES_OF[resource][letter]
        )
        if wanted and reached == wanted:
            smart.append(scope)
        else:
            smart += [f"system/{resource}.{letters}" for resource, letters in reached if letters]
    return ordered(ours & set(held)), list(dict.fromkeys(smart))


def _reached(resource: str, letters: str, held: Collection[str]) -> str:
    """An update reaches several of our scopes; one of them is enough, and each operation checks its own."""
    mapping = _SCOPES_OF[resource]
    return "".join(letter for letter in letters if any(name in held for name in mapping.get(letter, ())))


def _read(scope: str) -> list[tuple[str, str]]:
    """Resource types and letters of a SMART scope; none of one that means nothing here."""
    found = _SYSTEM.match(scope)
    if found is None:
        return []
    resource, access = found.groups()
    resources = list(_SCOPES_OF) if resource == "*" else [resource] if resource in _SCOPES_OF else []
    return [(name, _VERSION_1.get(access, access)) for name in resources]
