"""Tags of what a page shows, for requests that ask whether it has changed."""

import hashlib

import orjson

from frontdesk.console.language import language


def tag_of(shown: object, length: int = 32) -> str:
    """Differs between languages. JSON, because `repr` takes longer for a calendar of many appointments."""
    text = orjson.dumps((language(), shown), default=repr, option=orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(text).hexdigest()[:length]
