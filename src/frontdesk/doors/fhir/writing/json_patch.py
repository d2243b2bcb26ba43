"""Applies a JSON Patch (RFC 6902) to a resource."""

import copy
from typing import Any

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.web.http_request import HttpRequest

JSON_PATCH = "application/json-patch+json"
_MAX_STEPS = 50


def require_patch(http: HttpRequest) -> None:
    media_type = http.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != JSON_PATCH.encode():
        raise Problem("unsupported_media_type", f"A patch is of type {JSON_PATCH}.")


def patched(resource: Resource, patch: object) -> Resource:
    """The resource after all steps. A failed `test` is a conflict."""
    if not isinstance(patch, list) or not 1 <= len(patch) <= _MAX_STEPS:
        raise _invalid(f"the patch must be an array of 1 to {_MAX_STEPS} operations")
    document = copy.deepcopy(resource)
    for number, step in enumerate(patch):
        if not isinstance(step, dict) or not isinstance(step.get("path"), str):
            raise _invalid("each operation must be an object with op and path")
        try:
            _apply(document, step)
        except (LookupError, ValueError, TypeError):
            raise _invalid(f"operation {number} cannot be applied") from None
    return document


def _apply(document: Any, step: dict[str, Any]) -> None:
    root, *parts = step["path"].split("/")
    if root:
        raise ValueError  # RFC 6901: a pointer begins with a slash
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    target = document
    for part in parents:
        target = target[_index(target, part)]
    match step.get("op"):
        case "test":
            if target[_index(target, last)] != step["value"]:
                raise Problem("conflict", "The resource is not as the patch requires.", status=412)
        case "add" if isinstance(target, list):
            target.insert(len(target) if last == "-" else _index(target, last, maximum=len(target)), step["value"])
        case "add":
            target[last] = step["value"]
        case "replace":
            target[_index(target, last)]  # must exist
            target[_index(target, last)] = step["value"]
        case "remove":
            del target[_index(target, last)]
        case _:
            raise ValueError


def _index(target: object, part: str, maximum: int | None = None) -> Any:
    """The key of an object's member or the index of an array's element."""
    if isinstance(target, dict):
        return part
    if not isinstance(target, list) or not part.isdecimal():
        raise LookupError
    index = int(part)
    if index > (len(target) - 1 if maximum is None else maximum):
        raise LookupError
    return index


def _invalid(message: str) -> Problem:
    return invalid([FieldError("$", BINDING, message)])
