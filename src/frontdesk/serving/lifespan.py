"""Opens and closes what a server process runs: the database, the background work and the application."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable

from starlette.applications import Starlette
from starlette.types import ASGIApp

from frontdesk.access.keys.encryption import read_secrets
from frontdesk.app import build_app, build_background, build_service
from frontdesk.logs import configure_logging
from frontdesk.serving.traces import start_tracing
from frontdesk.settings import load_settings
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.web.request_log import request_lines


def create(on_database_down: Callable[[], None]) -> ASGIApp:
    """The application, configured by environment variables."""
    settings = load_settings()
    lines = configure_logging(settings.log_level)
    requests = request_lines(lines)
    stop_tracing = start_tracing(settings, lines, requests)
    database = Database(
        settings.database_url or EmbeddedPostgres(settings.postgres_dir).dsn(SERVICE_ROLE),
        pool_size=settings.database_pool_size,
        pooled=settings.direct_database_url is not None,
        on_unreachable=on_database_down,
    )
    read_secrets(settings)  # the command has made the secret key: a missing one is lost, and is not made anew
    service = build_service(settings, database, requests=requests)
    background = build_background(service)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            await database.open()
        except Exception:
            on_database_down()
            raise
        await service.ring.load()
        background.start()
        gc.collect()
        gc.freeze()  # these objects live as long as the process: no later collection has to visit them
        try:
            yield
        finally:
            await background.stop()
            await service.desk.audit.close()
            if service.sign_in_mail is not None:
                await service.sign_in_mail.close()
            await service.fhir.close()
            await database.close()
            await asyncio.to_thread(stop_tracing)
            lines.flush()

    return build_app(service, lifespan, background)
