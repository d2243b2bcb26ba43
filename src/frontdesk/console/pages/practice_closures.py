"""Closures of locations: list, add and remove them, also from the public holidays of a country."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from starlette.responses import Response

from frontdesk.console.forms import Form, read_id
from frontdesk.console.guard import ConsoleRequest
from frontdesk.console.language import gettext as _
from frontdesk.console.language import language
from frontdesk.console.practice_forms import public_holidays
from frontdesk.console.practice_forms.documents import copied, require_own_calendar
from frontdesk.console.practice_forms.editor import Act, Editor
from frontdesk.console.practice_forms.fields import Edited
from frontdesk.desk.practice_files import OpenedPractice
from frontdesk.domain.directory import Closure
from frontdesk.texts import N_

_LIST, _HOLIDAYS = "/practice/closures", "/practice/closures/holidays"
_LABELS = {"from": N_("First day"), "to": N_("Last day"), "reason": N_("Reason")}
_YEARS_AHEAD = 2
_NO_LOCATION = {"location": N_("Choose at least one location.")}
_NO_DAY = {"day": N_("Choose at least one day.")}

Row = dict[str, Any]


# Days that somebody types


def _typed(opened: OpenedPractice, _query: Mapping[str, str]) -> Form:
    return Form({"location": [str(key) for key in opened.directory.locations]})


def _values(opened: OpenedPractice, form: Form) -> dict[str, object]:
    locations = opened.directory.locations.values()
    rows = [(location, row) for location in locations for row in location.closures if row.last >= opened.today]
    return {
        "closures": sorted(rows, key=lambda each: (each[1].first, each[0].id)),
        "locations": _ticked(opened, form),
    }


def _ticked(opened: OpenedPractice, form: Form) -> list[tuple[int, str, bool]]:
    chosen = form.all("location")
    return [(each.id, each.name, str(each.id) in chosen) for each in opened.directory.locations.values()]


def _act(opened: OpenedPractice, form: Form) -> Act:
    title = _("Open again") if form.get("remove") else _("Close locations")
    return Act(title, "console.change_closures", [f"location {key}" for key in _chosen(opened, form)])


def _chosen(opened: OpenedPractice, form: Form) -> list[int]:
    chosen = {read_id(key) for key in form.all("location")}
    return [key for key in opened.directory.locations if key in chosen]


def _edit(opened: OpenedPractice, form: Form) -> Edited:
    require_own_calendar(opened)
    document, chosen = copied(opened), _chosen(opened, form)
    given = {key: form.get(key) for key in _LABELS if form.get(key)}
    if form.get("remove"):
        for location in _locations(document, chosen):
            location["closures"] = [row for row in location.get("closures", []) if not _is_same(row, given)]
        return Edited(document, {}, {})
    if "to" not in given and "from" in given:
        given["to"] = given["from"]
    controls: dict[str, str] = {}
    for index, location in enumerate(document.get("locations", [])):
        if location["id"] in chosen and not any(_is_same(row, given) for row in location.get("closures", [])):
            location["closures"] = [*location.get("closures", []), given]
            path = f"locations[{index}].closures[{len(location['closures']) - 1}]"
            controls |= {f"{path}.{key}": key for key in _LABELS}
    return Edited(document, controls, _shown(_LABELS), _shown({} if chosen else _NO_LOCATION))


def _shown(texts: Mapping[str, str]) -> dict[str, str]:
    return {key: _(text) for key, text in texts.items()}


def _is_same(row: Row, given: Row) -> bool:
    return (row["from"], row["to"]) == (given.get("from"), given.get("to"))


def _locations(document: dict[str, Any], chosen: Iterable[int]) -> list[Row]:
    return [location for location in document.get("locations", []) if location["id"] in chosen]


# Public holidays


def _typed_holidays(opened: OpenedPractice, query: Mapping[str, str]) -> Form:
    country, region, year = query.get("country"), query.get("region", ""), query.get("year", "")
    if country is None:
        country = _own_country(opened)
    given = {
        "country": country,
        "region": region if region in dict(_regions(country)) else "",  # another country was chosen
        "year": year if year in _years(opened) else _years(opened)[0],
    }
    everywhere = [str(key) for key in opened.directory.locations]
    return Form({**{name: [value] for name, value in given.items()}, "location": everywhere})


def _regions(country: str) -> public_holidays.Choices:
    return public_holidays.regions(country) if country in dict(public_holidays.countries()) else []


def _own_country(opened: OpenedPractice) -> str:
    """The country of the first location that names one."""
    addresses = [location.address or {} for location in opened.directory.locations.values()]
    stated = [address["country"].strip().casefold() for address in addresses if "country" in address]
    known = {each.casefold(): code for code, name in public_holidays.countries() for each in (code, name)}
    return next((known[each] for each in stated if each in known), "")


def _years(opened: OpenedPractice) -> list[str]:
    return [str(opened.today.year + ahead) for ahead in range(_YEARS_AHEAD + 1)]


def _offered(opened: OpenedPractice, form: Form) -> list[tuple[date, str]]:
    """The holidays that are still ahead; none if country, region or year are unknown."""
    country, region, year = (form.get(name) for name in ("country", "region", "year"))
    if country not in dict(public_holidays.countries()) or year not in _years(opened):
        return []
    if region and region not in dict(_regions(country)):
        return []
    found = public_holidays.public_holidays(country, region, int(year), language())
    return [(day, name) for day, name in found if day >= opened.today]


def _holiday_values(opened: OpenedPractice, form: Form) -> dict[str, object]:
    chosen = form.all("day")
    locations = opened.directory.locations.values()
    return {
        "countries": public_holidays.countries_in(language()),
        "regions": _regions(form.get("country")),
        "years": [(year, year) for year in _years(opened)],
        "locations": _ticked(opened, form),
        "holidays": [
            (day, name, day.isoformat() in chosen, [each.name for each in locations if _is_closed(each.closures, day)])
            for day, name in _offered(opened, form)
        ],
    }


def _is_closed(closures: Iterable[Closure], day: date) -> bool:
    return any(row.first <= day <= row.last for row in closures)


def _holiday_act(opened: OpenedPractice, form: Form) -> Act:
    return replace(_act(opened, form), title=_("Public holidays"))


def _edit_holidays(opened: OpenedPractice, form: Form) -> Edited:
    require_own_calendar(opened)
    document, chosen = copied(opened), _chosen(opened, form)
    days = [(day, name) for day, name in _offered(opened, form) if day.isoformat() in form.all("day")]
    for location in _locations(document, chosen):
        closures = opened.directory.locations[location["id"]].closures
        new = [
            {"from": day.isoformat(), "to": day.isoformat(), "reason": name}
            for day, name in days
            if not _is_closed(closures, day)
        ]
        location["closures"] = [*location.get("closures", []), *new]
    return Edited(document, {}, {}, _shown(({} if chosen else _NO_LOCATION) | ({} if days else _NO_DAY)))


def _with_library(
    handler: Callable[[ConsoleRequest], Awaitable[Response]],
) -> Callable[[ConsoleRequest], Awaitable[Response]]:
    async def answer(request: ConsoleRequest) -> Response:
        await asyncio.to_thread(public_holidays.load)
        return await handler(request)

    return answer


_CLOSURES = Editor(_LIST, _LIST, "practice_closures.html", _typed, _values, _act, _edit)
_OF_HOLIDAYS = Editor(
    _HOLIDAYS, _LIST, "practice_holidays.html", _typed_holidays, _holiday_values, _holiday_act, _edit_holidays
)
PAGES = (
    *_CLOSURES.pages,
    *(replace(page, handler=_with_library(page.handler)) for page in _OF_HOLIDAYS.pages),
)
