"""The private folder in which the workers of a server share what they count, as prometheus_client asks for it."""

import os
import shutil
from pathlib import Path

from frontdesk.privileges import service_account
from frontdesk.serving.address import ServingError
from frontdesk.settings import Settings

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class MetricsFolder:
    """Used only where a metrics token is set. Named after the address, which no other server can have."""

    def __init__(self, settings: Settings, address: str) -> None:
        self._path: Path | None = None
        self._run_as = settings.run_as
        if settings.metrics_token is not None:
            self._path = settings.data_dir / "metrics" / f"{address}-{settings.port}"
            os.environ[_VARIABLE] = str(self._path)  # how it reaches the workers

    def clear(self) -> None:
        """Removes what an earlier server left. Call it with the address bound, before a worker counts anything."""
        if self._path is None:
            return
        try:
            if self._path.exists():
                shutil.rmtree(self._path)
            self._path.mkdir(mode=0o700, parents=True)
            if (account := service_account(self._run_as)) is not None:
                os.chown(self._path, account.user, account.group)
        except OSError as error:
            raise ServingError(f"The folder {self._path} for metrics cannot be used: {error.strerror}.") from None

    def remove_worker(self, pid: int) -> None:
        """Removes a dead worker's gauges. What it counted stays in the totals."""
        if self._path is not None:
            from prometheus_client.multiprocess import mark_process_dead

            mark_process_dead(pid, str(self._path))  # type: ignore[no-untyped-call]
