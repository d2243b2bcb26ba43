"""Generates the client with one method per operation."""

import re
from collections.abc import Iterable

from generator.document import Schema, answer_name, argument, is_page, name_of, operations, snake, type_of
from generator.writing import docstring, head

_IMPORTS = """
from datetime import date

from frontdesk_client import records
from frontdesk_client._async.pages import AsyncPage
from frontdesk_client._async.proposals import AsyncProposal
from frontdesk_client._async.session import AsyncSession
from frontdesk_client._wire import Request, in_path, new_key
from frontdesk_client.null import Null
"""
_CLASS = '''
class AsyncFrontdesk(AsyncSession):
    """Calls a practice's calendar: one method per operation, in the practice that the credentials belong to.

    Writes return a proposal, and `confirm()` executes it. Lists return a page that can be iterated over to the end.
    Whatever fails raises a FrontdeskError.
    """
'''
_TOKEN, _KEY = "confirmationToken", "Idempotency-Key"
_SIMULATE = "Frontdesk-Simulate"  # for testing only, so not an argument of the methods
_REMOVABLE = "x-null-removes"
_OF_WRITES = (
    "Returns a proposal. Its `confirm()` is that second call: nothing has to be sent again by hand.",
    "Credentials of the integration grant execute it at once, and only once for each `idempotency_key`; one is made up "
    "where none is given.",
)


def client(document: Schema) -> str:
    schemas = document["components"]["schemas"]
    methods = [_method(*operation, schemas) for operation in operations(document)]
    return "\n".join([head("One method per operation.", _IMPORTS), _CLASS, *methods])


def _method(verb: str, path: str, entry: Schema, schemas: Schema) -> str:
    answer = answer_name(entry)
    documentation = [entry["summary"] + ".", entry["description"]]
    if is_page(schemas[answer]):
        read = name_of(schemas[answer]["properties"]["items"]["items"])
        result, call = f"AsyncPage[records.{read}]", "_read_page"
    elif "428" in entry["responses"]:
        read = answer
        result, call = f"AsyncProposal[records.{read}]", "_propose"
        documentation += _OF_WRITES
    else:
        read = answer
        result, call = f"records.{read}", "_read"
    return (
        f"    async def {snake(entry['operationId'])}({_signature(entry, schemas)}) -> {result}:\n"
        f"{docstring(8, *documentation)}\n"
        f"        request = Request({', '.join(_request(verb, path, entry, schemas))})\n"
        f"        return await self.{call}(request, records.{read}.from_json)\n"
    )


def _signature(entry: Schema, schemas: Schema) -> str:
    """The method's signature: required arguments first, confirmation token and idempotency key last."""
    body = _body(entry, schemas)
    wanted = [each for each in entry["parameters"] if each["name"] != _SIMULATE]
    given = [(each["name"], type_of(each["schema"]), each["required"]) for each in wanted]
    given += [(wire, _body_type(field), wire in body["required"]) for wire, field in body["properties"].items()]
    given.sort(key=lambda each: (not each[2], each[0] in (_TOKEN, _KEY)))
    written = [f"{argument(wire)}: {kind}{'' if required else ' | None = None'}" for wire, kind, required in given]
    return ", ".join(["self", *(["*"] if written else []), *written])


def _body_type(field: Schema) -> str:
    return f"{type_of(field)} | Null" if field.get(_REMOVABLE) else type_of(field)


def _request(verb: str, path: str, entry: Schema, schemas: Schema) -> Iterable[str]:
    filled = re.sub(r"\{(\w+)\}", lambda found: f"{{in_path({argument(found[1])})}}", path)
    yield f'"{verb.upper()}"'
    yield f'"{path}"' if filled == path else f'f"{filled}"'
    query = [each["name"] for each in _parameters(entry) if each["in"] == "query"]
    for part, wires in (("query", query), ("body", _body(entry, schemas)["properties"])):
        if wires:
            members = ", ".join(f'"{wire}": {argument(wire)}' for wire in wires)
            yield f"{part}={{{members}}}"
    if any(each["name"] == _KEY for each in _parameters(entry)):
        yield f"idempotency_key={argument(_KEY)} or new_key()"


def _parameters(entry: Schema) -> list[Schema]:
    """Path and query parameters, and of the headers only Idempotency-Key."""
    return [each for each in entry["parameters"] if each["in"] != "header" or each["name"] == _KEY]


def _body(entry: Schema, schemas: Schema) -> Schema:
    if "requestBody" not in entry:
        return {"properties": {}, "required": []}
    found: Schema = schemas[name_of(entry["requestBody"]["content"]["application/json"]["schema"])]
    return found
