"""What a server process runs: the service opened, kept working in the background, and closed again.

Owns the background tasks and the order in which things open and close. Brings the embedded PostgreSQL back when it has
gone, beside the event loop.
"""

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from frontdesk.app import build_app, build_service
from frontdesk.doors.request_log import request_lines
from frontdesk.housekeeping import keep_house
from frontdesk.logs import configure_logging
from frontdesk.settings import Settings, load_settings
from frontdesk.store.changes import ChangeListener
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres

_REVIVE_SECONDS = 1.0
_log = logging.getLogger(__name__)


def create() -> Any:
    """Settings from the environment, everything opened and closed with the process."""
    settings = load_settings()
    lines = configure_logging(settings.log_level)
    database = Database(
        _database_dsn(settings),
        pool_size=settings.database_pool_size,
        on_unreachable=_reviver(settings) if settings.database_url is None else None,
    )
    service = build_service(settings, database, requests=request_lines(lines))

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if settings.database_url is None:
            await asyncio.to_thread(_embedded(settings.postgres_dir).start)
        await database.open()
        await service.ring.load()
        listener = ChangeListener(_database_dsn(settings), service.on_change, service.desk.live.look_again)
        listener.start()
        tasks = [
            asyncio.create_task(service.ring.keep_fresh(), name="keys"),
            asyncio.create_task(service.engine.audit.keep_sealing(), name="audit-sealer"),
            asyncio.create_task(service.announcer.keep_announcing(), name="announcer"),
            asyncio.create_task(keep_house(database, service.engine.audit.find_unsealed), name="housekeeping"),
            asyncio.create_task(service.webhooks.keep_delivering(), name="webhooks"),
            asyncio.create_task(service.limiter.keep_reporting(), name="rate-limiter"),
            asyncio.create_task(service.usage.keep_writing(), name="request-counts"),
            asyncio.create_task(service.token_failures.keep_forgetting(), name="token-failures"),
            asyncio.create_task(service.fhir.reconciler.keep_settling(), name="fhir-reconciler"),
        ]
        if service.metrics is not None:
            tasks.append(asyncio.create_task(service.metrics.keep_publishing(), name="metrics"))
        gc.collect()
        gc.freeze()  # what was made until now lives as long as the process: no collection has to look at it again
        try:
            with service.desk.live.closed_by_signals():
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await listener.stop()
            await service.desk.audit.close()
            await service.fhir.close()
            await database.close()
            lines.flush()

    return build_app(service, lifespan)


def _reviver(settings: Settings) -> Callable[[], None]:
    """Starts the embedded server again when it has gone, at most once a second, beside the event loop."""
    running: set[asyncio.Task[None]] = set()

    async def revive() -> None:
        try:
            await asyncio.to_thread(_embedded(settings.postgres_dir).start, 20)
        except Exception as error:  # whatever it is, the next failing statement asks again
            _log.warning("the embedded PostgreSQL could not be started again: %s", type(error).__name__)
        await asyncio.sleep(_REVIVE_SECONDS)

    def ask() -> None:
        if not running:
            task = asyncio.get_running_loop().create_task(revive())
            running.add(task)
            task.add_done_callback(running.discard)

    return ask


def _database_dsn(settings: Settings) -> str:
    """Where the service's statements go: the given database, or the embedded one under the data directory."""
    return settings.database_url or _embedded(settings.postgres_dir).dsn(SERVICE_ROLE)


@lru_cache(maxsize=1)
def _embedded(home: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(home)
