"""A cache of bounded size that evicts the entry used longest ago."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Holds entries up to a total weight of `limit`; an entry weighs 1 unless `put` says otherwise."""

    __slots__ = ("_entries", "_limit", "weight")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()  # used longest ago first
        self.weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, weight: int = 1) -> list[V]:
        """Returns the values that were evicted. The new entry stays, even if it weighs more than `limit` alone."""
        self.discard(key)
        self._entries[key] = (value, weight)
        self.weight += weight
        evicted = []
        while self.weight > self._limit and len(self._entries) > 1:
            _, (dropped, freed) = self._entries.popitem(last=False)
            self.weight -= freed
            evicted.append(dropped)
        return evicted

    def discard(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.weight -= entry[1]

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries, from the one used longest ago to the latest. This does not count as use."""
        return ((key, value) for key, (value, _) in self._entries.items())

    def values(self) -> Iterator[V]:
        return (value for value, _ in self._entries.values())

    def clear(self) -> None:
        self._entries.clear()
        self.weight = 0
