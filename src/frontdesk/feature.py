"""What a feature may bring, and what the core lends to it. The core iterates over `features()` and knows none by name.

A feature is a folder of `frontdesk.features`. Its `__init__.py` states facts and is imported wherever they are needed;
its `parts.py` names what runs and is imported when the first part is used.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from frontdesk.access.clients.records import ClientRecord
    from frontdesk.access.clients.tokens import Tokens
    from frontdesk.access.keys.ring import KeyRing
    from frontdesk.access.limits.failed_attempts import FailedAttempts
    from frontdesk.audit.heads import AuditHeads
    from frontdesk.audit.sentences import Action
    from frontdesk.background import Step
    from frontdesk.cli.commands import Commands
    from frontdesk.console.guard import Console, Page
    from frontdesk.console.navigation import NavItem
    from frontdesk.console.panels import About, Panel, PatientsPanel, ShownDays
    from frontdesk.desk.arrivals import MarkVisits
    from frontdesk.domain.consent import Consent
    from frontdesk.doors.fhir.pending import PendingAppointments
    from frontdesk.doors.metrics import Metrics
    from frontdesk.engine.execute import Engine
    from frontdesk.operations import Operation
    from frontdesk.practice_file.part import FeaturePart
    from frontdesk.settings import Settings
    from frontdesk.store.database import Database

T = TypeVar("T")
StoredFeatures = Mapping[str, Mapping[str, object]]
"""What a practice has set, by feature: values that differ from their defaults."""
_PACKAGE = "frontdesk.features"


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What a feature's services and steps are built from."""

    settings: "Settings"
    database: "Database"
    tokens: "Tokens"
    keys: "KeyRing"
    audit_heads: "AuditHeads"
    failed_attempts: "FailedAttempts"
    engine: "Engine"
    on_calendar_change: Callable[[int], None]
    clock: Callable[[], datetime]


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What a feature adds to the core, each named as in the core."""

    operations: "tuple[Operation, ...]" = ()  # listed only to tokens that hold their scopes
    pending_appointments: "PendingAppointments | None" = None  # at the FHIR door
    actions: "tuple[Action, ...]" = ()  # that audit records name besides operations
    actors: Mapping[str, str] = field(default_factory=dict)  # what they are called, by the prefix of their ids
    pages: "tuple[Page, ...]" = ()  # of the console; their templates and texts are in the feature's folder
    navigation: "Mapping[str, tuple[NavItem, ...]]" = field(default_factory=dict)  # by the title of their group
    covers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sections that mark an entry of the menu as current, by the path of the entry."""
    notices: Mapping[str, str] = field(default_factory=dict)  # shown after an action, by the key in the address
    practice_tabs: tuple[tuple[str, str], ...] = ()  # path and title, on the page of the practice
    search_links: tuple[tuple[str, str], ...] = ()  # path and title, where the set-up asks for a first search
    panels: "tuple[Panel[About], ...]" = ()  # on the pages of patients and appointments
    calendar_panels: "tuple[Panel[ShownDays | None], ...]" = ()
    block_panels: "tuple[Panel[Mapping[str, str]], ...]" = ()  # before time with appointments in it is blocked
    client_panels: "tuple[Panel[ClientRecord], ...]" = ()  # on the pages of clients
    patients_panels: "tuple[PatientsPanel, ...]" = ()  # on pages that patients open themselves
    mark_visits: "MarkVisits | None" = None  # what the arrivals board says of a visit
    routes: "Callable[[Console], Iterable[BaseRoute]]" = lambda _console: ()  # for everybody
    services: "Callable[[Core], Iterable[object]]" = lambda _core: ()
    """What its operations, pages and steps work with; each finds one by its class in `Services`."""
    steps: "Callable[[Core, Services], Iterable[Step]]" = lambda _core, _services: ()  # of the background's work
    measure: "Callable[[Metrics, Services], None]" = lambda _metrics, _services: None  # adds its metrics


@dataclass(frozen=True, kw_only=True, eq=False)
class Feature:
    """The facts of a feature, and its parts."""

    name: str  # of its folder, and its key in the practice file
    title: str  # marked for translation
    about: str  # for those who switch it on or off; marked for translation
    settings: "type[FeaturePart] | None" = None  # in the practice file; None: it has none but `enabled`
    scopes: Mapping[str, str] = field(default_factory=dict)
    """What each lets a client do. No client holds one that it was not given by name."""
    events: tuple[str, ...] = ()  # types of webhook events
    approvals: "tuple[Consent, ...]" = ()  # kinds of consent that people give to a pending write on its pages
    has_commands: bool = False  # in `commands.py`, which the command line imports without the other parts

    def is_enabled(self, stored: StoredFeatures) -> bool:
        return stored.get(self.name, {}).get("enabled", True) is True

    @cached_property
    def folder(self) -> Path:
        return Path(cast(str, import_module(f"{_PACKAGE}.{self.name}").__file__)).parent

    @cached_property
    def parts(self) -> Parts:
        parts: Parts = import_module(f"{_PACKAGE}.{self.name}.parts").PARTS
        return parts

    def add_commands(self, commands: "Commands") -> None:
        if self.has_commands:
            import_module(f"{_PACKAGE}.{self.name}.commands").add_commands(commands)


class Services:
    """The services of all features, each found by its class."""

    def __init__(self) -> None:
        self._found: dict[type[object], object] = {}
        self.steps: list[Step] = []

    def build(self, core: Core) -> None:
        for feature in features():
            self._found |= {type(service): service for service in feature.parts.services(core)}
            self.steps += feature.parts.steps(core, self)

    def measure(self, metrics: "Metrics") -> None:
        for feature in features():
            feature.parts.measure(metrics, self)

    def __getitem__(self, kind: type[T]) -> T:
        return cast(T, self._found[kind])


@cache
def features() -> tuple[Feature, ...]:
    """Imported by name, because every layer reads the list and the features stand above all layers."""
    return tuple(import_module(f"{_PACKAGE}.{name}").FEATURE for name in import_module(_PACKAGE).FEATURES)


def features_of(stored: StoredFeatures) -> tuple[Feature, ...]:
    """Those that a practice has not switched off."""
    return tuple(feature for feature in features() if feature.is_enabled(stored))
