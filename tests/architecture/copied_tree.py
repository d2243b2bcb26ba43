"""A copy of the tree, to which a test adds something with the steps of CONTRIBUTING."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "clients", "tests", "docs", "pyproject.toml", "Makefile", "README.md")


def copy_tree(target: Path) -> Path:
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("node_modules"))
        else:
            shutil.copy(ROOT / name, target / name)
    if (ROOT / ".mypy_cache").exists():  # a check of every module takes a minute
        shutil.copytree(ROOT / ".mypy_cache", target / ".mypy_cache")
    return target


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))


def recipe(tree: Path, target: str) -> list[list[str]]:
    """The commands of a make target, without the set-up before them."""
    lines = (tree / "Makefile").read_text().split(f"\n{target}:")[1].splitlines()[1:]
    commands = []
    for line in lines:
        if not line.startswith("\t"):
            break
        commands.append(line.strip().replace(".venv/bin", str(Path(sys.executable).parent)).split())
    assert commands
    return commands


def contents(tree: Path) -> dict[str, bytes]:
    caches = {"__pycache__", ".mypy_cache"}
    files = (path for path in tree.rglob("*") if path.is_file() and caches.isdisjoint(path.parts))
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in files}


def pytest_in(tree: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    return started(tree, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests)


def run(tree: Path, *command: str) -> None:
    ended = started(tree, *command)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def started(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
