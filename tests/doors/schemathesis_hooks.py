"""What schemathesis runs beside its own: checks of ours, and a note of every answer for the test that started it."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response

# Rules that a schema cannot state: they look at two fields, at today's date, at who made a cursor, at the calendar, at
# the categories and neighbours of characters.
UNSTATABLE = {
    *((field, "characters") for field in ("firstName", "lastName", "phone", "email", "reason", "name")),
    ("cursor", "cursor"),
    ("to", "order"),
    ("to", "maxWindow"),
    ("dob", "notFuture"),
    ("$", "required"),  # an update names something to change
    ("$", "declined"),
}


@schemathesis.hook
def before_load_schema(context: HookContext, raw_schema: dict[str, Any]) -> None:
    """Only where the scheme is plain HTTP does schemathesis also try calls without a token and with a wrong one."""
    raw_schema["components"]["securitySchemes"]["clientCredentials"] = {"type": "http", "scheme": "bearer"}
    ids = {f"{kind}Id": iter(_ids(f"{kind}s")) for kind in ("patient", "slot", "appointment")}
    for entry in (entry for path in raw_schema["paths"].values() for entry in path.values()):
        # The practices under attack are no sandboxes: they refuse it whatever it says.
        entry["parameters"] = [each for each in entry["parameters"] if each["name"] != "Frontdesk-Simulate"]
        _name_what_exists(entry, ids)


def _ids(name: str) -> list[str]:
    return [json.loads(line) for line in Path(f"{name}.txt").read_text(encoding="utf-8").splitlines()]


def _name_what_exists(entry: dict[str, Any], ids: dict[str, Iterator[str]]) -> None:
    """Examples name records that exist and that no other example touches, so that every one of them succeeds."""
    for parameter in entry["parameters"]:
        if parameter["name"] in ids and "example" in parameter:
            parameter["example"] = next(ids[parameter["name"]])
        if parameter["name"] == "Idempotency-Key":
            parameter["example"] = entry["operationId"]
    for media in entry.get("requestBody", {"content": {}})["content"].values():
        media["example"] |= {name: next(ids[name]) for name in ids.keys() & media["example"].keys()}


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    with Path(os.environ["FRONTDESK_TEST_ANSWERS"]).open("a", encoding="utf-8") as file:
        file.write(f"{case.method} {case.operation.path} {response.status_code}\n")


@schemathesis.check
def only_unstatable_rules(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """Valid data is refused with 422 only for reasons that no schema can state."""
    if response.status_code != 422 or case.meta is None or not case.meta.generation.mode.is_positive:
        return None
    broken = {(error["field"], error["rule"]) for error in response.json()["errors"]}
    assert broken <= UNSTATABLE, f"valid data was refused: {sorted(broken - UNSTATABLE)}"
    return None


@schemathesis.check
def every_problem_is_complete(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """Also where a method does not exist: a problem document of ours, with the trace id of its header."""
    if response.status_code < 400:
        return None
    document: dict[str, Any] = response.json()
    assert response.headers["content-type"] == ["application/problem+json"]
    assert document["status"] == response.status_code
    assert document["type"].endswith(f"/errors.html#{document['code']}")
    (trace,) = response.headers["x-svc-trace-id"]
    assert re.fullmatch("[0-9a-f]{32}", trace)
    assert document["requestId"] == trace
    return None
