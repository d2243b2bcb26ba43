"""Open times by day, for booking and moving an appointment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from urllib.parse import urlencode

from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.domain.directory import Directory, Provider
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import local_date, minute_of

_CARRIED = ("provider", "location", "date", "visit")
_DAYS = 7
_MAX_SLOTS = 200
_MAX_SLOTS_ANYWHERE = 50


@dataclass(frozen=True, slots=True)
class SlotChoices:
    """Open slots of one provider at one location on one day: ids and local starts."""

    provider: str
    location: str
    starts: list[tuple[str, datetime]]


@dataclass(frozen=True, slots=True)
class SlotChoice:
    """Open times from `first` on. `later` is the date of the next page; unless `is_complete`, these days have more."""

    first: date
    provider_id: int | None
    location_id: int | None
    providers: Sequence[tuple[object, str]]
    locations: Sequence[tuple[object, str]]
    days: Sequence[tuple[date, Sequence[SlotChoices]]]
    is_complete: bool
    earlier: date | None
    later: date | None


async def slot_choice(
    request: ConsoleRequest,
    *,
    visit_type_id: int,
    procedure_id: int,
    provider_id: int | None = None,
    location_id: int | None = None,
    day: date | None = None,
) -> SlotChoice:
    """Searches by the query string, else by the given provider, location and day; None is any."""
    asked = request.http.query_params
    directory = await request.desk.calendar.directory(request.context)
    supports = await request.desk.patients.supports(request.context)
    if "provider" in asked:
        provider_id = read_id(asked["provider"])
    if "location" in asked:
        location_id = read_id(asked["location"])
    performing = [each for each in directory.providers.values() if each.active and each.performs(procedure_id)]
    today = local_date(minute_of(request.context.now), request.session.time_zone)
    first = max(read_day(asked.get("date", "")) or day or today, today)
    arguments: dict[str, object] = {
        "visitTypeId": visit_type_id,
        "procedureId": procedure_id,
        "from": first.isoformat(),
    }
    one_place = provider_id is not None and location_id is not None
    if not one_place and "find_first_available" not in supports:
        raise Problem("capability_not_supported")
    if one_place:
        arguments |= {"providerId": provider_id, "locationId": location_id, "limit": _MAX_SLOTS}
        arguments["to"] = (first + timedelta(days=_DAYS - 1)).isoformat()
        found = await request.run("search_slots", arguments)
    else:
        named = {"providerId": provider_id, "locationId": location_id, "limit": _MAX_SLOTS_ANYWHERE}
        arguments |= {name: value for name, value in named.items() if value is not None}
        found = await request.run("find_first_available", arguments)
    by_day: dict[date, dict[tuple[int, int], SlotChoices]] = {}
    for item in found["items"]:
        start, place = datetime.fromisoformat(item["start"]), (item["providerId"], item["locationId"])
        there = by_day.setdefault(start.date(), {}).setdefault(
            place, SlotChoices(directory.providers[place[0]].name, directory.locations[place[1]].name, [])
        )
        there.starts.append((item["id"], start))
    last = max(by_day, default=first)
    later = first + timedelta(days=_DAYS) if one_place else last + timedelta(days=1)
    horizon = today + timedelta(days=directory.practice.booking_horizon_days)
    return SlotChoice(
        first=first,
        provider_id=provider_id,
        location_id=location_id,
        providers=[("", _("Any provider")), *((each.id, each.name) for each in performing)],
        locations=[("", _("Any location")), *_places(directory, performing)],
        days=[(day, [places[place] for place in sorted(places)]) for day, places in sorted(by_day.items())],
        is_complete=one_place or len(found["items"]) < _MAX_SLOTS_ANYWHERE,
        earlier=max(first - timedelta(days=_DAYS), today) if first > today else None,
        later=later if later <= horizon else None,
    )


def next_step_query(request: ConsoleRequest) -> str:
    """The query string for the next step: provider, location, date and visit."""
    asked = request.http.query_params
    kept = {name: asked[name] for name in _CARRIED if name in asked}
    for name in ("provider", "location"):
        if name in kept and read_id(kept[name]) is None:
            del kept[name]
    if "date" in kept and read_day(kept["date"]) is None:
        del kept["date"]
    return "?" + urlencode(kept) if kept else ""


def _places(directory: Directory, performing: Sequence[Provider]) -> list[tuple[object, str]]:
    places = {location_id for provider in performing for location_id in provider.location_ids}
    return [(each.id, each.name) for each in directory.locations.values() if each.active and each.id in places]
