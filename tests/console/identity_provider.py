"""A small OpenID provider on the loopback: discovery, authorization with PKCE, signed ID tokens, userinfo.

It checks what a real one checks, and can be told to lie.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

CLIENT_ID, CLIENT_SECRET = "frontdesk console", "s3cret+/ of the client"
# Made once: it takes a while.
KEY, ANOTHER_KEY = (generate_private_key(65537, 2048) for _ in range(2))
PUBLISHED = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "one"}


@dataclass
class Provider:
    issuer: str
    now: Callable[[], float]
    claims: dict[str, Any] = field(default_factory=dict)  # instead of the right ones; None leaves a claim out
    metadata: dict[str, Any] = field(default_factory=dict)  # what the discovery document says instead
    userinfo: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [PUBLISHED])
    key_id: str | None = "one"
    algorithm: str = "RS256"
    signing_key: RSAPrivateKey = field(default_factory=lambda: KEY)
    broken: bool = False
    takes_basic: bool = True
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, query: dict[str, str], headers: Any, form: dict[str, str]) -> tuple[int, Any]:
        """The status and the document; a text is where to go."""
        self.asked.append(path)
        if self.broken:
            return 500, {"error": "server_error"}
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._metadata()
            case "/authorize":
                return 302, self._authorize(query)
            case "/token":
                return self._token(headers, form)
            case "/keys":
                return 200, {"keys": self.keys}
            case "/userinfo":
                assert headers["Authorization"] == "Bearer opaque"
                return 200, self.userinfo
        return 404, {}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": [
                "client_secret_basic" if self.takes_basic else "client_secret_post"
            ],
            **self.metadata,
        }

    def _authorize(self, asked: dict[str, str]) -> str:
        """The person has signed in there and agreed."""
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def _token(self, headers: Any, form: dict[str, str]) -> tuple[int, Any]:
        given = form.get("client_id", ""), form.get("client_secret", "")
        if self.takes_basic:
            name, _, secret = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
            given = unquote(name), unquote(secret)
        asked = self.codes.pop(form["code"], {})
        challenge = _base64(hashlib.sha256(form["code_verifier"].encode()).digest())
        fits = (challenge, form["redirect_uri"]) == (asked.get("code_challenge"), asked.get("redirect_uri"))
        if given != (CLIENT_ID, CLIENT_SECRET) or not fits:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "opaque", "token_type": "Bearer", "id_token": self._id_token(asked["nonce"])}

    def _id_token(self, nonce: str) -> str:
        now = int(self.now())
        right = {"iss": self.issuer, "sub": "one", "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce}
        claims = {name: value for name, value in (right | self.claims).items() if value is not None}
        if self.algorithm != "RS256":  # unsigned, or under the published key as if that were a shared secret
            text = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": self.algorithm}, claims))
            pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            shared = hmac.digest(pem, text.encode(), "sha256")
            return f"{text}.{_base64(shared) if self.algorithm == 'HS256' else ''}"
        headers = {} if self.key_id is None else {"kid": self.key_id}
        return jwt.encode(claims, self.signing_key, algorithm=self.algorithm, headers=headers)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextlib.contextmanager
def running_provider(now: Callable[[], float]) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            address = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            status, document = provider.answer(
                address.path, dict(parse_qsl(address.query)), self.headers, dict(parse_qsl(body))
            )
            sent = b"" if isinstance(document, str) else json.dumps(document).encode()
            self.send_response(status)
            if isinstance(document, str):
                self.send_header("Location", document)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = _handle  # noqa: N815 - the library's names

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_address[1]}", now)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
