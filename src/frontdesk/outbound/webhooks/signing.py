"""Standard Webhooks secrets and signature headers."""

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
    """A secret in the format for receivers."""
    return _PREFIX + base64.b64encode(secret).decode()


def signed_headers(keys: Sequence[bytes], message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers with one signature per valid secret."""
    timestamp = str(int(now.timestamp()))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
