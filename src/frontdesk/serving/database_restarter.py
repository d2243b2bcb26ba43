"""Restarts the embedded PostgreSQL when a worker finds it gone."""

import logging
import threading
import time

from frontdesk.settings import Settings

_START_SECONDS = 20
_PAUSE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class DatabaseRestarter:
    """Works in a thread, so that the supervisor can go on, and at most once a second."""

    def __init__(self, settings: Settings) -> None:
        self._home = settings.postgres_dir if settings.database_url is None else None
        self._running = threading.Lock()

    def restart(self) -> None:
        if self._home is not None and self._running.acquire(blocking=False):
            threading.Thread(target=self._restart, daemon=True).start()

    def _restart(self) -> None:
        from frontdesk.store.embedded.server import EmbeddedPostgres  # imported late, while the workers start

        assert self._home is not None
        server = EmbeddedPostgres(self._home)
        try:
            server.start(_START_SECONDS)
        except Exception as error:  # the next failing statement asks again
            _log.warning("the embedded PostgreSQL could not be started again: %s", type(error).__name__)
        finally:
            server.stop()  # this process uses it already
            time.sleep(_PAUSE_SECONDS)
            self._running.release()
