"""One request to the FHIR door while it is answered."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.types import Receive

from frontdesk.domain.errors import BINDING, FieldError, Problem, invalid
from frontdesk.doors.fhir.addresses import Resource
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.outcomes import FHIR_JSON
from frontdesk.operations import Operation
from frontdesk.web.bodies import read_body
from frontdesk.web.http_request import HttpRequest, RawHeaders
from frontdesk.web.negotiation import preferred

MAX_PARAMETERS = 100
_FORM = "application/x-www-form-urlencoded"
_OFFERED = (FHIR_JSON, "application/json")
_FORMATS = frozenset(("json", "text/json", *_OFFERED))
_STRICT = re.compile(rb"(?:^|[,;\s])handling\s*=\s*\"?strict\b")


@dataclass(slots=True)
class Reply:
    status: int
    resource: Resource | None = None
    headers: RawHeaders = field(default_factory=list)


@dataclass(slots=True)
class FhirRequest:
    http: HttpRequest
    calls: Calls
    receive: Receive
    base: str  # the address of the door
    media_type: str = FHIR_JSON

    async def admit(self, operation: Operation) -> None:
        """Checks token, practice and scope, and then whether the answer's format is acceptable."""
        await self.calls.admit(operation)
        self.negotiate()

    def negotiate(self) -> None:
        """Chooses the format of the answer. `_format` takes precedence over Accept."""
        wanted = next((text for name, text in self.query() if name == "_format" and text), None)
        accept = self.http.headers.get(b"accept", b"").strip()
        if wanted is not None:
            chosen = FHIR_JSON if wanted.replace(" ", "+").lower() in _FORMATS else None  # a plus sign not encoded
        else:
            chosen = preferred(accept, _OFFERED) if accept else FHIR_JSON
        if chosen is None:
            raise Problem("not_acceptable", "Answers are JSON: Accept or _format must allow application/fhir+json.")
        self.media_type = chosen

    @property
    def is_strict(self) -> bool:
        """Whether parameters that are not supported are refused rather than ignored."""
        return _STRICT.search(self.http.headers.get(b"prefer", b"").lower()) is not None

    def query(self) -> list[tuple[str, str]]:
        return _pairs(self.http.query)

    async def body(self) -> bytes:
        body = await read_body(self.http, self.receive)
        await self.calls.admit_again()
        return body

    async def form(self) -> list[tuple[str, str]]:
        media_type = self.http.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        body = await self.body()
        if body and media_type != _FORM:
            raise Problem("unsupported_media_type", f"The parameters of a search are of type {_FORM}.")
        return _pairs(body)


def _pairs(encoded: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = f"the parameters must be valid UTF-8, and at most {MAX_PARAMETERS}"
        raise invalid([FieldError("$", BINDING, message)]) from None
