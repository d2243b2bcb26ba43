"""Authenticates a client by an assertion that it signed with its own key (private_key_jwt, RFC 7523)."""

import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt
import orjson
from asyncpg import Record

from frontdesk.access.clients.public_keys import ALGORITHMS, key_of
from frontdesk.access.clients.secrets import CLIENT_ID, AuthenticatedClient, client_of
from frontdesk.access.outages import CREDENTIALS, outage_as_problem
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database

AUTHENTICATION_METHODS = ("client_secret_post", "client_secret_basic", "private_key_jwt")  # of the token endpoint
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MAX_ASSERTION_LENGTH = 8192
_MAX_JTI_LENGTH = 255
_LIFETIME_SECONDS = 300
_SKEW_SECONDS = 60  # allowed difference between the client's clock and ours
_KEEP = timedelta(hours=1)  # longer than any node's clock may differ

_CLIENT = """
SELECT c.client_id, c.grant_kind, c.scopes, c.disabled, c.tokens_not_before, c.per_minute, p.slug, p.suspended,
       c.jwks::text AS jwks, c.jwks_url
FROM client c JOIN practice p USING (practice_id) WHERE c.client_id = $1
"""
_USE = "INSERT INTO used_assertion (subject, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING subject"
_PRUNE = """
DELETE FROM used_assertion WHERE subject IN (
    SELECT subject FROM used_assertion WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING true
"""

KeySetAt = Callable[[str, str], Awaitable[Mapping[str, object]]]
"""The key set at a URL, fetched again if it is old or does not have the key id."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion whose claims are in order; its signature was not verified yet."""

    text: str
    client_id: str
    kid: str
    jku: str | None
    jti: str
    expires_at: datetime


def read_assertion(text: str, token_url: str, now: datetime) -> Assertion:
    """Checks everything that needs no key. The reasons for a refusal tell nothing about a client."""
    if len(text) > _MAX_ASSERTION_LENGTH:
        raise _refused("is too long")
    try:
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise _refused("is not a JSON Web Token") from None
    if header.get("alg") not in ALGORITHMS or str(header.get("typ", "JWT")).upper() != "JWT":
        raise _refused(f"must be signed with {' or '.join(ALGORITHMS)} and have the type JWT")
    kid, jku, client_id, jti = header.get("kid"), header.get("jku"), claims.get("sub"), claims.get("jti")
    if not isinstance(kid, str) or not isinstance(jku, str | None):
        raise _refused("must have the kid of its key in its header")
    if not isinstance(client_id, str) or claims.get("iss") != client_id:
        raise _refused("must have the client id as iss and sub")
    if claims.get("aud") not in (token_url, [token_url]):
        raise _refused(f"must have the token endpoint {token_url} as its only aud")
    if not isinstance(jti, str) or not 1 <= len(jti) <= _MAX_JTI_LENGTH:
        raise _refused(f"must have a jti of 1 to {_MAX_JTI_LENGTH} characters")
    expires_at, seconds = _time(claims.get("exp")), now.timestamp()
    if not seconds < expires_at <= seconds + _LIFETIME_SECONDS + _SKEW_SECONDS:
        raise _refused("must have an exp that lies in the future, by at most 5 minutes")
    if not all(_time(claims.get(name, 0)) <= seconds + _SKEW_SECONDS for name in ("iat", "nbf")):
        raise _refused("must have an iat and an nbf that do not lie in the future")
    return Assertion(text, client_id, kid, jku, jti, datetime.fromtimestamp(expires_at, UTC))


async def authenticate_assertion(database: Database, assertion: Assertion, key_set_at: KeySetAt) -> AuthenticatedClient:
    """Verify a signature, and use the assertion up: no node accepts it again.

    An unknown client, one without keys and a wrong signature get the same response. Other errors (used before,
    suspended) are revealed only after the signature was verified.
    """
    with outage_as_problem(CREDENTIALS):
        row = await database.fetchrow(_CLIENT, assertion.client_id) if CLIENT_ID.match(assertion.client_id) else None
        if row is None or row["disabled"] or not await _is_signed_by(row, assertion, key_set_at):
            raise _refused("is not signed with a key of a client that may call")
        subject = hashlib.sha256(f"{assertion.client_id}\n{assertion.jti}".encode(errors="surrogatepass")).digest()
        if await database.write(_USE, subject, assertion.expires_at + _KEEP) is None:
            raise _refused("was used before: each request needs a jti of its own")
    return client_of(row)


async def prune_assertions(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` assertions that have expired on every node; returns how many."""
    return len(await database.fetch(_PRUNE, now, limit))


async def _is_signed_by(row: Record, assertion: Assertion, key_set_at: KeySetAt) -> bool:
    url = row["jwks_url"]
    if assertion.jku not in (None, url):  # only the registered URL is ever fetched
        return False
    if row["jwks"] is None and url is None:
        return False
    jwks = orjson.loads(row["jwks"]) if url is None else await key_set_at(url, assertion.kid)
    key = key_of(jwks, assertion.kid)
    if key is None:
        return False
    try:
        jwt.PyJWS().decode(assertion.text, key, algorithms=[key.algorithm_name])
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
    return True


def _time(value: object) -> float:
    """A number of seconds; not a number, which no comparison accepts, for anything else."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _refused(reason: str) -> Problem:
    return Problem("unauthorized", f"The client assertion {reason}.")
