import time

from frontdesk.cache import BoundedCache


def test_the_entry_used_longest_ago_is_evicted() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.put("c", 3) == [2]
    assert list(cache.items()) == [("a", 1), ("c", 3)]
    assert cache.get("b") is None


def test_a_replaced_entry_counts_once_and_is_not_evicted() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.put("a", 3) == []
    assert dict(cache.items()) == {"b": 2, "a": 3}
    assert cache.weight == len(cache) == 2


def test_weights_are_bounded_in_total() -> None:
    cache: BoundedCache[str, str] = BoundedCache(100)
    cache.put("a", "A", 40)
    cache.put("b", "B", 40)
    assert cache.put("c", "C", 90) == ["A", "B"]
    assert cache.weight == 90
    cache.put("c", "D", 10)
    cache.discard("c")
    cache.discard("never there")
    assert cache.weight == len(cache) == 0


def test_an_entry_heavier_than_the_bound_is_kept_alone() -> None:
    cache: BoundedCache[str, str] = BoundedCache(10)
    cache.put("a", "A")
    assert cache.put("b", "B", 50) == ["A"]
    assert cache.get("b") == "B"
    assert cache.put("c", "C") == ["B"]
    assert cache.weight == 1


def test_a_full_cache_evicts_in_constant_time() -> None:
    """A plain dict looks for its first key past all the slots of deleted ones: quadratic in its size."""

    def seconds(size: int) -> float:
        cache: BoundedCache[int, None] = BoundedCache(size)
        for key in range(size):
            cache.put(key, None)
        began = time.process_time()
        for key in range(size, size + 20_000):
            cache.put(key, None)
        return time.process_time() - began

    assert seconds(50_000) < 10 * seconds(500)
