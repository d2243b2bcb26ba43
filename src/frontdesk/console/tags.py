"""Tags of what a page shows, for requests that ask whether it has changed."""

import hashlib

from frontdesk.console.language import language


def tag_of(shown: object, length: int = 32) -> str:
    """Differs between languages."""
    return hashlib.sha256(repr((language(), shown)).encode()).hexdigest()[:length]
