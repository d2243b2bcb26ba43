"""Forged, altered and misused tokens: everything but our own is refused, whatever it says about itself."""

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.ring import KeyRing
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock

URL = "https://desk.example"


def good_claims(clock: StoppedClock, **changes: Any) -> dict[str, Any]:
    now = int(clock.now.timestamp())
    claims = {
        "iss": URL,
        "aud": URL,
        "sub": "fd_0123456789abcdefghij",
        "practice": "riverside",
        "scope": "slots:read",
        "grant": "agent",
        "iat": now,
        "exp": now + 3600,
        "jti": "one",
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not None}


def signed(ring: KeyRing, claims: dict[str, Any], **headers: Any) -> str:
    key = ring.signing_key
    return jwt.encode(claims, key.private, algorithm="EdDSA", headers={"kid": key.kid, "typ": "at+jwt", **headers})


async def refusal(tokens: Tokens, token: str) -> str:
    with pytest.raises(Problem) as raised:
        await tokens.verify(token)
    assert raised.value.code == "unauthorized"
    return raised.value.detail


async def test_an_expired_token_is_refused_at_first_sight(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    now = int(clock.now.timestamp())
    assert "expired" in await refusal(tokens, signed(ring, good_claims(clock, iat=now - 3600, exp=now)))


async def test_a_token_from_the_future_is_refused(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    now = int(clock.now.timestamp())
    for claim in ("iat", "nbf"):
        await tokens.verify(signed(ring, good_claims(clock, **{claim: now + 60})))
        await refusal(tokens, signed(ring, good_claims(clock, **{claim: now + 61})))


async def test_a_well_made_token_is_accepted_so_that_the_refusals_below_mean_something(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    assert (await tokens.verify(signed(ring, good_claims(clock)))).scopes == {"slots:read"}


async def test_an_unsigned_token_is_refused(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    header, payload, signature = signed(ring, good_claims(clock)).split(".")
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        forged = {**json.loads(base64.urlsafe_b64decode(header + "==")), "alg": algorithm}
        unsigned = f"{_encode(forged)}.{payload}."
        for token in (unsigned, unsigned + signature, unsigned + "A" * 86):
            await refusal(tokens, token)


async def test_the_public_key_used_as_a_shared_secret_is_refused(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    public = ring.signing_key.private.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for algorithm, hashed in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
        header = {"alg": algorithm, "kid": ring.signing_key.kid, "typ": "at+jwt"}
        head = f"{_encode(header)}.{_encode(good_claims(clock))}"
        for secret in (public.public_bytes_raw(), pem, json.dumps(ring.jwks()["keys"][0]).encode()):
            await refusal(tokens, f"{head}.{_base64(hmac.digest(secret, head.encode(), hashed))}")


async def test_a_token_of_another_key_is_refused_whatever_it_calls_itself(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    stranger = Ed25519PrivateKey.generate()
    for kid in (ring.signing_key.kid, "another"):
        headers = {"kid": kid, "typ": "at+jwt"}
        await refusal(tokens, jwt.encode(good_claims(clock), stranger, algorithm="EdDSA", headers=headers))


async def test_a_key_that_comes_with_the_token_is_not_used(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    stranger = Ed25519PrivateKey.generate()
    x = _base64(stranger.public_key().public_bytes_raw())
    own = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "own"}
    for headers in ({"jwk": own}, {"jku": "https://evil.example/jwks.json"}, {"x5u": "https://evil.example/x"}):
        for kid in ("own", ring.signing_key.kid):
            text = jwt.encode(
                good_claims(clock), stranger, algorithm="EdDSA", headers={"kid": kid, "typ": "at+jwt", **headers}
            )
            await refusal(tokens, text)


async def test_injection_through_the_key_id_is_refused(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock, database: Database
) -> None:
    wild: list[Any] = [
        "",
        "../../etc/passwd",
        "' OR '1'='1",
        "x'; DROP TABLE sealed_key; --",
        "/dev/null",
        "\x00",
        "🙂",
    ]
    for kid in (*wild, 7, None, [], {}, True):
        head = f"{_encode({'alg': 'EdDSA', 'kid': kid, 'typ': 'at+jwt'})}.{_encode(good_claims(clock))}"
        await refusal(tokens, f"{head}.{_base64(ring.signing_key.private.sign(head.encode()))}")
    assert await database.fetchval("SELECT count(*) FROM sealed_key") > 0


async def test_wrong_or_missing_claims_are_refused_even_when_we_signed_them(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    changes: list[dict[str, Any]] = [
        {"iss": "https://evil.example"},
        {"iss": URL + "/"},
        {"aud": "https://evil.example"},
        {"aud": [URL]},
        {"aud": [URL, "https://evil.example"]},
        {"grant": "admin"},
        {"grant": ["agent"]},
        {"scope": 7},
        {"scope": ["slots:read"]},
        {"sub": 7},
        {"exp": "tomorrow"},
        {"exp": 10**30},
        {"iat": "now"},
        *({claim: None} for claim in ("iss", "aud", "sub", "practice", "scope", "grant", "iat", "exp", "jti")),
    ]
    for change in changes:
        await refusal(tokens, signed(ring, good_claims(clock, **change)))


async def test_another_type_of_signed_document_is_refused(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    for kind in ("JWT", "dpop+jwt", "id+jwt", None):
        await refusal(tokens, signed(ring, good_claims(clock), typ=kind))


async def test_extensions_that_must_be_understood_are_refused(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    await refusal(tokens, signed(ring, good_claims(clock), crit=["exp"], exp=1))


async def test_every_altered_character_is_noticed(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    text = signed(ring, good_claims(clock))
    for place in range(0, len(text), 7):
        altered = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        await refusal(tokens, altered)
    for other_spelling in (text + "=", text + "==", " " + text, text + "\n", text.replace(".", "..", 1)):
        await refusal(tokens, other_spelling)


async def test_garbage_is_refused(tokens: Tokens) -> None:
    nearly = f"{'A' * 100}.{'A' * 100}.{'A' * 86}"
    for garbage in ("x", "..", "a.b.c", "é.é.é", "\ud800", "A" * 1_000_000, nearly):
        await refusal(tokens, garbage)


async def test_deeply_nested_headers_are_refused(tokens: Tokens) -> None:
    header = _base64(b'{"a":' * 500)
    await refusal(tokens, f"{header}.e30.{'A' * 86}")


async def test_scopes_cannot_be_added_to_a_token(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    header, _, signature = signed(ring, good_claims(clock)).split(".")
    await refusal(tokens, f"{header}.{_encode(good_claims(clock, scope=' '.join(SCOPES)))}.{signature}")


async def test_unknown_key_ids_cost_at_most_one_query_a_second(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock, database: Database
) -> None:
    clock.advance(5)
    before = database.statements
    for number in range(20):
        await refusal(tokens, signed(ring, good_claims(clock), kid=f"unknown-{number}"))
    assert database.statements == before + 1


async def test_refused_tokens_are_not_remembered(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    await refusal(tokens, signed(ring, good_claims(clock, aud="https://evil.example")))
    assert len(tokens._verified) == 0


def _encode(document: dict[str, Any]) -> str:
    return _base64(json.dumps(document).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
