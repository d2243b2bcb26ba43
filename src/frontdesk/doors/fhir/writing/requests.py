"""What a write over FHIR says apart from its resource: preconditions, confirmation, identifiers, preferred answer."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.domain.text import character_error
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.codes import CONFIRMED_BY, INTENT, PATIENT_NUMBER
from frontdesk.doors.fhir.fhir_request import FhirRequest
from frontdesk.doors.fhir.versions import names_version
from frontdesk.engine.external_identifiers import MAX_LENGTH, Identifier
from frontdesk.engine.json_documents import UnreadableJson, read_json
from frontdesk.web.bodies import require_json_body
from frontdesk.web.http_request import HttpRequest, decoded

_TOKEN_HEADER = b"frontdesk-confirmation-token"
_MINIMAL = re.compile(r"(?:^|[,;\s])return\s*=\s*\"?minimal\b")
_MAX_IDENTIFIERS = 30


async def read_document(request: FhirRequest, *, absent: object = None) -> object:
    """The body as JSON; a property must not be repeated. `absent` stands for a body that may be left out."""
    body = await request.body()
    require_json_body(request.http.headers.get(b"content-type"), body)
    if not body and absent is not None:
        return absent
    try:
        document, repeated = read_json(body)
    except UnreadableJson as error:
        raise invalid([FieldError("$", BINDING, f"the body {error}")]) from None
    if repeated:
        raise invalid([FieldError("$", BINDING, "a property must not be repeated")])
    return document


def require_type(document: object, kind: str) -> Resource:
    if not isinstance(document, dict) or document.get("resourceType") != kind:
        raise invalid([FieldError("resourceType", BINDING, f"the resource must be of type {kind}")])
    return document


def parameters_of(document: object) -> list[dict[str, object]]:
    """The parameters of a Parameters resource."""
    return objects(require_type(document, "Parameters").get("parameter"))


def version_matches(http: HttpRequest, current: Resource) -> bool:
    """Whether If-Match, if there is one, names the current version."""
    tags = http.headers.get(b"if-match")
    return tags is None or names_version(tags, current)


def outdated() -> Problem:
    return Problem("conflict", "The resource has changed: it is no longer the version of If-Match.", status=412)


def confirmation_token(http: HttpRequest, resource: Resource) -> str | None:
    """The token of the header or of the resource's extension."""
    given = decoded(http.headers.get(_TOKEN_HEADER))
    if given is not None:
        return given
    for extension in objects(resource.get("extension")):
        if extension.get("url") == CONFIRMED_BY and isinstance(extension.get("valueString"), str):
            return str(extension["valueString"])
    return None


def identifiers(resource: Resource) -> list[Identifier]:
    """The identifiers with a system and a value, without our own."""
    found = [
        Identifier(each["system"], each["value"])
        for each in objects(resource.get("identifier"))
        if isinstance(each.get("system"), str)
        and isinstance(each.get("value"), str)
        and each["system"] != PATIENT_NUMBER
    ]
    if len(found) > _MAX_IDENTIFIERS or any(len(text) > MAX_LENGTH for each in found for text in each):
        field = f"{resource['resourceType']}.identifier"
        message = f"{field} must have at most {_MAX_IDENTIFIERS} identifiers of at most {MAX_LENGTH} characters each"
        raise invalid([FieldError(field, "maxLength", message)])
    if any(character_error(text) for each in found for text in each):
        field = f"{resource['resourceType']}.identifier"
        raise invalid([FieldError(field, "characters", f"{field} must not have control characters")])
    return found


def condition(http: HttpRequest) -> list[tuple[str, str]] | None:
    """The search of If-None-Exist, None without one."""
    text = decoded(http.headers.get(b"if-none-exist"))
    if text is None:
        return None
    try:
        return parse_qsl(text.partition("?")[2] or text, strict_parsing=True, max_num_fields=10)
    except ValueError:
        raise invalid([FieldError("If-None-Exist", BINDING, "If-None-Exist must be a search")]) from None


def required_identifier(pairs: Iterable[tuple[str, str]]) -> Identifier | None:
    """The identifier of a condition that asks for one, None if it asks for something else."""
    match list(pairs):
        case [("identifier", token)]:
            system, separator, value = token.rpartition("|")
            identifier = Identifier(system, value)
            if not identifier.can_be_stored:
                message = f"the identifier must have at most {MAX_LENGTH} characters and no control characters"
                raise invalid([FieldError("If-None-Exist", BINDING, message)])
            return identifier if separator and system and value else None
    return None


def key_of_create(http: HttpRequest, kind: str, given: list[Identifier]) -> str | None:
    """The Idempotency-Key of a new record: the header's, else its first identifier."""
    return header_key(http) or (_key(kind, given[0]) if given else None)


def key_of_change(http: HttpRequest, kind: str, given: list[Identifier]) -> str | None:
    """The Idempotency-Key of a change: the header's, else the newest identifier of another frontdesk's write."""
    intents = [each for each in given if each.system == INTENT]
    return header_key(http) or (_key(kind, intents[-1]) if intents else None)


def header_key(http: HttpRequest) -> str | None:
    return decoded(http.headers.get(b"idempotency-key"))


def prefers_minimal(http: HttpRequest) -> bool:
    return _MINIMAL.search(http.headers.get(b"prefer", b"").decode("latin-1").lower()) is not None


def _key(kind: str, identifier: Identifier) -> str:
    """A key of fixed length: an identifier may be personal data."""
    return "fhir " + hashlib.sha256("\n".join((kind, *identifier)).encode(errors="surrogatepass")).hexdigest()


def objects(value: object) -> list[dict[str, Any]]:
    """The JSON objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def refused(kind: str, element: str, rule: str) -> Problem:
    """The refusal of an element's value."""
    field = f"{kind}.{element}"
    return invalid([FieldError(field, "declined", f"{field} {rule}")])
