"""The FHIR door's transport: everything under /fhir/R4, as an ASGI application."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import orjson
from starlette.types import Receive, Scope, Send

from frontdesk.access.limits.rate_limiter import RateLimiter
from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.addresses import FHIR_PREFIX, base_url
from frontdesk.doors.fhir.bundles import Searches
from frontdesk.doors.fhir.calls import Calls
from frontdesk.doors.fhir.fhir_request import FhirRequest, Reply
from frontdesk.doors.fhir.outcomes import outcome_document
from frontdesk.doors.fhir.pending import pending_with, type_operations
from frontdesk.doors.fhir.resource_types import ResourceType
from frontdesk.doors.fhir.served import SERVED
from frontdesk.doors.fhir.smart import smart_configuration
from frontdesk.doors.fhir.statement import capability_statement
from frontdesk.doors.fhir.versions import is_unchanged, version_headers, versioned
from frontdesk.doors.fhir.writing.appointments import BOOK, CANCEL, cancel_appointment
from frontdesk.doors.fhir.writing.booking import book
from frontdesk.doors.fhir.writing.finding import PROPOSAL, find_pairs, find_parameters
from frontdesk.doors.fhir.writing.json_patch import patched, require_patch
from frontdesk.doors.fhir.writing.requests import read_document, version_matches
from frontdesk.doors.fhir.writing.table import OPERATIONS, WRITTEN, ResourceWrites
from frontdesk.engine.execute import Engine
from frontdesk.engine.external_identifiers import ExternalIdentifiers
from frontdesk.operations import Operation
from frontdesk.settings import Settings
from frontdesk.web.error_handlers import unexpected_problem
from frontdesk.web.http_request import RawHeaders, request_of, send_response
from frontdesk.web.request_log import RequestLog
from frontdesk.web.responses import TRACE, door_problem

Handler = Callable[[FhirRequest], Awaitable[Reply]]


class FhirDoor:
    def __init__(
        self,
        engine: Engine,
        limiter: RateLimiter,
        identifiers: ExternalIdentifiers,
        settings: Settings,
        requests: RequestLog,
    ) -> None:
        self._engine = engine
        self._limiter = limiter
        self._identifiers = identifiers
        self._settings = settings
        self._requests = requests
        self._base = base_url(settings)
        self._searches = Searches(SERVED, self._base)
        self._statement = capability_statement(SERVED.values(), settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = request_of(scope)
        calls = Calls(self._engine, self._limiter, http, self._identifiers)
        request = FhirRequest(http, calls, receive, self._base)
        handlers = self._handlers(http.path)
        request_id, code = http.request_id, None
        try:
            reply = await _answer(request, handlers)
            status = reply.status
            headers, content = _written(request, reply)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected_problem(error, request_id)
            status, code = problem.status, problem.code
            headers, content = door_problem(
                problem, self._settings, request_id, FHIR_PREFIX, handlers, outcome_document
            )
        await send_response(send, http, status, headers, content)
        operation = request.calls.operation
        name = None if operation is None else operation.name
        self._requests.record("fhir", name, http.caller, http.method, status, code, http.began, request_id)

    def _handlers(self, path: str) -> Mapping[str, Handler]:
        """What answers a path, by method."""
        name, *rest = path.removeprefix(f"{FHIR_PREFIX}/").split("/")
        if name == "metadata" and not rest:
            return {"GET": self._metadata}
        if (name, rest) == (".well-known", ["smart-configuration"]):
            return {"GET": self._smart_configuration}
        kind, writes = SERVED.get(name), WRITTEN.get(name)
        if kind is None:
            return {}
        match rest:
            case []:
                create = {} if writes is None else {"POST": partial(_create, writes)}
                return {"GET": partial(self._search, kind), **create}
            case ["_search"]:
                return {"POST": partial(self._search, kind)}
            case ["$find"] if "find" in OPERATIONS.get(name, ()):
                return dict.fromkeys(("GET", "POST"), partial(self._find, None))
            case [schedule, "$find"] if name == "Schedule":
                return dict.fromkeys(("GET", "POST"), partial(self._find, schedule))
            case ["$book"] if "book" in OPERATIONS.get(name, ()):
                return {"POST": partial(_operate, BOOK, book)}
            case [resource_id, "$cancel"] if "cancel" in OPERATIONS.get(name, ()):
                return {"POST": partial(_cancel, resource_id)}
            case [operation] if name == "Appointment" and operation.removeprefix("$") in type_operations():
                found = type_operations()[operation.removeprefix("$")]
                return {"POST": partial(_operate, found.needs, found.run)}
            case [resource_id] if resource_id and not resource_id.startswith("$"):
                change = (
                    {} if writes is None else dict.fromkeys(("PUT", "PATCH"), partial(_change, writes, resource_id))
                )
                return {"GET": partial(_read, kind, resource_id), **change}
        return {}

    async def _metadata(self, request: FhirRequest) -> Reply:
        request.negotiate()
        return Reply(200, self._statement)

    async def _smart_configuration(self, request: FhirRequest) -> Reply:
        request.media_type = "application/json"
        return Reply(200, smart_configuration(self._settings))

    async def _search(self, kind: ResourceType, request: FhirRequest) -> Reply:
        await request.admit(kind.search_by)
        pairs = request.query()
        if request.http.method == "POST":
            pairs += await request.form()
        return Reply(200, await self._searches.bundle(kind, request.calls, pairs, strict=request.is_strict))

    async def _find(self, schedule: str | None, request: FhirRequest) -> Reply:
        await request.admit(PROPOSAL.search_by)
        given = request.query()
        if request.http.method == "POST":
            given += find_parameters(await read_document(request))
        pairs = await find_pairs(request.calls, given, schedule, self._base)
        return Reply(200, await self._searches.bundle(PROPOSAL, request.calls, pairs, strict=request.is_strict))


async def _answer(request: FhirRequest, handlers: Mapping[str, Handler]) -> Reply:
    if not handlers:
        raise Problem("not_found", "There is nothing at this path.")
    if request.http.method not in handlers:
        raise Problem("method_not_allowed")
    return await handlers[request.http.method](request)


async def _read(kind: ResourceType, resource_id: str, request: FhirRequest) -> Reply:
    await request.admit(kind.read_by)
    resource = versioned(await kind.read(request.calls, resource_id))
    headers = version_headers(resource)
    if is_unchanged(resource, request.http.headers):
        return Reply(304, None, headers)
    return Reply(200, resource, headers)


async def _create(writes: ResourceWrites, request: FhirRequest) -> Reply:
    await request.admit(writes.create_by)
    return await writes.create(request, await read_document(request))


async def _change(writes: ResourceWrites, resource_id: str, request: FhirRequest) -> Reply:
    """An update, or a patch of the resource as it is now."""
    await request.admit(writes.change_by)
    document = await read_document(request)
    if request.http.method == "PATCH":
        require_patch(request.http)
        current = versioned(await SERVED[writes.kind].read(request.calls, resource_id))
        document = patched(current, document)
        if version_matches(request.http, current):
            # What the patch does not name must not go back to how it was read here, if it is changed meanwhile.
            request.http.headers[b"if-match"] = dict(version_headers(current))[b"etag"]
    return await writes.change(request, resource_id, document)


async def _operate(
    operation: Operation, operate: Callable[[FhirRequest, object], Awaitable[Reply]], request: FhirRequest
) -> Reply:
    await request.admit(operation)
    return await operate(request, await read_document(request))


async def _cancel(resource_id: str, request: FhirRequest) -> Reply:
    pending = pending_with(resource_id)
    await request.admit(CANCEL if pending is None else pending.cancel_by)
    return await cancel_appointment(
        request, resource_id, await read_document(request, absent={"resourceType": "Parameters"})
    )


def _written(request: FhirRequest, reply: Reply) -> tuple[RawHeaders, bytes]:
    content = b"" if reply.resource is None else orjson.dumps(reply.resource)
    headers = [
        *reply.headers,
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (TRACE, request.http.request_id.encode()),
    ]
    if reply.resource is not None:
        headers += [
            (b"content-type", f"{request.media_type};charset=utf-8".encode()),
            (b"content-length", b"%d" % len(content)),
        ]
    return headers, content
