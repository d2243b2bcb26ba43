"""Answers of a FHIR server: status, resource, and what they mean for a read."""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeGuard

import httpx
import orjson

from frontdesk.systems.fhir.resources.elements import Resource, inside, listed
from frontdesk.systems.port import Misconfigured, SystemUnavailable

MAX_ANSWER_BYTES = 20 * 1024 * 1024
_MAX_RETRY_AFTER = 120
_TRANSIENT = (408, 425, 429)  # client errors that pass by themselves


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    resource: Resource | None  # None: no readable resource
    retry_after: int = 2
    is_foreign: bool = False  # a body that no FHIR server sends, such as a proxy's page

    @property
    def found(self) -> Resource | None:
        return self.resource if 200 <= self.status < 300 else None

    @property
    def refuses_question(self) -> bool:
        """Whether the server understood the question and refused it: nothing is wrong with its address."""
        return self.status in (400, 422) and (self.resource or {}).get("resourceType") == "OperationOutcome"

    @property
    def misconfiguration(self) -> str | None:
        """What an operator has to correct, or None if the answer is as it should be or may be so on a retry."""
        if 300 <= self.status < 500 and self.status not in _TRANSIENT:
            return f"status {self.status}"
        if self.is_foreign and self.status < 300:
            return f"status {self.status} and something other than FHIR JSON"
        return None

    def readable(self, request: str) -> Resource:
        """The resource of a read. `request` names the read in what the operator is told."""
        if self.misconfiguration is not None:
            raise Misconfigured(f"the server answered the {request} with {self.misconfiguration}")
        if self.found is None:
            raise SystemUnavailable(self.retry_after)
        return self.found


async def receive(response: httpx.Response) -> Answer:
    if "," in response.headers.get("content-encoding", ""):  # compressed twice, kilobytes may expand to gigabytes
        raise httpx.ReadError("the answer is compressed more than once")
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise httpx.ReadError("the answer is too large")
    resource = _resource(body)
    return Answer(response.status_code, resource, _retry_after(response), resource is None and bool(body))


def batch_answers(bundle: Resource | None, number: int) -> list[Answer] | None:
    """The answers to the requests of a batch, or None if the server did not answer each of them."""
    entries = (bundle or {}).get("entry")
    if not isinstance(entries, list) or len(entries) != number:
        return None
    answers = []
    for entry in entries:
        response = inside(entry, "response") if isinstance(entry, dict) else {}
        status = re.match(r"[1-5]\d\d", str(response.get("status")))
        if status is None:
            return None
        resource = entry.get("resource") or response.get("outcome")
        answers.append(Answer(int(status[0]), resource if _is_resource(resource) else None))
    return answers


def operation_result(resource: Resource) -> Resource:
    """The result of an operation: servers send it alone or as the first output parameter."""
    outputs = [each["resource"] for each in listed(resource.get("parameter")) if _is_resource(each.get("resource"))]
    return outputs[0] if outputs else resource


def first_record(kind: str, resource: Resource) -> Resource:
    """The record of that type in what an operation or a transaction returned, else its OperationOutcome."""
    result = operation_result(resource)
    found = [entry["resource"] for entry in listed(result.get("entry")) if _is_resource(entry.get("resource"))]
    by_type = {each["resourceType"]: each for each in reversed(found)}
    return by_type.get(kind) or by_type.get("OperationOutcome") or result


def _resource(body: bytearray) -> Resource | None:
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if _is_resource(document) else None


def _is_resource(document: object) -> TypeGuard[Resource]:
    return isinstance(document, dict) and isinstance(document.get("resourceType"), str)


def _retry_after(response: httpx.Response) -> int:
    """RFC 9110: a number of seconds, or a date."""
    text = response.headers.get("Retry-After", "").strip()
    seconds = 2.0
    if re.fullmatch(r"[0-9]{1,9}", text):
        seconds = float(text)
    elif text:
        with suppress(ValueError, TypeError):
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    return int(min(max(seconds, 1), _MAX_RETRY_AFTER))
