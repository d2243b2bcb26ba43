"""Runs the files that take longest first: a long one that starts last leaves the other processes idle."""

import re
from collections import Counter
from pathlib import Path

import pytest

KEY = "frontdesk/seconds_by_file"
_PROGRAMS = re.compile(rb"subprocess|CommandLine")


class LongestFirst:
    """Orders files by what they took in earlier runs on this machine, which pytest's cache keeps, and files that have
    not been measured by their size."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)  # absent under `-p no:cacheprovider`
        self._writes = not hasattr(config, "workerinput")  # pytest-xdist's workers report to it
        self._known: dict[str, float] = {} if self._cache is None else self._cache.get(KEY, {})
        self._measured: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        files = {_file(item.nodeid): item.path for item in items}
        expected = self._expected(files)
        items.sort(key=lambda item: -expected[_file(item.nodeid)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._measured[_file(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self._cache is not None and self._writes:
            # A run of some tests of a file says little about the file.
            measured = {file: max(took, self._known.get(file, 0) / 2) for file, took in self._measured.items()}
            self._cache.set(KEY, self._known | measured)

    def _expected(self, files: dict[str, Path]) -> dict[str, float]:
        weights = {file: _weight(path) for file, path in files.items()}
        known = {file: self._known[file] for file in files if file in self._known}
        rate = sum(known.values()) / sum(weights[file] for file in known) if known else 1.0
        return {file: known.get(file, weight * rate) for file, weight in weights.items()}


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _weight(path: Path) -> int:
    """The size of a file; that of a test that starts programs counts tenfold."""
    text = path.read_bytes()
    return len(text) * (10 if _PROGRAMS.search(text) else 1)
