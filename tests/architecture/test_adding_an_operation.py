"""The steps of CONTRIBUTING for a new operation, tried on a copy of the tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("src", "clients", "tests", "docs", "pyproject.toml", "Makefile", "README.md")
GENERATED = ("clients/python/src/", "tests/doors/snapshots/")
TESTS = (
    "tests/operations/test_registry.py",
    "tests/doors/test_openapi.py",
    "tests/doors/test_mcp_tools.py",
    "tests/doors/test_pages.py",
    "tests/clients/test_generated_client.py",
    "tests/architecture/test_imports.py",
)

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules"))
        else:
            shutil.copy(source, target)
    if (ROOT / ".mypy_cache").exists():  # a check of every module takes a minute
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / ".mypy_cache")
    return tmp_path


def test_a_new_operation_needs_its_module_the_registry_and_generated_files_only(tree: Path) -> None:
    add_operation(tree)
    before = contents(tree)
    for line in recipe(tree, "generate"):
        run(tree, *line)
    changed = {name for name, text in contents(tree).items() if before.get(name) != text}
    assert changed
    assert all(name.startswith(GENERATED) for name in changed), changed
    for line in recipe(tree, "check"):
        run(tree, *line)

    told = pytest_in(tree, "tests/operations/test_registry.py")
    assert told.returncode == 1
    assert "get_branch" in told.stdout, "the tests over the registry say what is missing"
    add_to_contract(tree)
    ended = pytest_in(tree, *TESTS)
    assert ended.returncode == 0, ended.stdout


def add_operation(tree: Path) -> None:
    """A copy of the nearest neighbour, and its line in the registry."""
    operations = tree / "src/frontdesk/operations"
    neighbour = (operations / "get_location.py").read_text()
    made = neighbour.replace('"get_location"', '"get_branch"').replace("/locations/{", "/branches/{")
    (operations / "get_branch.py").write_text(made.replace('title="', 'title="Branch: '))
    replace(operations / "__init__.py", "    get_capabilities,\n", "    get_branch,\n    get_capabilities,\n")
    replace(
        operations / "__init__.py",
        "    get_location.OPERATION,\n",
        "    get_location.OPERATION,\n    get_branch.OPERATION,\n",
    )


def add_to_contract(tree: Path) -> None:
    table = tree / "tests/operations/test_registry.py"
    row = "list_providers         GET   /providers "
    replace(table, row, "get_branch GET /branches/{locationId} practices:read read 200\n" + row)
    replace(table, '    "get_location": LOCATION,\n', '    "get_location": LOCATION,\n    "get_branch": LOCATION,\n')


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
    files = (path for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
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
