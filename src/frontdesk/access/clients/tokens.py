"""Issues and verifies access tokens: JWTs (RFC 9068) with one algorithm and our own keys, issuer and audience.

Nothing in a token selects how it is verified. Verified tokens are cached until they expire.
"""

import re
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from frontdesk.access.clients.caller import Grant
from frontdesk.access.clients.resources import RESOURCES
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.access.clients.validation import ordered
from frontdesk.access.keys.ring import KeyRing
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.settings import Settings

_ALGORITHM = "EdDSA"
_TYPE = "at+jwt"
_CLAIMS = ("iss", "aud", "sub", "practice", "scope", "grant", "iat", "exp", "jti")
_MAX_TOKEN_LENGTH = 4096  # our tokens are far shorter; refuse to decode more
_COMPACT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]{86}\Z", re.ASCII)  # no padding: one encoding per token
_CACHED = 10_000
_FORGED_BYTES = 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SKEW_SECONDS = 60  # allowed clock difference between nodes


@dataclass(frozen=True, slots=True)
class IssuedToken:
    text: str
    expires_in: int
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    client_id: str
    practice_slug: str
    scopes: frozenset[str]
    grant: Grant
    expires_at: datetime
    tokens_not_before: int  # of the client when the token was issued; see `microseconds`
    resources: frozenset[str]  # the doors that it is for; empty: every door


class Tokens:
    def __init__(
        self, ring: KeyRing, settings: Settings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._ring = ring
        self._address = settings.public_url
        self._doors = {self._address + resource: resource for resource in RESOURCES}
        self._lifetime = settings.token_lifetime_seconds
        self.clock = clock
        self._verified: BoundedCache[str, Claims] = BoundedCache(_CACHED)
        self._forged: BoundedCache[str, bool] = BoundedCache(_FORGED_BYTES)

    def issue(
        self,
        client: AuthenticatedClient,
        scopes: Collection[str],
        *,
        lifetime: int | None = None,
        resources: Collection[str] = (),
    ) -> IssuedToken:
        """A token with the default lifetime, or for `lifetime` seconds, for all doors or those of `resources`."""
        now, lifetime = int(self.clock().timestamp()), lifetime or self._lifetime
        held = ordered(scopes)
        key = self._ring.signing_key
        claims: dict[str, object] = {
            "iss": self._address,
            "aud": self._audience(resources),
            "sub": client.client_id,
            "client_id": client.client_id,
            "practice": client.practice_slug,
            "scope": " ".join(held),
            "grant": client.grant,
            "iat": now,
            "exp": now + lifetime,
            "jti": secrets.token_urlsafe(16),
        }
        if client.tokens_not_before is not None:
            claims["tokens_not_before"] = microseconds(client.tokens_not_before)
        text = jwt.encode(claims, key.private, algorithm=_ALGORITHM, headers={"kid": key.kid, "typ": _TYPE})
        return IssuedToken(text, lifetime, held)

    def _audience(self, resources: Collection[str]) -> str | list[str]:
        addresses = [address for address, resource in self._doors.items() if resource in resources]
        return addresses if len(addresses) > 1 else addresses[0] if addresses else self._address

    async def verify(self, token: str) -> Claims:
        """The claims of the token; Problem `unauthorized` if it is invalid. Verified tokens cost one cache lookup."""
        claims = self._verified.get(token)
        if claims is None:
            if self._forged.get(token):  # the door and the gateway verify the same token
                raise _invalid()
            key = await self._key_of(token)
            claims = self._check(token, key)
            self._verified.put(token, claims)
        if claims.expires_at <= self.clock():
            raise Problem("unauthorized", "The access token has expired.")
        return claims

    async def _key_of(self, token: str) -> Ed25519PublicKey:
        if len(token) > _MAX_TOKEN_LENGTH or not _COMPACT.match(token):
            raise _invalid()
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise _invalid() from None
        kid = header.get("kid")
        if not isinstance(kid, str) or header.get("typ") != _TYPE or header.get("alg") != _ALGORITHM:
            raise _invalid()
        key = self._ring.verification_keys.get(kid)
        if key is None:
            await self._ring.refresh()
            key = self._ring.verification_keys.get(kid)
        if key is None:
            raise _invalid()
        return key

    def _check(self, token: str, key: Ed25519PublicKey) -> Claims:
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                issuer=self._address,
                # The audience and, with the injected clock, the times are checked below.
                options={
                    "require": list(_CLAIMS),
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
            return self._read(claims)
        except jwt.InvalidSignatureError:
            self._forged.put(token, True, len(token))
            raise _invalid() from None
        except (jwt.InvalidTokenError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise _invalid() from None

    def _read(self, claims: dict[str, Any]) -> Claims:
        resources = self._resources(claims["aud"])
        earliest = self.clock().timestamp() + _SKEW_SECONDS
        if max(claims["iat"], claims.get("nbf", 0)) > earliest or claims["grant"] not in get_args(Grant):
            raise ValueError
        return Claims(
            client_id=claims["sub"],
            practice_slug=claims["practice"],
            scopes=frozenset(claims["scope"].split()),
            grant=cast(Grant, claims["grant"]),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
            tokens_not_before=int(claims.get("tokens_not_before", 0)),
            resources=resources,
        )

    def _resources(self, audience: str | list[str]) -> frozenset[str]:
        """What `_audience` was made from."""
        if audience == self._address:
            return frozenset()
        resources = frozenset(self._doors[each] for each in ([audience] if isinstance(audience, str) else audience))
        if self._audience(resources) != audience:
            raise ValueError
        return resources


def microseconds(moment: datetime | None) -> int:
    """An exact number for a moment; 0 for none."""
    return 0 if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def _invalid() -> Problem:
    return Problem("unauthorized", "The access token is not valid.")
