"""The private folder in which several workers of a server share what they count."""

import os
import shutil
from itertools import count

from frontdesk.doors.worker_numbers import mark_as_ended
from frontdesk.privileges import worker_account
from frontdesk.serving.address import ServingError
from frontdesk.settings import Settings


class MetricsFolder:
    def __init__(self, settings: Settings) -> None:
        self._path = settings.metrics_folder
        self._ended = count()

    def clear(self) -> None:
        """Removes what an earlier server left. Call it with the address bound, before a worker counts anything."""
        if self._path is None:
            return
        try:
            if self._path.exists():
                shutil.rmtree(self._path)
            self._path.mkdir(mode=0o700, parents=True)
            if (account := worker_account()) is not None:
                os.chown(self._path, account.user, account.group)
        except OSError as error:
            raise ServingError(f"The folder {self._path} for metrics cannot be used: {error.strerror}.") from None

    def remove_worker(self, pid: int) -> None:
        """Removes a dead worker's gauges. What it counted stays in the totals."""
        if self._path is not None:
            mark_as_ended(self._path, pid, next(self._ended))
