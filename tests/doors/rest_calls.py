"""What the tests of the REST door share: calls of every operation, and the log as it is written."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from frontdesk.logs import JsonLines
from frontdesk.operations import Operation
from frontdesk.operations._schemas import plain_schema

TRACE = "X-SVC-TRACE-ID"
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "+1 555 010 0199", "dob": "1985-12-10"}
MATCH = "/api/patients/match"


def path_of(operation: Operation, value: str) -> str:
    path = operation.path
    for name in plain_schema(operation.input).get("properties", {}):
        path = path.replace(f"{{{name}}}", value)
    return f"/api{path}"


async def example(client: httpx.AsyncClient, operation: Operation) -> httpx.Response:
    """The operation called with its own example."""
    path, rest_of_it = f"/api{operation.path}", {}
    for name, value in operation.example.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", str(value))
        else:
            rest_of_it[name] = value
    if operation.method == "GET":
        return await client.get(path, params=rest_of_it)
    return await client.request(operation.method, path, json=rest_of_it)


@contextmanager
def log_lines() -> Iterator[list[dict[str, Any]]]:
    """What the service would write to its log, as it would write it; complete when the block ends."""
    written: list[dict[str, Any]] = []
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        written += [json.loads(line) for line in stream.getvalue().splitlines()]
