"""The checker finds every planted bug, and nothing where none is planted."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

import frontdesk
from tests.proof.planted.bugs import BUGS, Edit, apply

OPERATIONS = 900
MAX_OPERATIONS = 18_000  # a run ends when it has found what it looks for; rare calls show some bugs
ROOT = Path(__file__).parents[2]


async def _anomalies(
    edits: tuple[Edit, ...], dsn: str, folder: Path, operations: int, kinds: Collection[str] = ()
) -> list[str]:
    """Of a run on a copy of the source with these edits, which ends with an anomaly of these kinds, or of any."""
    # With its compiled modules: compiling them anew takes longer than a run.
    shutil.copytree(Path(frontdesk.__file__).parent, folder / "src" / "frontdesk")
    apply(edits, folder / "src" / "frontdesk")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.proof.trial", dsn, str(folder / "data"), str(operations), "1", *kinds,
        env={**os.environ, "PYTHONPATH": f"{folder / 'src'}:{ROOT}"}, cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    anomalies: list[str] = json.loads(printed)["anomalies"]
    return anomalies


def test_the_bugs_fit_the_source() -> None:
    source = Path(frontdesk.__file__).parent
    outdated = [edit.file for bug in BUGS.values() for edit in bug.edits if not edit.fits(source)]
    assert outdated == [], "plant these bugs anew"


@pytest.mark.heavy
@pytest.mark.parametrize("bug", BUGS)
async def test_the_checker_finds_a_planted_bug(bug: str, database_dsn: str, tmp_path: Path) -> None:
    anomalies = await _anomalies(BUGS[bug].edits, database_dsn, tmp_path, MAX_OPERATIONS, BUGS[bug].kinds)
    assert {anomaly.partition(":")[0] for anomaly in anomalies} & BUGS[bug].kinds, anomalies
    print(f"{bug}: {anomalies[0].splitlines()[0][:160]}")


@pytest.mark.heavy
async def test_a_run_without_a_bug_has_no_anomaly(database_dsn: str, tmp_path: Path) -> None:
    assert await _anomalies((), database_dsn, tmp_path, OPERATIONS) == []
