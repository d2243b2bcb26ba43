"""The parsers that strangers reach, each with inputs to begin with."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from frontdesk.operations import OPERATIONS
from tests.proof.fuzz import parsers
from tests.proof.fuzz.parsers import KEY, LOOP, NOW, URL
from tests.proof.fuzz.wire import Wire
from tests.support.world import PRACTICE


@dataclass(frozen=True)
class Target:
    run: Callable[[bytes], object]
    seeds: Sequence[bytes]
    words: Sequence[bytes] = ()


_SECONDS = int(NOW.timestamp())
_CLAIMS = {
    "iss": URL, "aud": URL, "sub": "cli_1", "client_id": "cli_1", "practice": "harbor", "scope": "patients:read",
    "grant": "agent", "iat": _SECONDS, "exp": _SECONDS + 3600, "jti": "j",
}  # fmt: skip
_TOKEN = jwt.encode(_CLAIMS, KEY, algorithm="EdDSA", headers={"kid": "one", "typ": "at+jwt"}).encode()
_EC_KEY = ec.derive_private_key(12345, ec.SECP384R1())
_ASSERTION = jwt.encode(
    {**_CLAIMS, "iss": "cli_1", "aud": f"{URL}/oauth/token", "exp": _SECONDS + 60},
    _EC_KEY,
    algorithm="ES384",
    headers={"kid": "one"},
).encode()
_KEYS = [
    {**ECAlgorithm.to_jwk(_EC_KEY.public_key(), as_dict=True), "kid": "one"},
    {"kty": "RSA", "n": "AQ", "e": "AQAB", "kid": "two"},
]
_TABLE = gzip.compress(b"1\tAda\n", mtime=0)
_MANIFEST = {
    "format": 2, "version": "1", "created_at": "2026-01-01T00:00:00Z", "migrations": {"1": "a"}, "sequences": {"s": 1},
    "secret_key": None, "tables": {"patient": {"columns": ["id", "name"], "rows": 1,
                           "data": {"sha256": hashlib.sha256(_TABLE).hexdigest(), "size": 6}}},
}  # fmt: skip


def _requests(kind: str) -> list[bytes]:
    """The published examples of the operations."""
    found = []
    for operation in OPERATIONS:
        given = {name: value for name, value in operation.example.items() if f"{{{name}}}" not in operation.path}
        if kind == "query" and operation.method == "GET":
            found.append(f"{operation.name}?{urlencode(given)}".encode())
        elif kind == "body" and operation.method != "GET":
            found.append(f"{operation.name}\n{json.dumps(given)}".encode())
        elif kind == "mcp":
            params = {"name": operation.name, "arguments": dict(operation.example)}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            found.append(b"mcp-protocol-version: 2025-11-25\n\n" + json.dumps(message).encode())
    return found


def _tar(members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", bufsize=512) as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return written.getvalue()[:4096]


_REQUEST = b"POST /api/appointments HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{}"
_CHUNKED = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
_HTTP_WORDS = (
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n",
    b"Connection: close\r\n", b"GET / HTTP/1.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x1e", b"0\r\n\r\n",
    b"Host: a\r\n", b" HTTP/1.1\r\n", b"ffffffffffffffff\r\n",
)  # fmt: skip
_NAMES = tuple(
    name.encode()
    for operation in OPERATIONS
    for name in (operation.name, *operation.input.model_json_schema().get("properties", {}))
)

TARGETS: dict[str, Target] = {
    "HTTP wire": Target(Wire(LOOP).run, [_REQUEST, _CHUNKED, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2], _HTTP_WORDS),
    "HTTP headers": Target(
        parsers.read_headers,
        [
            b"Accept: application/json;q=0.5, text/*\r\nContent-Type: application/json; charset=utf-8",
            b"Authorization: Bearer abc\r\ntraceparent: 00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01",
        ],
        (b";q=1.0", b"*/*", b", ", b"charset=utf-8", b"Accept: "),
    ),
    "addresses": Target(parsers.read_addresses, [b"10.0.0.1", b"2001:db8::1", b"::ffff:1.2.3.4", b"fe80::1%eth0"]),
    "paths": Target(parsers.read_route, [f"{each.method} /api{each.path}".encode() for each in OPERATIONS]),
    "query": Target(parsers.read_query_text, _requests("query"), _NAMES),
    "JSON bodies": Target(parsers.read_body, _requests("body"), _NAMES),
    "cursors": Target(parsers.read_cursor, [parsers.CURSOR]),
    "slot ids": Target(parsers.read_slot_id, [parsers.SLOT_ID]),
    "access tokens": Target(parsers.read_token, [_TOKEN], (b".", b"eyJ", b"=", b"e30")),
    "MCP messages": Target(parsers.read_mcp, _requests("mcp"), (*_NAMES, b'"_meta":{}', b'"id":null', b"tools/list")),
    "OAuth forms": Target(
        parsers.read_oauth,
        [
            b"\ngrant_type=client_credentials&client_id=cli_1&client_secret=s&scope=patients:read",
            b"Basic Y2xpXzE6cw==\ngrant_type=client_credentials&resource=http://test/mcp",
            b"\ngrant_type=client_credentials&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:"
            b"jwt-bearer&client_assertion=" + _ASSERTION + b"&scope=system/Appointment.rs",
        ],
        (b"grant_type=", b"&scope=", b"system/*.cruds", b"&client_id=", b"%3A"),
    ),
    "OAuth assertions": Target(parsers.read_assertion, [_ASSERTION, _TOKEN]),
    "key sets": Target(parsers.read_jwks, [json.dumps({"keys": _KEYS}).encode()]),
    "FHIR searches": Target(
        parsers.read_fhir_search,
        [
            b"Slot?start=ge2026-11-16&status=free&_count=5&schedule=Schedule/10-1",
            b"Appointment?patient=Patient/1&date=lt2026-12-01T10:00:00Z&_include=Appointment:patient",
            b"Patient?identifier=urn:x|1&family:exact=A&birthdate=1985-12-10",
        ],
        (b"_include:iterate=", b"&_sort=-date", b":not=", b"%7C", b"ge", b"sa9999-12-31T23:59:60Z", b"_summary=count"),
    ),
    "FHIR patches": Target(
        parsers.read_fhir_patch,
        [
            b'[{"op": "replace", "path": "/status", "value": "fulfilled"}, {"op": "add", "path": "/s/-", "value": {}}]',
            b'[{"op": "test", "path": "/slot/0/reference", "value": "Slot/1"}, {"op": "remove", "path": "/slot/0"}]',
        ],
        (b'"op": "move"', b'"from": "/slot"', b"/-", b"~1", b"~0"),
    ),
    "webhook signatures": Target(parsers.read_webhook, [b"v1,AAAA v1a,BBBB\n{}", b"v1,\n"], (b"v1,", b" ")),
    "practice files": Target(
        parsers.read_practice,
        [PRACTICE.replace("SLUG", "harbor").encode(), b'{"practice": {"slug": "harbor"}}'],
        (b"- ", b": ", b"&a ", b"*a", b"!!python/object ", b"? ", b"|\n", b"id: 1", b"patients:", b"%YAML 1\n"),
    ),
    "calendar feeds": Target(
        parsers.read_calendar_text, [b"Ada Lovelace", b"A\r\nATTENDEE:mailto:x@example.com", b"\xc2\x85\xe2\x80\xa8;,:"]
    ),
    "backup files": Target(
        parsers.read_backup,
        [_tar({"manifest.json": json.dumps(_MANIFEST).encode(), "manifest.mac": b"0" * 64, "patient.gz": _TABLE})],
        (b"ustar", b"manifest.json", b"\0" * 512, b"5", b"2", b"00000000000", b"L", b"x"),
    ),
}  # fmt: skip
