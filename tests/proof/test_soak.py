"""What a soak calls a drift."""

from dataclasses import replace

import pytest

from tests.proof.soak import BOUNDS, Sample, drifts

STEADY = Sample(
    calls=300, p99_ms=80.0, memory_mb=200.0, files=60, sessions=20, row_bytes=400.0, index_bytes=300.0,
    dead_share=0.1, wal_bytes=3000.0, rows_read=30.0,
)  # fmt: skip


def test_a_steady_run_and_one_slow_window_do_not_drift() -> None:
    assert drifts([STEADY] * 9) == []
    assert drifts([*[STEADY] * 8, replace(STEADY, p99_ms=5000.0)]) == []


@pytest.mark.parametrize("name", BOUNDS)
def test_anything_that_grows_window_by_window_drifts(name: str) -> None:
    grown = [replace(STEADY, **{name: getattr(STEADY, name) * (1 + 0.5 * number)}) for number in range(9)]
    assert [drift.split()[0] for drift in drifts(grown)] == [name]
