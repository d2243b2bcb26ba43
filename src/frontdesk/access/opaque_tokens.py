"""Opaque tokens: 256 random bits, of which only a digest is stored."""

import hashlib
import re
import secrets
from typing import NamedTuple

_OF_PRACTICE = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{43})\Z")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


class PracticeToken(NamedTuple):
    """What is known of a token that names its practice, because row-level security needs it."""

    practice_id: int
    digest: bytes


def practice_token(practice_id: int, token: str) -> str:
    return f"{practice_id}-{token}"


def read_practice_token(text: str) -> PracticeToken | None:
    found = _OF_PRACTICE.match(text)
    return None if found is None else PracticeToken(int(found[1]), digest_of(found[2]))
