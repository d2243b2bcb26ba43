"""Programs of the deployment tests: where they are, and what happens where one is missing."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def need(*programs: str) -> None:
    """Fails in CI, and says elsewhere why the test does not run."""
    missing = [name for name in programs if shutil.which(name, path=PATH) is None]
    if missing:
        unavailable(f"needs {', '.join(missing)}")


def need_root() -> None:
    if os.geteuid() != 0:
        unavailable("needs root")


def unavailable(reason: str) -> None:
    if "CI" in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


def environment(**further: str) -> dict[str, str]:
    """The variables of this process, without those that would reach into an installation elsewhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FRONTDESK_", "PYTHON", "VIRTUAL_ENV"))}
    return {**kept, "PATH": PATH, **further}


def run(
    *command: str | Path, folder: Path | None = None, variables: Mapping[str, str] | None = None, seconds: float = 600
) -> str:
    """The standard output of a command that succeeds."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=variables or environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{command} exited with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout
