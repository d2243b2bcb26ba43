"""The file of numbers that a worker shares with the others, with its room on the disk reserved before it is used."""

import logging
import time
from contextlib import suppress
from pathlib import Path

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

_FIRST_BYTES = 1 << 16  # what the library begins with; then it doubles
_AROUND_KEY = 32  # bytes of a value beside its key, at most
_RETRY_SECONDS = 5.0
_log = logging.getLogger(__name__)


class ReservedFile:
    """A file that the library maps into memory. It would be sparse, and a write to a page that a full disk has no room
    for ends the process by SIGBUS: so zeros are written first.

    Without room, a number stays in the worker until it changes while there is some.
    """

    _has_room = True  # of all files together: a full disk is one line in the log

    def __init__(self, filename: str) -> None:
        self._path = Path(filename)
        self._file: MmapedDict | None = None
        self._known: set[str] = set()
        self._retry_at = 0.0

    def read_value(self, key: str) -> tuple[float, float]:
        file = self._file_for(key)
        return (0.0, 0.0) if file is None else file.read_value(key)  # type: ignore[no-untyped-call]

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        file = self._file_for(key)
        if file is not None:
            file.write_value(key, value, timestamp)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()  # type: ignore[no-untyped-call]

    def _file_for(self, key: str) -> MmapedDict | None:
        """None: there is no room for this key."""
        if key in self._known:
            return self._file
        if time.monotonic() < self._retry_at:
            return None
        try:
            if self._file is None:
                self._file = self._created()
            elif self._file._used + len(key) + _AROUND_KEY > self._file._capacity:
                self._reserve(2 * self._file._capacity)
        except OSError as error:
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            if ReservedFile._has_room:
                _log.error("metrics are incomplete, their folder cannot be written to: %s", error.strerror)
            ReservedFile._has_room = False
            return None
        self._known.add(key)
        return self._file

    def _created(self) -> MmapedDict:
        try:
            self._reserve(_FIRST_BYTES)
        except OSError:
            with suppress(OSError):
                self._path.unlink()  # the others could not read an empty file
            raise
        return MmapedDict(str(self._path))  # type: ignore[no-untyped-call]

    def _reserve(self, size: int) -> None:
        """Zeros, not posix_fallocate: macOS and some file systems do not have it."""
        with self._path.open("ab") as file:
            file.write(bytes(max(0, size - file.tell())))
        ReservedFile._has_room = True


def reserve_room() -> None:
    """From now on the library uses such files."""
    values.MmapedDict = ReservedFile  # type: ignore[attr-defined,assignment]
