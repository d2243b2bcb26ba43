"""Staff sign-in with an identity provider: the authorization code flow of OpenID Connect with PKCE.

It establishes an identity, not whether it may sign in. Imported only if a provider is configured.
"""

import hashlib
import secrets
import ssl
import time
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import jwt
from jwt.utils import base64url_encode

from frontdesk.access.staff.sessions import Identity
from frontdesk.settings import Settings

CALLBACK = "/console/sign-in/identity/callback"
_SCOPE = "openid email"
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_OFFERED = "id_token_signing_alg_values_supported"
_LEEWAY_SECONDS = 60
_TIMEOUT_SECONDS = 10.0
_METADATA_SECONDS = 600.0


class IdentityError(Exception):
    """The provider's answer does not prove an identity."""


class ProviderUnavailable(Exception):
    """The provider could not be asked."""


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """What the browser that began a sign-in must bring back, and what the provider's answer must match."""

    state: str
    nonce: str
    verifier: str


class IdentityProvider:
    def __init__(self, settings: Settings) -> None:
        # The settings are complete or there is no provider.
        self._issuer = settings.oidc_issuer or ""
        self._client_id = settings.oidc_client_id or ""
        self._client_secret = settings.oidc_client_secret or ""
        self._callback = settings.public_url + CALLBACK
        self._metadata: dict[str, object] = {}
        self._metadata_read_at = float("-inf")

    async def begin(self) -> tuple[str, PendingSignIn]:
        """The URL to send the browser to, and what to remember until it returns."""
        beginning = PendingSignIn(*(secrets.token_urlsafe(32) for _ in range(3)))
        metadata = await self._provider()
        query = {
            "client_id": self._client_id,
            "response_type": "code",
            "redirect_uri": self._callback,
            "scope": _SCOPE,
            "state": beginning.state,
            "nonce": beginning.nonce,
            "code_challenge": base64url_encode(hashlib.sha256(beginning.verifier.encode()).digest()).decode(),
            "code_challenge_method": "S256",
        }
        endpoint = metadata["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", beginning

    async def finish(self, beginning: PendingSignIn, code: str, issuer: str | None) -> Identity:
        """The identity that the provider vouches for. `issuer` is the one named in its answer (RFC 9207)."""
        metadata = await self._provider()
        named = issuer is not None or metadata.get("authorization_response_iss_parameter_supported") is True
        if named and issuer != self._issuer:
            raise IdentityError
        tokens = await self._redeem(metadata, beginning, code)
        try:
            claims = await self._verified(metadata, beginning, tokens)
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IdentityError from error
        return Identity(self._issuer, claims["sub"], await self._email(metadata, claims, tokens))

    async def _provider(self) -> dict[str, Any]:
        """The issuer's metadata, fetched again every few minutes."""
        if time.monotonic() - self._metadata_read_at >= _METADATA_SECONDS:
            found = await self._ask("GET", f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            scheme = urlsplit(self._issuer).scheme
            if found.get("issuer") != self._issuer or not all(
                isinstance(found.get(name), str) and found[name].startswith(f"{scheme}://") for name in needed
            ):
                raise ProviderUnavailable
            self._metadata, self._metadata_read_at = found, time.monotonic()
        return self._metadata

    async def _redeem(self, metadata: dict[str, Any], beginning: PendingSignIn, code: str) -> dict[str, object]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": beginning.verifier,
        }
        if "client_secret_basic" in metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
            # Both are form-encoded before they are put together (RFC 6749, 2.3.1).
            auth = httpx.BasicAuth(quote(self._client_id, safe=""), quote(self._client_secret, safe=""))
            return await self._ask("POST", metadata["token_endpoint"], data=form, auth=auth)
        form |= {"client_id": self._client_id, "client_secret": self._client_secret}
        return await self._ask("POST", metadata["token_endpoint"], data=form)

    async def _verified(
        self, metadata: dict[str, Any], beginning: PendingSignIn, tokens: dict[str, Any]
    ) -> dict[str, Any]:
        token = tokens["id_token"]
        header = jwt.get_unverified_header(token)
        algorithm = header["alg"]
        if algorithm not in _ALGORITHMS or algorithm not in metadata.get(_OFFERED, ["RS256"]):
            raise IdentityError
        key = _signing_key(await self._ask("GET", metadata["jwks_uri"]), algorithm, header.get("kid"))
        claims: dict[str, object] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            issuer=self._issuer,
            audience=self._client_id,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat", "nonce"]},
        )
        is_ours_alone = claims["aud"] in (self._client_id, [self._client_id])
        if (
            not claims["sub"]
            or claims["nonce"] != beginning.nonce
            or claims.get("azp", self._client_id if is_ours_alone else None) != self._client_id
            or ("at_hash" in claims and claims["at_hash"] != _half_hash(algorithm, tokens["access_token"]))
        ):
            raise IdentityError
        return claims

    async def _email(self, metadata: dict[str, Any], claims: dict[str, Any], tokens: dict[str, object]) -> str | None:
        """From the ID token or, where it has none, from the userinfo of the same subject."""
        about = claims
        if "email" not in claims and "userinfo_endpoint" in metadata and "access_token" in tokens:
            headers = {"Authorization": f"Bearer {tokens['access_token']}"}
            about = await self._ask("GET", metadata["userinfo_endpoint"], headers=headers)
        verified = about.get("sub") == claims["sub"] and about.get("email_verified") is True
        return about["email"] if verified and isinstance(about.get("email"), str) else None

    async def _ask(self, method: str, address: str, **given: Any) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, verify=_trusted_authorities()) as client:
                answer = await client.request(method, address, **given)
                document = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ProviderUnavailable from error
        if answer.status_code >= 500:
            raise ProviderUnavailable
        if answer.status_code != 200 or not isinstance(document, dict):
            raise IdentityError
        return document


def _signing_key(document: dict[str, Any], algorithm: str, key_id: str | None) -> jwt.PyJWK:
    """The only published key that fits the token. An ID token without a key id is accepted where there is one key."""
    (found,) = (
        key
        for key in document["keys"]
        if key_id in (None, key.get("kid"))
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    )
    return jwt.PyJWK(found, algorithm)


def _half_hash(algorithm: str, token: str) -> str:
    """OpenID Connect Core 3.1.3.6: binds an access token to the ID token that came with it."""
    digest = hashlib.new("sha512" if algorithm == "EdDSA" else f"sha{algorithm[2:]}", token.encode()).digest()
    return base64url_encode(digest[: len(digest) // 2]).decode()


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Cached, because loading it costs more than a request."""
    return httpx.create_ssl_context()
