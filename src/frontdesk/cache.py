"""What is kept in memory for its next use, in dictionaries that are never larger than they may be."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep(kept: dict[K, V], key: K, value: V, most: int) -> None:
    """As the newest of at most so many. The oldest, which stands first, makes room."""
    kept.pop(key, None)
    if len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
