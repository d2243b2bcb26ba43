"""The last release, from the history of the checkout, to run beside this tree or to upgrade from."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_RELEASE = "the history of this checkout has no release"


def unpack_previous_release(folder: Path) -> Path | None:
    """The tree of the last release in a new folder. None before the first one, and where the history is not at hand."""
    if shutil.which("git") is None:
        return None
    tags = _git("tag", "--list", "v*", "--sort=-version:refname").stdout.split()
    archive = folder.with_suffix(".zip")
    if not tags or _git("archive", "-o", str(archive), tags[0]).returncode != 0:
        return None
    shutil.unpack_archive(archive, folder)
    archive.unlink()
    return folder


def build_wheel(tree: Path, folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=tree, capture_output=True, check=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    # The checkout may belong to another account than the one that runs the tests.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True)
