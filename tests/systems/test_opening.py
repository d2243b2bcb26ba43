"""Opening times are worked out anew where something about them changed, and only there."""

from dataclasses import replace
from datetime import date

from frontdesk.domain.directory import (
    Closure,
    Directory,
    Location,
    OpeningHours,
    Practice,
    Procedure,
    Provider,
    VisitType,
)
from frontdesk.store.directories import StoredDirectory
from frontdesk.systems.native.opening_times import OpeningTimesCache
from frontdesk.systems.port import SlotQuery

HOURS = tuple(OpeningHours(location, frozenset(range(5)), 540, 1020) for location in (1, 2))
DIRECTORY = Directory(
    Practice("harbor", "Harbor", "UTC"),
    {number: Location(number, f"L{number}", "UTC") for number in (1, 2)},
    {number: Provider(number, f"P{number}", hours=HOURS) for number in (10, 11)},
    {20: VisitType(20, "Visit", "any", procedures=(Procedure(100, "Visit", 30),))},
)
ANYWHERE = SlotQuery(20, 100, None, None, None, None)


def times(opening: OpeningTimesCache, stored: StoredDirectory) -> dict[tuple[int, int], int]:
    return {
        (offers.provider.id, location_id): id(known)
        for offers in opening.offers(1, stored, ANYWHERE).each
        for location_id, known in zip(offers.location_ids, offers.times, strict=True)
    }


def test_a_new_version_keeps_the_times_of_whom_it_did_not_change() -> None:
    opening = OpeningTimesCache()
    first = StoredDirectory(1, DIRECTORY)
    before = times(opening, first)
    assert before.keys() == {(10, 1), (10, 2), (11, 1), (11, 2)}
    assert times(opening, first) == before
    closed = replace(DIRECTORY.locations[2], closures=(Closure(date(2026, 12, 24), date(2026, 12, 26)),))
    changed = replace(DIRECTORY, locations={**DIRECTORY.locations, 2: closed})
    kept = opening.offers(1, first, ANYWHERE)  # so that no other object gets its identity
    after = times(opening, StoredDirectory(2, changed))
    assert {pair for pair in before if before[pair] == after[pair]} == {(10, 1), (11, 1)}
    assert len(kept.each) == 2


def test_a_change_of_the_practice_s_own_rules_changes_all_times() -> None:
    opening = OpeningTimesCache()
    kept = opening.offers(1, StoredDirectory(1, DIRECTORY), ANYWHERE)
    finer = replace(DIRECTORY, practice=replace(DIRECTORY.practice, slot_interval_minutes=10))
    before = {id(known) for offers in kept.each for known in offers.times}
    assert len(before) == 4
    assert not before & {*times(opening, StoredDirectory(2, finer)).values()}


def test_offers_of_many_practices_take_bounded_memory() -> None:
    opening = OpeningTimesCache(max_offers=9)
    for practice_id in range(1, 8):
        offers = opening.offers(practice_id, StoredDirectory(1, DIRECTORY), ANYWHERE).each
        assert [len(each.times) for each in offers] == [2, 2]
        assert sum(len(each.offers) for each in opening._practices.values()) <= 9


def test_questions_about_everything_under_the_sun_take_bounded_memory() -> None:
    opening, stored = OpeningTimesCache(), StoredDirectory(1, DIRECTORY)
    for number in range(1000):
        assert opening.offers(1, stored, replace(ANYWHERE, provider_id=1000 + number)).each == []
    practice = opening._practices.get(1)
    assert practice is not None
    assert len(practice.answers) <= 100
