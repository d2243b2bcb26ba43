"""Public keys of clients: reading a JSON Web Key Set (RFC 7517)."""

from collections.abc import Mapping
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from frontdesk.access.clients.validation import ClientError

ALGORITHMS = ("RS384", "ES384")
_ALGORITHM_OF = {("RSA", None): "RS384", ("EC", "P-384"): "ES384"}
_PRIVATE_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
_RSA_BITS = range(2048, 4097)
_MAX_KEYS = 20
_MAX_KID_LENGTH = 255


def read_jwks(content: bytes) -> dict[str, object]:
    """The key set with the keys that can be used and no other members; ClientError if there is none."""
    try:
        keys = orjson.loads(content)["keys"]
        read = [key for key in keys if isinstance(key, dict)]
    except (ValueError, TypeError, KeyError):
        raise ClientError("The key set must be a JSON object with an array 'keys'.", "jwks") from None
    if any(_PRIVATE_MEMBERS & set(key) for key in read):
        raise ClientError("The key set contains a private or secret key; give public keys only.", "jwks")
    if len(keys) > _MAX_KEYS:
        raise ClientError(f"The key set may have at most {_MAX_KEYS} keys.", "jwks")
    usable = [key for key in read if _is_usable(key)]
    kids = [key["kid"] for key in usable]
    if not usable or len(set(kids)) < len(kids):
        raise ClientError(
            "The key set needs a public key with a kid of its own: RSA of 2048 to 4096 bits (RS384) or P-384 (ES384).",
            "jwks",
        )
    return {"keys": usable}


def key_of(jwks: Mapping[str, Any], kid: str) -> jwt.PyJWK | None:
    return next((_key(key) for key in jwks["keys"] if key["kid"] == kid), None)


def _is_usable(key: dict[str, object]) -> bool:
    kid, algorithm = key.get("kid"), _algorithm(key)
    if not isinstance(kid, str) or not 1 <= len(kid) <= _MAX_KID_LENGTH or algorithm is None:
        return False
    if key.get("alg", algorithm) != algorithm or key.get("use", "sig") != "sig":
        return False
    try:
        public = _key(key).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
    return not isinstance(public, RSAPublicKey) or public.key_size in _RSA_BITS


def _algorithm(key: Mapping[str, object]) -> str | None:
    family, curve = key.get("kty"), key.get("crv")
    return _ALGORITHM_OF.get((family, curve)) if isinstance(family, str) and isinstance(curve, str | None) else None


def _key(key: Mapping[str, object]) -> jwt.PyJWK:
    return jwt.PyJWK(dict(key), algorithm=_algorithm(key))
