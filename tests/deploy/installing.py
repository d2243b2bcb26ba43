"""Wheels of the locked dependencies, for installing without an index."""

import sys
from pathlib import Path

from tests.deploy.programs import run

ROOT = Path(__file__).parents[2]
OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def download_wheels(folder: Path, python: str) -> Path:
    """Those that fit this machine and the version of Python, with the build tools."""
    locks = ("--requirement", ROOT / "requirements.lock", "--requirement", ROOT / "requirements-build.lock")
    wanted = ("--require-hashes", "--python-version", python, "--only-binary", ":all:", *locks)
    run(sys.executable, "-m", "pip", "download", "--quiet", *wanted, "--dest", folder)
    return folder
