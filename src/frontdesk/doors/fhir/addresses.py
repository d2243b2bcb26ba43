"""Addresses of the FHIR door, and the ids of its resources.

FHIR ids contain no underscore: an id of ours loses its prefix, and a slot's further underscores become dots.
"""

import re
from collections.abc import Mapping
from typing import Any

from frontdesk.access.clients.resources import FHIR_RESOURCE
from frontdesk.domain.errors import Problem
from frontdesk.settings import Settings

FHIR_PREFIX = FHIR_RESOURCE
Resource = dict[str, Any]

_INT32_MAX = 2**31 - 1
_NUMBER = re.compile(r"[1-9][0-9]{0,9}\Z", re.ASCII)


def base_url(settings: Settings) -> str:
    return settings.public_url + FHIR_PREFIX


def fhir_id(ours: str) -> str:
    """The FHIR id of a patient, an appointment or a slot."""
    return ours.partition("_")[2].replace("_", ".")


def our_id(prefix: str, text: str) -> str:
    """What `fhir_id` was made from. An id that nothing has is found to be unknown later."""
    return f"{prefix}_{text.replace('.', '_')}"


def directory_ids(text: str, count: int) -> list[int]:
    """The ids that a FHIR id consists of, joined by hyphens; not_found if it is no such id."""
    parts = text.split("-")
    if len(parts) != count or None in (numbers := [directory_id(part) for part in parts]):
        raise no_such_resource()
    return [number for number in numbers if number is not None]


def directory_id(text: str) -> int | None:
    return int(text) if _NUMBER.match(text) and int(text) <= _INT32_MAX else None


def no_such_resource() -> Problem:
    return Problem("not_found", "There is no such resource.")


def reference(kind: str, resource_id: object, display: str | None = None) -> Resource:
    return {"reference": f"{kind}/{resource_id}"} | ({} if display is None else {"display": display})


def reference_of(resource: Mapping[str, object]) -> str:
    return f"{resource['resourceType']}/{resource['id']}"
