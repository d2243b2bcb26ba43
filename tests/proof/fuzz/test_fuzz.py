"""A few altered inputs for every parser that strangers reach, and those that failed once; `make fuzz` has millions."""

import signal
from collections.abc import Iterator

import pytest

from tests.proof.fuzz.run import fuzz
from tests.proof.fuzz.targets import TARGETS

FEW = 60
FOUND = [
    ("practice files", b"providers:\n-\nproviders:\n  -\n  - d:\n    c:\n    c:"),
    ("practice files", rb'{"practice": {"s:\ud800g": "harbor", "S:\ud800G": "harbor"}}'),
]


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGVTALRM)
    yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", TARGETS)
def test_altered_inputs_are_answered(name: str) -> None:
    [fuzzer] = fuzz([name], FEW, 60.0, seed=1)
    assert fuzzer.failures == []
    assert fuzzer.inputs >= FEW
    for failed, data in FOUND:
        if failed == name:
            TARGETS[name].run(data)


def test_an_unhandled_error_and_a_hang_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(_data: bytes) -> object:
        while True:
            pass

    def fail(data: bytes) -> object:
        return 1 // len(data[:0])

    monkeypatch.setattr("tests.proof.fuzz.run.HANG_SECONDS", 0.02)
    for run, error in ((hang, "Hang"), (fail, "ZeroDivisionError")):
        monkeypatch.setitem(TARGETS, "cursors", type(TARGETS["cursors"])(run, [b"x"]))
        [fuzzer] = fuzz(["cursors"], 1, 60.0, seed=1)
        assert fuzzer.failures[0][1].startswith(error)
