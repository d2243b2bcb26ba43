"""Parses JSON from callers: nesting is limited, and properties that are given more than once are reported."""

import json
from typing import Any

import orjson

MAX_DEPTH = 64
_NESTING = (dict, list)


class UnreadableJson(Exception):
    """The text says what the document must be, after its name."""


def read_json(content: bytes) -> tuple[object, list[str]]:
    """The document, with the last value of a repeated property, and the names of repeated properties at any depth."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise UnreadableJson("must be valid JSON in UTF-8") from None
    # Every property has a colon of its own: as many colons as names leave none for a repeated property.
    if content.count(b":") == _count_names(document):
        return document, []
    return document, _repeated_names(content)


def _count_names(document: Any) -> int:
    names, level = 0, [document] if type(document) in _NESTING else []
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for each in level:
            if type(each) is dict:
                names += len(each)
                each = each.values()
            inner += [value for value in each if type(value) in _NESTING]
        if not inner:
            return names
        level = inner
    raise UnreadableJson(f"must have at most {MAX_DEPTH} levels of nesting")


def _repeated_names(content: bytes) -> list[str]:
    repeated: dict[str, None] = {}

    def note(properties: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in properties:
            if name in seen:
                repeated[name] = None
            seen.add(name)

    json.loads(content.decode(), object_pairs_hook=note, parse_int=str, parse_float=str)
    return list(repeated)
