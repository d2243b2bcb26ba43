"""What several workers of a server have counted: each writes its numbers to a file, which the others read."""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

_FILES = "*.json"
_ENDED = "ended-"
_log = logging.getLogger(__name__)

Numbers = Mapping[str, Sequence[tuple[Sequence[str], float]]]  # by name, with the values of the labels


@dataclass(frozen=True, slots=True)
class Worker:
    numbers: Numbers
    has_ended: bool = False


class WorkerNumbers:
    """A file is replaced as a whole. While the disk is full, the others read older numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / f"{os.getpid()}.json"
        self._next = self._own.with_suffix(".next")
        self._is_written = True

    def write(self, numbers: Numbers) -> None:
        try:
            self._next.write_bytes(orjson.dumps(numbers))
            self._next.replace(self._own)
            self._is_written = True
        except OSError as error:
            with suppress(OSError):
                self._next.unlink(missing_ok=True)
            if self._is_written:
                _log.error("metrics are incomplete, their folder cannot be written to: %s", error.strerror)
            self._is_written = False

    def others(self) -> list[Worker]:
        while True:
            try:
                files = [(file, file.read_bytes()) for file in self._folder.glob(_FILES) if file != self._own]
            except FileNotFoundError:  # a worker has just ended: its file has another name now
                continue
            return [Worker(orjson.loads(content), file.name.startswith(_ENDED)) for file, content in files]


def mark_as_ended(folder: Path, pid: int, number: int) -> None:
    """Keeps what the worker has counted. `number` distinguishes it from an earlier one with the same process id."""
    with suppress(OSError):
        (folder / f"{pid}.json").rename(folder / f"{_ENDED}{pid}-{number}.json")
