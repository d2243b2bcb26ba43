"""The order of test files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.longest_first import LongestFirst


class Cache:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get(self, key: str, default: Any) -> Any:
        return self.values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.values[key] = value


def order_of(plugin: LongestFirst, files: list[Path]) -> list[str]:
    items = [SimpleNamespace(nodeid=f"{file.name}::test_{number}", path=file) for file in files for number in (1, 2)]
    plugin.pytest_collection_modifyitems(cast(list[pytest.Item], items))
    return [item.nodeid for item in items]


def run(cache: Cache, **seconds: float) -> None:
    plugin = LongestFirst(cast(pytest.Config, SimpleNamespace(cache=cache)))
    for file, took in seconds.items():
        report = SimpleNamespace(nodeid=f"{file}.py::test_1", duration=took)
        plugin.pytest_runtest_logreport(cast(pytest.TestReport, report))
    plugin.pytest_sessionfinish()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    sizes = {"small": 10, "large": 1000, "medium": 100}
    for name, size in sizes.items():
        (tmp_path / f"{name}.py").write_text("#" * size)
    return [tmp_path / f"{name}.py" for name in sizes]


def started(cache: Cache, files: list[Path]) -> list[str]:
    plugin = LongestFirst(cast(pytest.Config, SimpleNamespace(cache=cache)))
    return list(dict.fromkeys(nodeid.partition(".")[0] for nodeid in order_of(plugin, files)))


def test_files_that_were_never_measured_start_by_their_size(files: list[Path]) -> None:
    assert started(Cache(), files) == ["large", "medium", "small"]


def test_an_unmeasured_file_that_starts_programs_is_expected_to_take_longer(files: list[Path]) -> None:
    files[2].write_text("import subprocess" + "#" * 500)
    assert started(Cache(), files)[0] == "medium"


def test_files_start_by_what_the_last_run_measured(files: list[Path]) -> None:
    cache = Cache()
    run(cache, small=9.0, large=1.0)
    assert started(cache, files) == ["small", "large", "medium"], "a new file takes its share by size"


def test_a_run_of_few_tests_does_not_make_a_long_file_a_short_one(files: list[Path]) -> None:
    cache = Cache()
    run(cache, small=9.0, large=1.0, medium=2.0)
    run(cache, small=0.1)
    assert started(cache, files)[0] == "small"


def test_the_tests_of_a_file_keep_their_order(files: list[Path]) -> None:
    plugin = LongestFirst(cast(pytest.Config, SimpleNamespace(cache=Cache())))
    assert order_of(plugin, files)[:2] == ["large.py::test_1", "large.py::test_2"]


def test_a_run_without_a_cache_is_ordered_by_size(files: list[Path]) -> None:
    plugin = LongestFirst(cast(pytest.Config, SimpleNamespace()))
    assert order_of(plugin, files)[0] == "large.py::test_1"
    plugin.pytest_sessionfinish()


def test_a_process_of_a_parallel_run_leaves_the_cache_to_the_one_that_started_it() -> None:
    cache = Cache()
    worker = LongestFirst(cast(pytest.Config, SimpleNamespace(cache=cache, workerinput={})))
    worker.pytest_runtest_logreport(cast(pytest.TestReport, SimpleNamespace(nodeid="a.py::test_1", duration=1.0)))
    worker.pytest_sessionfinish()
    assert cache.values == {}
