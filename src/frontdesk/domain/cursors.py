"""Opaque, authenticated pagination cursors, bound to the practice and the query."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

import orjson

_TAG = 12


class Cursors:
    """Cursors of one practice. The first key signs; all keys verify."""

    def __init__(self, keys: Sequence[bytes], practice_id: int) -> None:
        self._keys = keys
        self._practice_id = practice_id

    def encode(self, query: Sequence[object], position: Sequence[object]) -> str:
        payload = orjson.dumps(position)
        return _text(self._tag(self._keys[0], query, payload) + payload)

    def decode(self, query: Sequence[object], text: str) -> list[object] | None:
        """The position, or None for a cursor that is altered or belongs to another practice or query."""
        if (parts := tag_and_payload(text)) is None:
            return None
        tag, payload = parts
        if not any(hmac.compare_digest(tag, self._tag(key, query, payload)) for key in self._keys):
            return None
        position: list[object] = orjson.loads(payload)
        return position

    def _tag(self, key: bytes, query: Sequence[object], payload: bytes) -> bytes:
        # A JSON array is self-delimiting, so no bytes can move between the query and the payload.
        bound = orjson.dumps([self._practice_id, query]) + payload
        return hashlib.blake2b(bound, key=key, digest_size=_TAG).digest()


def tag_and_payload(text: str) -> tuple[bytes, bytes] | None:
    """The parts of a cursor, None for a text that cannot be one."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    if _text(raw) != text:  # base64 has several encodings of the same bytes; accept only ours
        return None
    return (raw[:_TAG], raw[_TAG:]) if len(raw) > _TAG else None


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
