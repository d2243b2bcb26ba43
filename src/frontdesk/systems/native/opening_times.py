"""Caches opening times per provider and location until the practice, the provider or the location changes."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from frontdesk.cache import BoundedCache
from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Directory, Location, Provider
from frontdesk.store.directories import StoredDirectory
from frontdesk.systems.offers import offered_pairs
from frontdesk.systems.port import SlotQuery

MAX_OFFERS = 3000  # over all practices; a few kilobytes each
_MAX_QUESTIONS = 100  # of one practice


class Offer(NamedTuple):
    """A provider at a location."""

    provider: Provider
    location: Location
    times: OpenTimes


class ProviderOffers(NamedTuple):
    """A provider at locations of one time zone."""

    provider: Provider
    time_zone: str
    location_ids: tuple[int, ...]  # ascending
    times: tuple[OpenTimes, ...]  # at each of these locations


class Offers:
    """Where a query may find slots, by provider."""

    __slots__ = ("each", "provider_ids", "time_zones")

    def __init__(self, each: Sequence[ProviderOffers]) -> None:
        self.each = each
        self.provider_ids = list(dict.fromkeys(offers.provider.id for offers in each))
        self.time_zones = {offers.time_zone: offers.times[0] for offers in each}
        """With the opening times of one offer there: what `OpenTimes.reach` says holds for all."""

    def within(self, time_zones: Set[str]) -> "Offers":
        return Offers([offers for offers in self.each if offers.time_zone in time_zones])


@dataclass(slots=True)
class _Practice:
    stored: StoredDirectory
    offers: dict[tuple[int, int], Offer]
    answers: BoundedCache[tuple[int, int, int | None, int | None], Offers] = field(
        default_factory=lambda: BoundedCache(_MAX_QUESTIONS)
    )


class OpeningTimesCache:
    def __init__(self, max_offers: int = MAX_OFFERS) -> None:
        self._practices: BoundedCache[int, _Practice] = BoundedCache(max_offers)

    def offer(self, practice_id: int, stored: StoredDirectory, provider: Provider, location: Location) -> Offer:
        practice = self._practice(practice_id, stored)
        pair = (provider.id, location.id)
        found = practice.offers.get(pair)
        if found is None:
            times = OpenTimes(stored.directory.practice, provider, location)
            found = practice.offers[pair] = Offer(provider, location, times)
            self._practices.put(practice_id, practice, weight=1 + len(practice.offers))
        return found

    def offers(self, practice_id: int, stored: StoredDirectory, query: SlotQuery) -> Offers:
        practice = self._practice(practice_id, stored)
        question = (query.visit_type_id, query.procedure_id, query.provider_id, query.location_id)
        found = practice.answers.get(question)
        if found is None:
            visit_type = stored.directory.visit_types.get(query.visit_type_id)
            procedure = visit_type.procedure(query.procedure_id) if visit_type is not None else None
            pairs: Iterable[tuple[Provider, Location]] = ()
            if visit_type is not None and procedure is not None:
                pairs = offered_pairs(stored.directory, visit_type, procedure, query)
            found = Offers(_by_provider(self.offer(practice_id, stored, *pair) for pair in pairs))
            practice.answers.put(question, found)
        return found

    def _practice(self, practice_id: int, stored: StoredDirectory) -> _Practice:
        known = self._practices.get(practice_id)
        if known is not None and known.stored is stored:
            return known
        offers = {} if known is None else _unchanged(known, stored.directory)
        practice = _Practice(stored, offers)
        self._practices.put(practice_id, practice, weight=1 + len(offers))
        return practice


def _by_provider(offers: Iterable[Offer]) -> list[ProviderOffers]:
    def place(offer: Offer) -> tuple[int, str]:
        return offer.provider.id, offer.location.time_zone

    ordered = sorted(offers, key=lambda offer: (*place(offer), offer.location.id))
    grouped = [[*group] for _, group in groupby(ordered, place)]
    return [
        ProviderOffers(
            group[0].provider,
            group[0].location.time_zone,
            tuple(offer.location.id for offer in group),
            tuple(offer.times for offer in group),
        )
        for group in grouped
    ]


def _unchanged(known: _Practice, directory: Directory) -> dict[tuple[int, int], Offer]:
    if known.stored.directory.practice != directory.practice:
        return {}
    return {
        (provider_id, location_id): offer
        for (provider_id, location_id), offer in known.offers.items()
        if directory.providers.get(provider_id) == offer.provider
        and directory.locations.get(location_id) == offer.location
    }
