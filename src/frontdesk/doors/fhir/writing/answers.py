"""The answer to a write that was executed."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.addresses import Resource, fhir_id
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.served import SERVED
from frontdesk.doors.fhir.versions import version_headers, versioned
from frontdesk.doors.fhir.writing.requests import prefers_minimal
from frontdesk.engine.external_identifiers import Identifier


class WrittenResource(NamedTuple):
    kind: str
    subject: str  # our id
    status: int
    identifiers: Sequence[Identifier] = ()
    replaces: bool = False  # the identifiers that the client gave before


async def reply(request: FhirRequest, written: WrittenResource) -> Reply:
    """The resource as it is now, without it if the client prefers so or may not read it. Whatever fails here, the write
    was executed."""
    calls, resource_id = request.calls, fhir_id(written.subject)
    resource: Resource | None = None
    with contextlib.suppress(Problem):
        await calls.identifiers.settle(
            calls.caller, written.kind, written.identifiers, written.subject, replaces=written.replaces
        )
    if not prefers_minimal(request.http):
        with contextlib.suppress(Problem):
            resource = versioned(await SERVED[written.kind].read(calls, resource_id))
    headers = [] if resource is None else version_headers(resource)
    if written.status == 201:
        headers.append((b"location", f"{request.base}/{written.kind}/{resource_id}".encode()))
    return Reply(written.status, resource, headers)
