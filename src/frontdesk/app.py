"""The composition root: the only file that knows everything. Builds the ASGI application from the settings."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route

from frontdesk.access.caller import Caller
from frontdesk.access.callers import Callers
from frontdesk.access.clients import AuthenticatedClient, authenticate
from frontdesk.access.keys import CURSORS, SLOT_IDS, KeyRing
from frontdesk.access.meter import Meter
from frontdesk.access.sealing import load_secret_key
from frontdesk.access.token_failures import TokenFailures
from frontdesk.access.tokens import Tokens
from frontdesk.domain.cursors import Cursors
from frontdesk.domain.slot_ids import SlotIds, practice_key
from frontdesk.doors import mcp
from frontdesk.doors.faults import UnexpectedErrors, exception_handlers
from frontdesk.doors.feeds import feed_routes
from frontdesk.doors.gateway import Gateway
from frontdesk.doors.health import health_routes
from frontdesk.doors.metrics import Metrics, metrics_routes
from frontdesk.doors.oauth import oauth_routes
from frontdesk.doors.pages import page_routes
from frontdesk.doors.rest import PREFIX, RestDoor
from frontdesk.engine.audit import AuditTrail
from frontdesk.engine.confirmation import Writes
from frontdesk.engine.execute import Engine
from frontdesk.engine.feeds import CalendarFeeds
from frontdesk.engine.housekeeping import keep_house
from frontdesk.engine.webhooks.delivering import Deliverer
from frontdesk.engine.webhooks.sending import Sender
from frontdesk.logs import configure_logging
from frontdesk.operations import OPERATIONS
from frontdesk.settings import Settings, load_settings
from frontdesk.store.changes import ChangeListener
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.directories import DirectoryCache
from frontdesk.store.embedded import EmbeddedPostgres
from frontdesk.store.migrate import unreadiness
from frontdesk.systems.fhir import FhirPractices
from frontdesk.systems.native import NativeCalendar, NativeSystem
from frontdesk.systems.port import SchedulingSystem

_REVIVE_SECONDS = 1.0
_EVERYTHING = frozenset(operation.name for operation in OPERATIONS)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service, for the doors, the command line and the tests."""

    settings: Settings
    database: Database
    ring: KeyRing
    tokens: Tokens
    callers: Callers
    meter: Meter
    token_failures: TokenFailures
    metrics: Metrics
    engine: Engine
    feeds: CalendarFeeds
    webhooks: Deliverer
    fhir: FhirPractices

    def on_change(self, kind: str, id: str) -> None:  # noqa: A002
        """Word of a change that another process made."""
        self.callers.on_change(kind, id)
        self.meter.on_change(kind, id)


def database_dsn(settings: Settings) -> str:
    """Where the service's statements go: the given database, or the embedded one under the data directory."""
    return settings.database_url or embedded(settings.postgres_dir).dsn(SERVICE_ROLE)


@lru_cache(maxsize=1)
def embedded(home: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(home)


def build_service(settings: Settings, database: Database, clock: Callable[[], datetime] | None = None) -> Service:
    """Wires the parts together; opens nothing."""
    now = clock or (lambda: datetime.now(UTC))
    sealer = load_secret_key(settings)
    ring = KeyRing(database, sealer, token_lifetime_seconds=settings.token_lifetime_seconds, clock=now)
    tokens = Tokens(ring, settings, clock=now)
    callers = Callers(database, tokens)
    audit = AuditTrail(database)
    directories = DirectoryCache(database)
    calendar = NativeCalendar(database, directories)
    fhir = FhirPractices(database, directories, clock=now, on_settled=audit.seal_soon)

    async def system_of(caller: Caller) -> SchedulingSystem:
        stored = await directories.at(caller.practice_id, caller.directory_version)
        if stored.directory.practice.scheduling_system["kind"] == "fhir":
            return await fhir.system(caller.practice_id, stored)
        return NativeSystem(calendar, caller.practice_id, caller.directory_version, _EVERYTHING)

    @lru_cache(maxsize=10_000)
    def slot_ids_under(practice_id: int, masters: tuple[bytes, ...]) -> SlotIds:
        newest, *older = (practice_key(master, practice_id) for master in masters)
        return SlotIds(newest, older)

    engine = Engine(
        callers=callers,
        systems=system_of,
        slot_ids=lambda practice_id: slot_ids_under(practice_id, tuple(ring.secrets(SLOT_IDS))),
        cursors=lambda practice_id: Cursors(ring.secrets(CURSORS), practice_id),
        audit=audit,
        writes=Writes(database, audit, timedelta(seconds=settings.confirmation_seconds)),
        clock=now,
    )
    return Service(
        settings=settings,
        database=database,
        ring=ring,
        tokens=tokens,
        callers=callers,
        meter=Meter(database),
        token_failures=TokenFailures(database),
        metrics=Metrics(database, settings),
        engine=engine,
        feeds=CalendarFeeds(database, system_of, audit, now),
        webhooks=Deliverer(
            database, sealer, Sender(allow_private=settings.webhook_allow_private), audit.seal_soon, now
        ),
        fhir=fhir,
    )


def build_app(service: Service, lifespan: Any = None) -> Gateway:
    """The doors of a service behind its gateway, as one ASGI application."""

    async def check_secret(client_id: str, secret: str, address: str | None) -> AuthenticatedClient:
        return await service.token_failures.guard(
            client_id, address, lambda: authenticate(service.database, service.ring, client_id, secret)
        )

    settings = service.settings
    routes: list[Route | Mount] = [
        *page_routes(settings),  # one of them lies under the prefix of the REST door
        Mount(PREFIX, app=RestDoor(service.engine, settings)),
        Route(mcp.PATH, mcp.McpDoor(service.engine, settings)),
        *oauth_routes(check_secret, service.tokens, service.ring, settings),
        *feed_routes(service.feeds),
        *health_routes(partial(unreadiness, service.database)),
        *metrics_routes(service.metrics, settings),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(UnexpectedErrors, settings=settings)],
        exception_handlers=exception_handlers(settings),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return Gateway(app, service.callers, service.meter, settings)


def create() -> Any:
    """What a server process runs: settings from the environment, everything opened and closed with the process."""
    settings = load_settings(os.environ)
    configure_logging(settings.log_level)
    database = Database(
        database_dsn(settings),
        pool_size=settings.database_pool_size,
        on_unreachable=_reviver(settings) if settings.database_url is None else None,
    )
    service = build_service(settings, database)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if settings.database_url is None:
            await asyncio.to_thread(embedded(settings.postgres_dir).start)
        await database.open()
        await service.ring.load()
        listener = ChangeListener(database_dsn(settings), service.on_change)
        listener.start()
        tasks = [
            asyncio.create_task(service.ring.keep_fresh(), name="keys"),
            asyncio.create_task(service.engine.audit.keep_sealing(), name="audit-sealer"),
            asyncio.create_task(keep_house(database), name="housekeeping"),
            asyncio.create_task(service.webhooks.keep_delivering(), name="webhooks"),
            asyncio.create_task(service.meter.keep_reporting(), name="meter"),
            asyncio.create_task(service.token_failures.keep_forgetting(), name="token-failures"),
            asyncio.create_task(service.fhir.reconciler.keep_settling(), name="fhir-reconciler"),
        ]
        if settings.metrics_token is not None:
            tasks.append(asyncio.create_task(service.metrics.keep_publishing(), name="metrics"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await listener.stop()
            await service.fhir.close()
            await database.close()

    return build_app(service, lifespan)


def _reviver(settings: Settings) -> Callable[[], None]:
    """Starts the embedded server again when it has gone, at most once a second, beside the event loop."""
    running: set[asyncio.Task[None]] = set()

    async def revive() -> None:
        try:
            await asyncio.to_thread(embedded(settings.postgres_dir).start, 20)
        except Exception as error:  # whatever it is, the next failing statement asks again
            _log.warning("the embedded PostgreSQL could not be started again: %s", type(error).__name__)
        await asyncio.sleep(_REVIVE_SECONDS)

    def ask() -> None:
        if not running:
            task = asyncio.get_running_loop().create_task(revive())
            running.add(task)
            task.add_done_callback(running.discard)

    return ask
