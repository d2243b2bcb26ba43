"""Locations: list, add, change and remove them."""

from typing import Any

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.record_editor import RecordKind
from frontdesk.console.practice_forms.records import LOCATION
from frontdesk.domain.directory import Location

_LIST, _EDIT = "/practice/locations", "/practice/locations/edit"


async def _list(request: ConsoleRequest) -> Response:
    directory = (await request.desk.practice_file.opened(request.context)).directory
    providers = directory.providers.values()
    return request.render(
        "practice_locations.html",
        title=_("Locations"),
        locations=[
            (location, [each.name for each in providers if location.id in each.location_ids])
            for location in directory.locations.values()
        ],
        keeps_own_calendar=directory.practice.keeps_own_calendar,
    )


def _forget(document: dict[str, Any], location_id: int) -> None:
    """A provider has no hours at a location that is gone."""
    for provider in document.get("providers", []):
        provider["hours"] = [row for row in provider.get("hours", []) if row["location"] != location_id]


_KIND = RecordKind(
    noun="location",
    fields=LOCATION,
    blank=lambda directory: Location(0, "", directory.practice.time_zone),
    records=lambda directory, _: directory.locations,
    taken=lambda directory: directory.locations,
    parent=lambda document, _: (document, "locations"),
    section="locations",
    forget=_forget,
)

PAGES = (Page("GET", _LIST, _list, role="admin"), *_KIND.editor(_EDIT, _LIST).pages)
