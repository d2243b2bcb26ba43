"""Generates the OpenAPI 3.1 document from OPERATIONS and the error catalogue."""

from collections.abc import Mapping, Sequence
from typing import get_args

from frontdesk.access.clients.scopes import every_scope
from frontdesk.doors.openapi_errors import (
    HEADERS,
    SCHEMAS,
    challenge_entry,
    codes_by_status,
    error_codes,
    header_references,
    problem_name,
    problem_response_entry,
    problem_schema,
    response_name,
)
from frontdesk.doors.rest import PREFIX
from frontdesk.engine.intents import MAX_KEY_LENGTH
from frontdesk.engine.sandbox import HEADER as SIMULATE
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.operations._records import Page
from frontdesk.operations._schemas import Schema, linked_schemas, plain_schema
from frontdesk.settings import Settings
from frontdesk.web.negotiation import OFFERED

SECURITY = "clientCredentials"

_DESCRIPTION = """\
A scheduling API for medical practices, for integrations and for agents that speak with patients.

**Getting a token.** Send your client id and secret as a form to `POST {url}/oauth/token` with
`grant_type=client_credentials`. The response contains `access_token`, `token_type` and `expires_in`; there are no
refresh tokens. Send `Authorization: Bearer <ACCESS_TOKEN>` with every call. The token determines the practice; requests
never name a practice. With `resource={url}/api` (RFC 8707) the token works at this API only. A token for another
resource is refused here.

**Writes.** With an agent's token every write takes two calls. The first changes nothing and answers 428 with a
`confirmationToken` and a `readBack`. The identical call plus that token executes the write once, however often it is
sent. A token of the integration grant writes with one call, and may send an `Idempotency-Key`.

**Names** of query parameters and JSON properties are case-insensitive. Unknown names are refused. A null field counts
as absent, except that `"email": null` in an update removes the e-mail. Responses omit null fields.

**Errors** are RFC 7807 problem documents with a stable `code`, described at {docs}/errors.html.

The same operations are tools of the Model Context Protocol at `POST {url}/mcp`.
"""


def openapi_document(settings: Settings, extensions: Sequence[Operation] = ()) -> dict[str, object]:
    """All operations, and these extensions."""
    operations = (*OPERATIONS, *extensions)
    groups = dict.fromkeys(operation.group for operation in operations if operation.group is not None)
    docs_url = settings.documentation_url
    components: dict[str, dict[str, object]] = {
        "securitySchemes": {SECURITY: _security_scheme(settings, operations)},
        "schemas": dict(SCHEMAS),
        "responses": {},
        "examples": {},
        "headers": dict(HEADERS),
    }
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        entry = _operation_entry(operation, components, docs_url)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Practice Scheduling API",
            "version": "v1",
            "summary": "A scheduling API for medical practices, safe to give to integrations and AI agents.",
            "description": _DESCRIPTION.format(url=settings.public_url, docs=docs_url),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": settings.public_url + PREFIX}],
        "externalDocs": {"description": "Every error code", "url": f"{docs_url}/errors.html"},
        "tags": [{"name": group.name, "description": group.description} for group in groups],
        "paths": paths,
        "components": components,
    }


def body_schema(operation: Operation) -> Schema | None:
    """The schema of the request body, or None without a body. Optional fields may be null."""
    if operation.method == "GET":
        return None
    schema = plain_schema(operation.input)
    required = [name for name in schema.get("required", []) if not _in_path(operation, name)]
    properties: dict[str, Schema] = {
        name: field if name in required else {**field, "type": [str(field["type"]), "null"]}
        for name, field in schema["properties"].items()
        if not _in_path(operation, name)
    }
    body: Schema = {**schema, "properties": properties, "required": required}
    if operation.method == "PATCH":
        body["minProperties"] = 1
    return body


def body_example(operation: Operation) -> dict[str, object]:
    return {name: value for name, value in operation.example.items() if not _in_path(operation, name)}


def parameters(operation: Operation) -> list[dict[str, object]]:
    """Path and query parameters, and the headers Frontdesk-Simulate and Idempotency-Key."""
    schema = plain_schema(operation.input)
    found = []
    for name, field in schema.get("properties", {}).items():
        in_path = _in_path(operation, name)
        if not in_path and operation.method != "GET":
            continue
        found.append(
            {
                "name": name,
                "in": "path" if in_path else "query",
                "required": name in schema.get("required", []),
                "schema": {key: value for key, value in field.items() if key != "description"},
                **({"description": field["description"]} if "description" in field else {}),
                **({"example": operation.example[name]} if name in operation.example else {}),
            }
        )
    if operation.kind == "write":
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": r"\S"},
                "description": "For tokens of the integration grant: within 24 hours, the same key with the same "
                "request returns the stored result; with another request it is a conflict. Agents need none.",
                "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
            }
        )
    found.append(
        {
            "name": SIMULATE,
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": "For sandbox practices only: the error code to simulate, with its real side effects; every "
            "code of the catalogue is possible. At any other practice a call with this header, whatever its value, "
            f"answers 422 `validation` (field `{SIMULATE}`, rule `unknown`) once its token and scope were checked. The "
            "rest of the call is not read, nothing is executed, and a confirmation token stays valid.",
        }
    )
    return found


def _operation_entry(
    operation: Operation, components: dict[str, dict[str, object]], docs_url: str
) -> dict[str, object]:
    entry: dict[str, object] = {
        "operationId": operation.operation_id,
        "tags": [operation.group.name] if operation.group is not None else [],
        "summary": operation.title,
        "description": operation.description,
        "security": [{SECURITY: [] if operation.scope is None else [operation.scope]}],
        "parameters": parameters(operation),
    }
    body = body_schema(operation)
    if body is not None:
        name = _capitalised(operation) + "Request"
        components["schemas"][name] = body
        media = {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": body_example(operation)}
        entry["requestBody"] = {
            "description": "`text/json` and `application/*+json` are accepted, too.",
            "required": bool(body["required"]),
            "content": {"application/json": media},
        }
    answers: dict[str, object] = {str(operation.success): _success(operation, components)}
    for status, codes in codes_by_status(error_codes(operation)).items():
        if status == 428:
            answers[str(status)] = challenge_entry(operation, docs_url)
            continue
        shared = response_name(status, codes)
        components["schemas"].setdefault(problem_name(status, codes), problem_schema(status, codes))
        components["responses"].setdefault(shared, problem_response_entry(status, codes, docs_url))
        answers[str(status)] = {"$ref": f"#/components/responses/{shared}"}
    entry["responses"] = answers
    return entry


def _success(operation: Operation, components: dict[str, dict[str, object]]) -> dict[str, object]:
    name = _answer_name(operation)
    schemas = linked_schemas(operation.output, name, lambda each: f"#/components/schemas/{_published(each)}")
    components["schemas"].update({_published(each): schema for each, schema in schemas.items()})
    components["examples"][operation.operation_id] = {
        "summary": operation.title,
        "value": operation.example_answer,
    }
    media = {
        "schema": {"$ref": f"#/components/schemas/{name}"},
        "examples": {"answer": {"$ref": f"#/components/examples/{operation.operation_id}"}},
    }
    entry: dict[str, object] = {
        "description": "Created." if operation.success == 201 else "Success.",
        "headers": header_references(),
        "content": dict.fromkeys(OFFERED, media),
    }
    if operation.kind == "write":
        entry["links"] = _links(operation)
    return entry


def _links(operation: Operation) -> dict[str, object]:
    """OpenAPI links from the id of a written record to its operations."""
    written = [name for name in plain_schema(operation.output)["properties"] if name.endswith("Id")]
    return {
        other.operation_id: {"operationId": other.operation_id, "parameters": {name: f"$response.body#/{name}"}}
        for name in written
        for other in OPERATIONS
        if _in_path(other, name)
    }


def _answer_name(operation: Operation) -> str:
    record = operation.output
    if issubclass(record, Page):
        (item,) = get_args(record.model_fields["items"].annotation)
        return _published(item.__name__) + "Page"
    if record.__name__ != "Output":
        return _published(record.__name__)
    name = _capitalised(operation)
    plain = name.removeprefix("Get")
    # Some generators fail for a record with the name of one of its fields.
    return plain if plain != name and plain.lower() not in record.model_fields else f"{name}Result"


def _published(name: str) -> str:
    return name.removesuffix("Record")


def _capitalised(operation: Operation) -> str:
    return operation.operation_id[0].upper() + operation.operation_id[1:]


def _in_path(operation: Operation, name: str) -> bool:
    return f"{{{name}}}" in operation.path


def _security_scheme(settings: Settings, operations: Sequence[Operation]) -> Mapping[str, object]:
    titles = {
        scope: [operation.title for operation in operations if operation.scope == scope] for scope in every_scope()
    }
    needed = {scope: ", ".join(each) for scope, each in titles.items() if each}
    return {
        "type": "oauth2",
        "description": "Client credentials, provisioned by the practice. Any valid token may call getCapabilities.",
        "flows": {"clientCredentials": {"tokenUrl": f"{settings.public_url}/oauth/token", "scopes": needed}},
    }
