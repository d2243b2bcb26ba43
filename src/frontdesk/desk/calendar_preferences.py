"""How a staff member wants the calendar, and in which language the console, kept with the staff member."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import orjson

from frontdesk.desk.context import ActionContext
from frontdesk.domain.directory import Directory
from frontdesk.store.database import Database

Density = Literal["compact", "normal", "roomy"]
Colours = Literal["state", "visit"]
DENSITIES: tuple[Density, ...] = get_args(Density)
COLOURS: tuple[Colours, ...] = get_args(Colours)
ZOOMS = (60, 80, 100, 125, 150, 200, 300)  # percent of the row height

_READ = "SELECT calendar FROM staff WHERE staff_id = $1"
_SAVE = "UPDATE staff SET calendar = $2::jsonb WHERE staff_id = $1"

_SAVE_LANGUAGE = "UPDATE staff SET language = $2 WHERE staff_id = $1"


@dataclass(frozen=True, slots=True)
class CalendarPreferences:
    """No providers or visit types are all of them."""

    density: Density = "normal"
    zoom: int = 100
    colours: Colours = "state"
    providers: tuple[int, ...] = ()
    visit_types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Preferences:
    database: Database

    async def read(self, context: ActionContext, directory: Directory) -> CalendarPreferences:
        """Reads the preferences, without providers and visit types that the practice no longer has."""
        stored = await self.database.fetchval(_READ, context.staff.staff_id)
        return CalendarPreferences() if stored is None else _checked(orjson.loads(stored), directory)

    async def save(
        self, context: ActionContext, wanted: dict[str, object], directory: Directory
    ) -> CalendarPreferences:
        """What is not valid counts as not chosen."""
        checked = _checked(wanted, directory)
        await self.database.fetchval(_SAVE, context.staff.staff_id, orjson.dumps(asdict(checked)).decode())
        return checked

    async def choose_language(self, context: ActionContext, chosen: str | None) -> None:
        """None follows the browser."""
        await self.database.fetchval(_SAVE_LANGUAGE, context.staff.staff_id, chosen)


def _checked(given: dict[str, Any], directory: Directory) -> CalendarPreferences:
    default = CalendarPreferences()
    active = [each.id for each in directory.providers.values() if each.active]
    return CalendarPreferences(
        next((each for each in DENSITIES if each == given.get("density")), default.density),
        next((each for each in ZOOMS if each == given.get("zoom")), default.zoom),
        next((each for each in COLOURS if each == given.get("colours")), default.colours),
        _known_ids(given.get("providers", ()), active),
        _known_ids(given.get("visit_types", ()), directory.visit_types),
    )


def _known_ids(wanted: Iterable[int], known: Iterable[int]) -> tuple[int, ...]:
    """Those of the known ids that are wanted; none where that is every one."""
    ids = tuple(known)
    kept = tuple(sorted(set(wanted) & set(ids)))
    return () if len(kept) == len(ids) else kept
