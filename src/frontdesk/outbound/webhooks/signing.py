"""Standard Webhooks: secrets, and the headers that prove who sent a message and when."""

import base64
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> bytes:
    return secrets.token_bytes(_SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return _PREFIX + base64.b64encode(secret).decode()


def signed_headers(keys: Sequence[bytes], message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """One signature per live secret: a receiver that knows any of them accepts the message."""
    timestamp = str(int(now.timestamp()))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
