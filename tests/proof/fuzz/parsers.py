"""What strangers reach: each parser takes bytes, returns what tells its answers apart, and raises nothing."""

import asyncio
import gzip
import io
import json
import tarfile
import zlib
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import standardwebhooks
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontdesk.access.clients import assertions, public_keys
from frontdesk.access.clients.smart_scopes import grant_smart_scopes
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.clients.validation import ClientError
from frontdesk.access.limits.addresses import network_of, trusted_proxy_check
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.cursors import Cursors
from frontdesk.domain.errors import Problem
from frontdesk.domain.slot_ids import SlotIds
from frontdesk.doors import oauth
from frontdesk.doors.fhir.fhir_request import _pairs as fhir_pairs
from frontdesk.doors.fhir.parameters import read_query
from frontdesk.doors.fhir.served import SERVED
from frontdesk.doors.fhir.writing.json_patch import patched
from frontdesk.doors.mcp.messages import Rejection, read_message
from frontdesk.doors.rest import Routes, _query_pairs
from frontdesk.engine.arguments import from_http, from_tool, input_names, read_arguments
from frontdesk.features.calendar_feeds.reading import _calendar
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.outbound.webhooks.signing import secret_text, signed_headers
from frontdesk.practice_file import PracticeFileError, dump, parse
from frontdesk.settings import Settings
from frontdesk.store.embedded.backup_file import Backup
from frontdesk.store.embedded.table_data import BackupError
from frontdesk.web.bodies import require_json_body
from frontdesk.web.http_request import request_of
from frontdesk.web.negotiation import response_type
from tests.support.world import PRACTICE

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
TODAY = date(2026, 11, 16)
URL = "http://test"
SETTINGS = Settings(base_url=URL)


LOOP = asyncio.new_event_loop()


async def _nothing() -> None:
    pass


_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_ROUTES = Routes(OPERATIONS)
_TRUSTS = trusted_proxy_check(["10.0.0.0/8", "2001:db8::/32"])
_CURSORS = Cursors([b"k" * 32], 1)
_SLOT_IDS = SlotIds(b"k" * 32)
_SECRET = b"s" * 32
CURSOR = _CURSORS.encode(["a"], ["2026-11-16", "apt_1"]).encode()
SLOT_ID = _SLOT_IDS.encode_many(10, 1, 21, 101, 15, [29_000_000])[0].encode()
_INCLUDES = {kind.name: kind.includes for kind in SERVED.values()}
_DIRECTORY = parse(PRACTICE.replace("SLUG", "harbor"), today=TODAY).directory
_BOOKED = Appointment("apt_1", "pat_1", 10, 1, 21, 101, "booked", NOW, NOW + timedelta(minutes=15), NOW, NOW)
_APPOINTMENT = json.dumps(
    {"resourceType": "Appointment", "id": "1", "status": "booked", "slot": [{"reference": "Slot/1"}]}
)


KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
_RING = SimpleNamespace(verification_keys={"one": KEY.public_key()}, refresh=_nothing)
_TOKENS = Tokens(_RING, SETTINGS, clock=lambda: NOW)  # type: ignore[arg-type]


def _signs(problem: Problem) -> tuple[Any, ...]:
    assert 400 <= problem.status < 500, f"{problem.status} {problem.code}"
    return problem.code, *sorted({(error.field, error.rule) for error in problem.errors})


# The REST door


def _ids(operation: Operation) -> dict[str, str]:
    return dict.fromkeys(input_names(operation).path.values(), "1")


def read_query_text(text: bytes) -> object:
    name, _, query = text.partition(b"?")
    operation = _BY_NAME.get(name.decode("latin-1"), OPERATIONS[0])
    try:
        read_arguments(operation, from_http(operation, _ids(operation), _query_pairs(query), b""), TODAY)
    except Problem as problem:
        return _signs(problem)
    return "read"


def read_body(text: bytes) -> object:
    name, _, body = text.partition(b"\n")
    operation = _BY_NAME.get(name.decode("latin-1"), OPERATIONS[0])
    try:
        read_arguments(operation, from_http(operation, _ids(operation), [], body), TODAY)
    except Problem as problem:
        return _signs(problem)
    return "read"


def read_route(text: bytes) -> object:
    method, _, path = text.decode("latin-1").partition(" ")
    try:
        operation, ids = _ROUTES.find(method, path)
        read_arguments(operation, from_http(operation, ids, [], b"{}"), TODAY)
    except Problem as problem:
        return _signs(problem)
    return operation.name


def read_headers(text: bytes) -> object:
    lines = [line.partition(b": ") for line in text.split(b"\r\n")]
    raw = [(name.lower(), value) for name, _, value in lines]
    scope = {"headers": raw, "method": "GET", "path": "/", "query_string": b""}
    request = request_of(scope)
    assert len(request.request_id) == 32
    answers: list[Any] = [request.token is None]
    for act in (
        lambda: response_type(request.headers.get(b"accept")),
        lambda: require_json_body(request.headers.get(b"content-type"), b"x"),
    ):
        try:
            answers.append(act())
        except Problem as problem:
            answers.append(problem.code)
    return tuple(answers)


def read_addresses(text: bytes) -> object:
    peer = text.decode("latin-1")
    return network_of(peer)[:1], _TRUSTS(peer)


# Opaque texts


def read_cursor(text: bytes) -> object:
    return _CURSORS.decode(["a"], text.decode("utf-8", "replace")) is None


def read_slot_id(text: bytes) -> object:
    return _SLOT_IDS.decode(text.decode("utf-8", "replace")) is None


def read_token(text: bytes) -> object:
    try:
        return LOOP.run_until_complete(_TOKENS.verify(text.decode("latin-1"))).grant
    except Problem as problem:
        return problem.detail


# MCP


def read_mcp(text: bytes) -> object:
    head, _, body = text.partition(b"\n\n")
    raw = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in head.split(b"\n"))]
    try:
        message = read_message(body, dict(raw), raw)
    except Rejection as rejection:
        return rejection.code, rejection.status
    arguments = message.params.get("arguments", {})
    name = message.params.get("name")
    if not isinstance(arguments, dict) or not isinstance(name, str) or name not in _BY_NAME:
        return message.modern, type(name).__name__
    try:
        read_arguments(_BY_NAME[name], from_tool(_BY_NAME[name], arguments, message.repeated), TODAY)
    except Problem as problem:
        return _signs(problem)
    return name


# OAuth


def read_oauth(text: bytes) -> object:
    authorization, _, body = text.partition(b"\n")
    received = iter([{"type": "http.request", "body": body}])

    async def receive() -> Any:
        return next(received)

    scope = {"type": "http", "headers": [(b"content-type", b"application/x-www-form-urlencoded")],
             "method": "POST", "path": "/oauth/token", "query_string": b""}  # fmt: skip
    request = oauth.Request(scope, receive)
    try:
        form = LOOP.run_until_complete(oauth.read_form(request))
        given = authorization.decode("latin-1") or None
        if "client_assertion_type" in form:
            oauth._assertion(form, given, _TOKENS, SETTINGS)
        else:
            oauth._credentials(form, given)
        oauth._resources(form.get("resource", []), SETTINGS)
        return grant_smart_scopes(form.get("scope", [""])[0].split(" "), ("patients:read", "appointments:book"))[0]
    except Problem as problem:
        return _signs(problem)


def read_assertion(text: bytes) -> object:
    try:
        assertions.read_assertion(text.decode("latin-1"), f"{URL}/oauth/token", NOW)
    except Problem as problem:
        return problem.detail
    return "read"


def read_jwks(text: bytes) -> object:
    try:
        return len(public_keys.read_jwks(text)["keys"])
    except ClientError as error:
        return str(error)


# FHIR


def read_fhir_search(text: bytes) -> object:
    kind, _, query = text.partition(b"?")
    served = SERVED.get(kind.decode("latin-1"), SERVED["Slot"])
    try:
        read_query(served.name, served.parameters, _INCLUDES, fhir_pairs(query), f"{URL}/fhir", strict=False)
    except Problem as problem:
        return _signs(problem)
    return "read"


def read_fhir_patch(text: bytes) -> object:
    try:
        patched(json.loads(_APPOINTMENT), json.loads(text.decode("utf-8", "replace")))
    except (Problem, ValueError, RecursionError) as error:
        return type(error).__name__
    return "patched"


# Files


def read_practice(text: bytes) -> object:
    try:
        file = parse(text.decode("utf-8", "replace"), today=TODAY)
    except PracticeFileError as error:
        return len(error.errors)
    assert parse(dump(file), today=TODAY) == file, "the written file says something else"
    return "read"


def read_calendar_text(text: bytes) -> object:
    """Names from outside in a calendar feed: nothing of them becomes a line of its own."""
    name = text.decode("utf-8", "replace")
    feed = _calendar(_DIRECTORY, 10, [_BOOKED], {_BOOKED.patient_id: name})
    lines = feed.replace(b"\r\n ", b"").split(b"\r\n")
    assert sum(line.startswith(b"BEGIN:VEVENT") for line in lines) == 1, feed
    assert not any(line.startswith((b"ATTENDEE", b"URL", b"ATTACH")) for line in lines), feed
    return len(lines)


def read_backup(tar: bytes) -> object:
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            backup = Backup(archive, [])
            backup.check()
            return len(backup.manifest.tables)
    except (BackupError, tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        return type(error).__name__


def read_webhook(text: bytes) -> object:
    """A signature holds for the body that was signed, and for no other."""
    signature, _, body = text.partition(b"\n")
    headers = signed_headers([_SECRET], "evt_1", datetime.now(UTC), body)
    receiver = standardwebhooks.Webhook(secret_text(_SECRET))
    forged = {**headers, "webhook-signature": signature.decode("latin-1")}
    try:
        receiver.verify(body, headers, json_parse=False)
        receiver.verify(body, forged, json_parse=False)
    except (standardwebhooks.WebhookVerificationError, ValueError) as error:
        return type(error).__name__
    raise AssertionError("a forged signature was accepted")
