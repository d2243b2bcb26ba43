"""The last release, from the history of the checkout, to run beside this tree or to upgrade from."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_IN_HISTORY = "the history of this checkout does not go back to the last release"
# Until there is a release:
FIRST_WITH_PHASES = "b670a20ea733552669c144643db146fcc9c5630d"
FIRST_WITH_HOLDS = "17e92ca08ffa11228cd95c3c2b521787078bd175"


def unpack_previous_release(folder: Path, before_any: str = FIRST_WITH_PHASES) -> Path | None:
    """The tree of the last release in a new folder, or that of a commit as long as there is none. None where the
    history does not have it, as in a source archive."""
    if shutil.which("git") is None:
        return None
    tags = _git("tag", "--list", "v*", "--sort=-version:refname").stdout.split()
    archive = folder.with_suffix(".zip")
    if _git("archive", "-o", str(archive), (tags or [before_any])[0]).returncode != 0:
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
