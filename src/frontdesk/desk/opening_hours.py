"""When providers are in at the locations of a practice."""

from collections.abc import Collection, Sequence
from datetime import date

from frontdesk.domain.availability import OpenTimes, merged
from frontdesk.domain.directory import Directory, Location, Provider


def open_spans(
    directory: Directory, provider: Provider, locations: Sequence[Location], day: date
) -> list[tuple[int, int]]:
    """When the provider is in at any of the locations, in minutes since 1970."""
    return merged(
        span
        for location in locations
        if location.id in provider.location_ids
        for span in OpenTimes(directory.practice, provider, location).open_spans(day)
    )


def somebody_works(
    directory: Directory, locations: Sequence[Location], provider_ids: Collection[int], day: date
) -> bool:
    """Whether a provider is in at any of the locations. No provider ids are all."""
    return any(
        provider.active
        and (not provider_ids or provider.id in provider_ids)
        and open_spans(directory, provider, locations, day)
        for provider in directory.providers.values()
    )
