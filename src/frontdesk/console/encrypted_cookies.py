"""Values that the console keeps in a browser, encrypted, so that the browser can neither read nor change them."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError


@dataclass(frozen=True, slots=True)
class EncryptedCookies:
    cipher: KeyCipher
    clock: Callable[[], datetime]

    def encrypt(self, purpose: bytes, values: Sequence[object]) -> str:
        plain = orjson.dumps([*values, self.clock().timestamp()])
        return urlsafe_b64encode(self.cipher.encrypt(plain, purpose)).decode()

    def decrypt(self, purpose: bytes, cookie: str | None, lifetime: timedelta) -> list[Any] | None:
        """Decrypts a value. None if it was encrypted for another purpose, or too long ago."""
        try:
            encrypted = urlsafe_b64decode((cookie or "").encode())
            *values, encrypted_at = orjson.loads(self.cipher.decrypt(encrypted, purpose))
        except (ValueError, SecretKeyError):
            return None
        return None if self.clock().timestamp() - encrypted_at > lifetime.total_seconds() else values
