"""Opaque tokens: 256 random bits, of which only a digest is stored."""

import hashlib
import secrets


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
