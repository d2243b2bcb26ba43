"""Opens and closes what a server process runs: the database, the background work and the application."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from frontdesk.app import build_app, build_background, build_service
from frontdesk.doors.request_log import request_lines
from frontdesk.logs import configure_logging
from frontdesk.settings import Settings, load_settings
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres

_REVIVE_SECONDS = 1.0
_log = logging.getLogger(__name__)


def create() -> Any:
    """The application, configured by environment variables."""
    settings = load_settings()
    lines = configure_logging(settings.log_level)
    database = Database(
        settings.database_url or _embedded(settings.postgres_dir).dsn(SERVICE_ROLE),
        pool_size=settings.database_pool_size,
        on_unreachable=_reviver(settings) if settings.database_url is None else lambda: None,
    )
    service = build_service(settings, database, requests=request_lines(lines))
    background = build_background(service)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if settings.database_url is None:
            await asyncio.to_thread(_embedded(settings.postgres_dir).start)
        await database.open()
        await service.ring.load()
        background.start()
        gc.collect()
        gc.freeze()  # these objects live as long as the process: no later collection has to visit them
        try:
            with service.desk.live.closed_by_signals():
                yield
        finally:
            await background.stop()
            await service.desk.audit.close()
            await service.fhir.close()
            await database.close()
            lines.flush()

    return build_app(service, lifespan, background)


def _reviver(settings: Settings) -> Callable[[], None]:
    """Restarts the embedded server when it is gone, at most once a second, without blocking the event loop."""
    running: set[asyncio.Task[None]] = set()

    async def revive() -> None:
        try:
            await asyncio.to_thread(_embedded(settings.postgres_dir).start, 20)
        except Exception as error:  # the next failing statement asks again
            _log.warning("the embedded PostgreSQL could not be started again: %s", type(error).__name__)
        await asyncio.sleep(_REVIVE_SECONDS)

    def ask() -> None:
        if not running:
            task = asyncio.get_running_loop().create_task(revive())
            running.add(task)
            task.add_done_callback(running.discard)

    return ask


@lru_cache(maxsize=1)
def _embedded(home: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(home)
