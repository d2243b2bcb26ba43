"""Tags of what a page shows, for requests that ask whether it has changed."""

import hashlib

import orjson

from frontdesk.console.language import language

_MARKUP = 2  # raised when the markup of what is tagged changes: pages ask nodes of the previous release, too


def tag_of(shown: object, length: int = 32) -> str:
    """Differs between languages. JSON, because `repr` takes longer for a calendar of many appointments."""
    text = orjson.dumps((_MARKUP, language(), shown), default=repr, option=orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(text).hexdigest()[:length]
