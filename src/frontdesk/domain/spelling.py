"""Suggestions for misspelt names."""

import difflib
from collections.abc import Collection


def closest(word: str, known: Collection[str]) -> str:
    """The end of a sentence that says which known name is meant, or nothing if none is close."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; the closest is {found[0]!r}" if found else ""
