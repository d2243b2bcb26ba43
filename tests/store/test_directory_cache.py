"""Directories in memory: as many as there is room for; an evicted one is loaded again."""

import asyncio

from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.directories import DirectoryCache
from frontdesk.store.practices import import_practice
from tests.support.world import NOW, PRACTICE


async def _practices(database: Database, count: int) -> list[int]:
    """Of three providers each."""
    return [await import_practice(database, parse(PRACTICE.replace("SLUG", f"p-{n}")), NOW) for n in range(count)]


async def test_directories_of_many_practices_take_bounded_memory_and_stay_right(database: Database) -> None:
    practices = await _practices(database, 5)
    cache = DirectoryCache(database, max_providers=10)
    for _ in range(2):
        for number, practice_id in enumerate(practices):
            assert (await cache.at(practice_id, 1)).directory.practice.slug == f"p-{number}"
            assert len(cache._cached) <= 2
    assert cache.version(practices[-1]) == 1
    assert cache.version(practices[0]) == -1, "dropped, and so nothing that rests on it is given again"


async def test_a_directory_larger_than_the_room_there_is_is_kept_alone(database: Database) -> None:
    [practice_id] = await _practices(database, 1)
    cache = DirectoryCache(database, max_providers=1)
    first = await cache.at(practice_id, 1)
    assert await cache.at(practice_id, 1) is first


async def test_many_who_ask_at_once_load_a_directory_once(database: Database) -> None:
    [practice_id] = await _practices(database, 1)
    cache = DirectoryCache(database)
    before = database.statements
    found = await asyncio.gather(*(cache.at(practice_id, 1) for _ in range(20)))
    assert database.statements - before == 1
    assert all(each is found[0] for each in found)
    assert len(cache._loading) == 0, "nobody waits any more"
