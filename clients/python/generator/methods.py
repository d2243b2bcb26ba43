"""The client: one method per operation."""

_CLIENT_IMPORTS = """
from datetime import date

from frontdesk_client import records
from frontdesk_client._async.pages import AsyncPage
from frontdesk_client._async.proposals import AsyncProposal
from frontdesk_client._async.session import AsyncSession
from frontdesk_client._wire import Request, in_path, new_key
"""
_CLIENT_DOCUMENTATION = """Calls a practice's calendar: one method per operation, in the practice of the credentials.

    Writes return a proposal, and `confirm()` executes it. Lists return a page that can be iterated over to the end.
    Whatever fails raises a FrontdeskError."""


def _client(document: Schema) -> str:
    schemas = document["components"]["schemas"]
    methods = [_method(*operation, schemas) for operation in _operations(document)]
    documentation = f'class AsyncFrontdesk(AsyncSession):\n    """{_CLIENT_DOCUMENTATION}\n    """\n'
    return "\n".join([_head("One method per operation.", _CLIENT_IMPORTS), documentation, *methods])


def _method(verb: str, path: str, entry: Schema, schemas: Schema) -> str:
    answer = schemas[_answer(entry)]
    if _is_page(answer):
        item = _name(answer["properties"]["items"]["items"])
        result, call = f"AsyncPage[records.{item}]", "_read_page"
    elif "428" in entry["responses"]:
        item = _answer(entry)
        result, call = f"AsyncProposal[records.{item}]", "_propose"
    else:
        item = _answer(entry)
        result, call = f"records.{item}", "_read"

    arguments: dict[str, tuple[str, bool]] = {}  # type and whether it is required, by the name on the wire
    of_query: list[str] = []
    for parameter in entry["parameters"]:
        arguments[parameter["name"]] = (_type(parameter["schema"]), parameter["required"])
        if parameter["in"] == "query":
            of_query.append(parameter["name"])
    body = schemas[_name(entry["requestBody"]["content"]["application/json"]["schema"])] if "requestBody" in entry else {}
    for wire, field in body.get("properties", {}).items():
        arguments[wire] = (_type(field), wire in body["required"])

    ordered = sorted(arguments.items(), key=lambda item: (not item[1][1], item[0] in ("confirmationToken", _KEY)))
    signature = [f"{_argument(wire)}: {kind if given else f'{kind} | None = None'}" for wire, (kind, given) in ordered]
    request = [f'"{verb.upper()}"', _address(path)]
    for part, names in (("query", of_query), ("body", body.get("properties", []))):
        if names:
            entries = ", ".join(f'"{wire}": {_argument(wire)}' for wire in names)
            request.append(f"{part}={{{entries}}}")
    if _KEY in arguments:
        request.append(f"idempotency_key={_argument(_KEY)} or new_key()")
    stars = f", *, {', '.join(signature)}" if signature else ""
    return (
        f"    async def {_snake(entry['operationId'])}(self{stars}) -> {result}:\n"
        f"{_docstring(entry['summary'] + '.', 8, entry['description'])}\n"
        f"        request = Request({', '.join(request)})\n"
        f"        return await self.{call}(request, records.{item}.from_json)\n"
    )


_KEY = "Idempotency-Key"


def _address(path: str) -> str:
    filled = re.sub(r"\{(\w+)\}", lambda found: f"{{in_path({_argument(found[1])})}}", path)
    return f'"{path}"' if filled == path else f'f"{filled}"'


def _argument(wire: str) -> str:
    name = _snake(wire)
    return f"{name}_" if keyword.iskeyword(name) else name


