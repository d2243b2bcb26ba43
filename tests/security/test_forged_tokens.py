"""Forged, altered, stale and misplaced access tokens over real HTTP, at both doors: every one is unauthorized."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.security.real_server import RealServer

ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519: signatures are written modulo this
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_practice", "arguments": {}}}


def encoded(data: bytes | dict[str, Any]) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Forge:
    """Makes tokens as our own service would, with our own key, except for what it is told to change."""

    def __init__(self, server: RealServer, token: str) -> None:
        self.token = token
        self.head: dict[str, Any] = jwt.get_unverified_header(token)
        self.claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
        self.key = server.service.ring.signing_key.private
        self.signature = token.rpartition(".")[2]

    def signed(self, head: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """Claims that are None are left out."""
        header = {**self.head, **(head or {})}
        header = {name: value for name, value in header.items() if value is not ...}
        body = {name: value for name, value in {**self.claims, **claims}.items() if value is not None}
        text = f"{encoded(header)}.{encoded(body)}"
        return f"{text}.{encoded((key or self.key).sign(text.encode()))}"

    def resigned(self, head: dict[str, Any], sign: Callable[[bytes], bytes], **claims: Any) -> str:
        text = f"{encoded({**self.head, **head})}.{encoded({**self.claims, **claims})}"
        return f"{text}.{encoded(sign(text.encode()))}"

    def spliced(self, **claims: Any) -> str:
        """Other claims under the genuine signature."""
        head = self.token.partition(".")[0]
        return f"{head}.{encoded({**self.claims, **claims})}.{self.signature}"


@pytest.fixture(scope="module")
async def forge(server: RealServer) -> Forge:
    return Forge(server, await server.token())


@pytest.fixture(scope="module")
async def http(server: RealServer) -> AsyncIterator[httpx.AsyncClient]:
    async with server.http() as client:
        yield client


def unsigned(forge: Forge) -> dict[str, str]:
    forged = {}
    for alg in ("none", "None", "NONE", "nOnE", "", None, 0, ["EdDSA"]):
        for signature in ("", forge.signature, "AA"):
            head = encoded({**forge.head, "alg": alg})
            forged[f"alg {alg!r}, signature {signature[:4]!r}"] = f"{head}.{encoded(forge.claims)}.{signature}"
    head, body, signature = forge.token.split(".")
    forged["no signature"] = f"{head}.{body}."
    forged["no third part"] = f"{head}.{body}"
    forged["five parts"] = f"{head}..{body}.{signature}.x"
    return forged


def confused(forge: Forge) -> dict[str, str]:
    """The public key taken for a shared secret, in every spelling it is published in."""
    public = forge.key.public_key()
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    secrets = {"raw": raw, "pem": pem, "base64": base64.b64encode(raw), "base64url": encoded(raw).encode(), "none": b""}
    return {
        f"{alg} with {name}": forge.resigned({"alg": alg}, lambda text, s=secret, d=digest: hmac.digest(s, text, d))  # type: ignore[misc]
        for name, secret in secrets.items()
        for alg, digest in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512))
    }


def injected(forge: Forge) -> dict[str, str]:
    """Headers that tell the checker where to find the key."""
    own = Ed25519PrivateKey.generate()
    x = encoded(own.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": forge.head["kid"]}
    kids: list[Any] = [
        "../../../../dev/null", "/dev/null", "' OR '1'='1", "1; DROP TABLE sealed_key", "http://127.0.0.1/key", "\x00",
        "", "x" * 5000, None, 0, True, [forge.head["kid"]], {"kid": forge.head["kid"]}, forge.head["kid"].upper() + " ",
    ]  # fmt: skip
    forged = {f"kid {str(kid)[:20]!r}": forge.signed({"kid": kid}, own) for kid in kids}
    forged["no kid"] = forge.signed({"kid": ...}, own)
    forged["our kid, their key"] = forge.signed(key=own)
    forged["embedded jwk"] = forge.signed({"jwk": jwk}, own)
    forged["jku"] = forge.signed({"jku": "http://127.0.0.1:1/keys.json"}, own)
    forged["x5u"] = forge.signed({"x5u": "http://127.0.0.1:1/cert.pem", "x5c": [x]}, own)
    forged["critical"] = forge.signed({"crit": ["exp"], "b64": False})
    forged["another type"] = forge.signed({"typ": "JWT"})
    forged["an id token"] = forge.signed({"typ": "id+jwt"})
    forged["an untyped token"] = forge.signed({"typ": ...})
    return forged


def misclaimed(forge: Forge) -> dict[str, str]:
    """Our own key, and claims that it never signs."""
    now = int(time.time())
    url = forge.claims["iss"]
    changes: dict[str, dict[str, Any]] = {
        "another issuer": {"iss": "https://elsewhere.example"},
        "an issuer that starts alike": {"iss": url + ".evil.example"},
        "another audience": {"aud": "https://elsewhere.example"},
        "several audiences": {"aud": [url, "https://elsewhere.example"]},
        "a list of one audience": {"aud": [url]},
        "expired": {"iat": now - 7200, "exp": now - 3600},
        "just expired": {"iat": now - 3600, "exp": now - 1},
        "issued in the future": {"iat": now + 3600, "exp": now + 7200},
        "not valid yet": {"nbf": now + 3600},
        "expiry as text": {"exp": str(now + 3600)},
        "expiry without end": {"exp": 1e308},
        "expiry as an object": {"exp": {"$gt": 0}},
        "unknown grant": {"grant": "administrator"},
        "scopes as a list": {"scope": ["practices:read"]},
        "client as a list": {"sub": [forge.claims["sub"]]},
        "unknown client": {"sub": "fd_00000000000000000000"},
        "no client": {"sub": ""},
        **{f"without {name}": {name: None} for name in forge.claims if name != "client_id"},
    }
    return {name: forge.signed(**change) for name, change in changes.items()}


def altered(forge: Forge) -> dict[str, str]:
    """Genuine tokens that were touched."""
    head, body, signature = forge.token.split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    larger = raw[:32] + (int.from_bytes(raw[32:], "little") + ORDER).to_bytes(32, "little")
    forged = {
        "more scopes": forge.spliced(scope="practices:read patients:write"),
        "fewer scopes": forge.spliced(scope=""),
        "another practice": forge.spliced(practice="other"),
        "another grant": forge.spliced(grant="integration"),
        "a longer life": forge.spliced(exp=forge.claims["exp"] + 3600),
        "a malleable signature": f"{head}.{body}.{encoded(larger)}",
        "padding": f"{head}.{body}.{signature}==",
        "a space within": f"{head}. {body}.{signature}",
        "standard base64": f"{head}.{body}.{signature[:-2]}+/",
        "spare bits": f"{head}.{body}.{signature[:-1]}{chr(ord(signature[-1]) ^ 1)}",
        "twice": f"{forge.token},{forge.token}",
        "cut": forge.token[:-1],
        "enormous": forge.token + "A" * 20_000,
        "quoted": f'"{forge.token}"',
    }
    for at in range(0, len(forge.token), 37):
        other = "A" if forge.token[at] != "A" else "B"
        forged[f"character {at}"] = forge.token[:at] + other + forge.token[at + 1 :]
    return forged


async def refused(http: httpx.AsyncClient, authorization: str) -> None:
    for answer in (
        await http.get("/api/practice", headers={"Authorization": authorization}),
        await http.post("/mcp", json=CALL, headers={"Authorization": authorization}),
    ):
        assert answer.status_code == 401, answer.text
        assert answer.json()["code"] == "unauthorized"
        assert "resource_metadata=" in answer.headers["www-authenticate"]
        assert "ratelimit" not in answer.headers
        assert set(answer.json()) == {"type", "title", "status", "code", "detail", "requestId"}
        assert "Harbor" not in answer.text


async def test_the_genuine_token_is_accepted(http: httpx.AsyncClient, forge: Forge) -> None:
    for token in (forge.token, forge.signed(), forge.signed(jti="another")):
        answer = await http.get("/api/practice", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("attack", [unsigned, confused, injected, misclaimed, altered])
async def test_a_forged_token_is_unauthorized(
    http: httpx.AsyncClient, forge: Forge, server: RealServer, attack: Callable[[Forge], dict[str, str]]
) -> None:
    logged = len(server.log.read_text())  # others attack the same server
    for name, token in attack(forge).items():
        try:
            await refused(http, f"Bearer {token}")
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    assert '"level":"error"' not in server.log.read_text()[logged:]


async def test_a_token_of_another_node_with_other_keys_is_unauthorized(http: httpx.AsyncClient, forge: Forge) -> None:
    stranger = Ed25519PrivateKey.generate()
    await refused(http, f"Bearer {forge.signed({'kid': 'f' * 16}, stranger)}")


async def test_a_stripped_scope_is_missed_and_a_foreign_practice_is_forbidden(
    http: httpx.AsyncClient, forge: Forge
) -> None:
    """These our key has signed: the claims decide, and a claim alone moves nobody to another practice."""
    poor = await http.get("/api/practice", headers={"Authorization": f"Bearer {forge.signed(scope='slots:read')}"})
    assert (poor.status_code, poor.json()["code"]) == (403, "forbidden_scope")
    moved = await http.get("/api/practice", headers={"Authorization": f"Bearer {forge.signed(practice='other')}"})
    assert (moved.status_code, moved.json()["code"]) == (403, "forbidden_tenant")


async def test_a_token_counts_only_in_the_authorization_header(http: httpx.AsyncClient, forge: Forge) -> None:
    token = forge.token
    for answer in (
        await http.get("/api/practice", params={"access_token": token}),
        await http.get("/api/practice", headers={"Cookie": f"access_token={token}; Authorization=Bearer {token}"}),
        await http.get("/api/practice", headers={"X-Authorization": f"Bearer {token}"}),
        await http.get("/api/practice", headers={"Proxy-Authorization": f"Bearer {token}"}),
        await http.post("/api/patients/match", data={"access_token": token}),
        await http.post("/mcp", json={**CALL, "params": {**CALL["params"], "_meta": {"token": token}}}),  # type: ignore[dict-item]
    ):
        assert answer.status_code == 401
    for scheme in ("Basic", "Token", "DPoP", "JWT", "Bearer,Bearer"):
        await refused(http, f"{scheme} {token}")
