"""Tags of what a page shows, for requests that ask whether it has changed."""

import hashlib

import orjson

from frontdesk.console.language import language

_MARKUP = 2  # raise it when the markup changes: during an upgrade, pages ask nodes of both versions


def tag_of(shown: object, length: int = 32) -> str:
    """A hash of what is shown and of the language.

    It is made of JSON, because `repr` takes longer for a calendar of many appointments.
    """
    text = orjson.dumps((_MARKUP, language(), shown), default=repr, option=orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(text).hexdigest()[:length]
