"""Signing in elsewhere: the authorization code flow of OpenID Connect with PKCE, as far as this side speaks it.

Believes nothing but a signed ID token of the configured issuer, for our client id, with the nonce of this very sign-in.
Asks only the addresses that the issuer itself publishes. Says who somebody is; who of them may come in is not decided
here. Imported only where a provider is configured.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]
from authlib.oidc.discovery import get_well_known_url  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from frontdesk.settings import Settings

CALLBACK = "/console/sign-in/identity/callback"
_SCOPE = "openid email"
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_LEEWAY_SECONDS = 60
_TIMEOUT_SECONDS = 10.0
_METADATA_SECONDS = 600.0


class IdentityError(Exception):
    """What the provider answered proves nothing."""


class ProviderUnavailable(Exception):  # noqa: N818 - a state of the world
    """The provider could not be asked."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What only the browser that began may bring back, and what the answer must fit."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Identity:
    issuer: str
    subject: str
    verified_email: str | None


class IdentityProvider:
    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        # The settings are complete or there is no provider.
        self._issuer = settings.oidc_issuer or ""
        self._client_id = settings.oidc_client_id or ""
        self._client_secret = settings.oidc_client_secret or ""
        self._callback = settings.public_url + CALLBACK
        self._clock = clock
        self._monotonic = monotonic
        self._metadata: dict[str, Any] = {}
        self._metadata_read_at = float("-inf")

    async def begin(self) -> tuple[str, Beginning]:
        """The address to send the browser to, and what to remember until it is back."""
        beginning = Beginning(*(secrets.token_urlsafe(32) for _ in range(3)))
        metadata = await self._provider()
        address = prepare_grant_uri(
            metadata["authorization_endpoint"],
            client_id=self._client_id,
            response_type="code",
            redirect_uri=self._callback,
            scope=_SCOPE,
            state=beginning.state,
            nonce=beginning.nonce,
            code_challenge=create_s256_code_challenge(beginning.verifier),
            code_challenge_method="S256",
        )
        return address, beginning

    async def finish(self, beginning: Beginning, code: str, issuer: str | None) -> Identity:
        """Whom the provider vouches for. `issuer` is what the answer itself named (RFC 9207)."""
        metadata = await self._provider()
        named = issuer is not None or metadata.get("authorization_response_iss_parameter_supported") is True
        if named and issuer != self._issuer:
            raise IdentityError
        tokens = await self._redeem(metadata, beginning, code)
        try:
            claims = await self._verified(metadata, beginning, tokens)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise IdentityError from error
        return Identity(self._issuer, claims["sub"], await self._email(metadata, claims, tokens))

    async def _provider(self) -> dict[str, Any]:
        """What the issuer publishes about itself, asked for again every few minutes."""
        if self._monotonic() - self._metadata_read_at >= _METADATA_SECONDS:
            found = await self._ask("GET", get_well_known_url(self._issuer, external=True))
            needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            scheme = urlsplit(self._issuer).scheme
            if found.get("issuer") != self._issuer or not all(
                isinstance(found.get(name), str) and found[name].startswith(f"{scheme}://") for name in needed
            ):
                raise ProviderUnavailable
            self._metadata, self._metadata_read_at = found, self._monotonic()
        return self._metadata

    async def _redeem(self, metadata: dict[str, Any], beginning: Beginning, code: str) -> dict[str, Any]:
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

    async def _verified(self, metadata: dict[str, Any], beginning: Beginning, tokens: dict[str, Any]) -> dict[str, Any]:
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        keys = KeySet.import_key_set(await self._ask("GET", metadata["jwks_uri"]))  # type: ignore[arg-type]
        token = jwt.decode(
            tokens["id_token"],
            keys,
            registry=JWSRegistry(
                algorithms=[name for name in _ALGORITHMS if name in offered], strict_check_header=False
            ),
        )
        claims = CodeIDToken(
            token.claims,
            token.header,
            {"iss": {"essential": True, "value": self._issuer}, "aud": {"essential": True, "value": self._client_id}},
            {"nonce": beginning.nonce, "client_id": self._client_id, "access_token": tokens.get("access_token")},
        )
        claims.validate(now=int(self._clock().timestamp()), leeway=_LEEWAY_SECONDS)
        if not claims["sub"]:
            raise IdentityError
        return dict(claims)

    async def _email(self, metadata: dict[str, Any], claims: dict[str, Any], tokens: dict[str, Any]) -> str | None:
        """From the ID token, or where that has none, from what the provider tells about the same subject."""
        about = claims
        if "email" not in claims and "userinfo_endpoint" in metadata and "access_token" in tokens:
            headers = {"Authorization": f"Bearer {tokens['access_token']}"}
            about = await self._ask("GET", metadata["userinfo_endpoint"], headers=headers)
        verified = about.get("sub") == claims["sub"] and about.get("email_verified") is True
        return about["email"] if verified and isinstance(about.get("email"), str) else None

    async def _ask(self, method: str, address: str, **given: Any) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as client:
                answer = await client.request(method, address, **given)
                document = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ProviderUnavailable from error
        if answer.status_code >= 500:
            raise ProviderUnavailable
        if answer.status_code != 200 or not isinstance(document, dict):
            raise IdentityError
        return document
