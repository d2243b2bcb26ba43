"""Authenticates requests to a FHIR server: no credentials, a fixed token, client credentials or SMART Backend Services.

Secrets are read from the environment or from a file that the settings name, and never logged or stored.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote_plus
from uuid import uuid4

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from frontdesk.systems.fhir.settings import Auth
from frontdesk.systems.port import Misconfigured, SystemUnavailable

ASSERTION_SECONDS = 240
_DEFAULT_LIFETIME = 300.0
_RENEW_BEFORE = 30.0
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Credentials:
    def __init__(
        self,
        auth: Auth,
        http: httpx.AsyncClient,
        environment: Mapping[str, str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._auth = auth
        self._http = http
        self._environment = environment
        self._monotonic = monotonic
        self._token: str | None = None
        self._renew_at = 0.0
        self._renewing = asyncio.Lock()

    async def headers(self) -> dict[str, str]:
        """The headers of an authenticated request. Raises SystemUnavailable if no token can be obtained."""
        if self._auth.kind == "none":
            return {}
        if self._auth.kind == "bearer":
            return {"Authorization": f"Bearer {self._secret(self._auth.token_env)}"}
        async with self._renewing:
            if self._token is None or self._monotonic() >= self._renew_at:
                await self._renew()
        return {"Authorization": f"Bearer {self._token}"}

    def forget(self, refused: Mapping[str, str]) -> bool:
        """Drops a token that the server refused; whether a retry can send another one."""
        if self._auth.kind in ("none", "bearer"):
            return False
        if refused["Authorization"] == f"Bearer {self._token}":
            self._token = None
        return True

    async def _renew(self) -> None:
        form: dict[str, str] = {"grant_type": "client_credentials"}
        headers: dict[str, str] = {"Accept": "application/json"}
        if self._auth.scope is not None:
            form["scope"] = self._auth.scope
        if self._auth.kind == "clientCredentials":
            headers["Authorization"] = self._basic()
        else:
            form["client_assertion_type"] = _ASSERTION_TYPE
            form["client_assertion"] = _assertion(self._auth, await asyncio.to_thread(self._private_key))
        asked_at = self._monotonic()
        try:
            answer = await self._http.post(self._auth.token_url, data=form, headers=headers)
            document = answer.json() if answer.status_code == 200 else {}
        except (httpx.HTTPError, ValueError) as error:
            raise SystemUnavailable from error
        if 400 <= answer.status_code < 500 and answer.status_code != 429:
            raise Misconfigured(f"the token endpoint refused the credentials with status {answer.status_code}")
        token = document.get("access_token") if isinstance(document, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise SystemUnavailable
        lifetime = document.get("expires_in")
        seconds = float(lifetime) if isinstance(lifetime, int | float) else _DEFAULT_LIFETIME
        self._token, self._renew_at = token, asked_at + max(seconds - _RENEW_BEFORE, seconds / 2)

    def _basic(self) -> str:
        # RFC 6749 2.3.1: both parts are form-encoded before they are joined.
        secret = self._secret(self._auth.client_secret_env)
        joined = f"{quote_plus(self._auth.client_id)}:{quote_plus(secret)}"
        return f"Basic {b64encode(joined.encode()).decode()}"

    def _secret(self, name: str) -> str:
        value = self._environment.get(name, "").strip()
        if not value or not value.isascii() or not value.isprintable():
            raise Misconfigured(f"the environment variable {name} holds no usable secret")
        return value

    def _private_key(self) -> object:
        name = self._auth.private_key_file
        try:
            return load_pem_private_key(Path(name).read_bytes(), password=None)
        except OSError as error:
            raise Misconfigured(f"the file {name} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError):
            raise Misconfigured(f"the file {name} holds no unencrypted private key in PEM form") from None


def _assertion(auth: Auth, key: object) -> str:
    """SMART Backend Services: a short-lived JWT, signed with a key whose public half the server knows."""
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm = "RS384"
    elif isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp384r1":
        algorithm = "ES384"
    else:
        raise Misconfigured(f"the file {auth.private_key_file} must hold an RSA key or an EC key on P-384")
    claims = {
        "iss": auth.client_id,
        "sub": auth.client_id,
        "aud": auth.token_url,
        "exp": int(time.time()) + ASSERTION_SECONDS,
        "jti": uuid4().hex,
    }
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": auth.key_id} if auth.key_id else None)
