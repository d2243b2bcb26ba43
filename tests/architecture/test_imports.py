"""Imports go one way. The contracts are in pyproject.toml; here they are held, and shown to notice a breach."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from frontdesk.operations import OPERATIONS

ROOT = Path(__file__).parents[2]


def lint_imports(source: Path) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache",
         "--config", str(ROOT / "pyproject.toml")],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=source.parent,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    return ended.returncode, " ".join((ended.stdout + ended.stderr).split())


def test_every_import_goes_the_allowed_way() -> None:
    status, report = lint_imports(ROOT / "src")
    assert status == 0, report
    assert "0 broken" in report


def test_a_breach_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    package = source / "frontdesk"
    (package / "elsewhere.py").write_text('"""A module without a place."""\n')
    for module, line in (
        ("doors/health.py", "from frontdesk.store import database"),
        ("domain/names.py", "import frontdesk.settings"),
        ("operations/get_slot.py", "from frontdesk.operations import get_patient"),
        ("operations/get_patient.py", "from frontdesk.systems.native import rows"),
        ("systems/port.py", "from frontdesk.systems import native"),
        ("desk/patients.py", "from frontdesk.systems.native import rows"),
        ("console/guard.py", "from frontdesk.store import database"),
        ("cli/output.py", "from frontdesk.cli import practices"),
        ("app.py", "from frontdesk.features import notes"),
        ("features/another.py", "from frontdesk.features import notes"),
    ):
        file = package / module
        file.write_text(f"{file.read_text() if file.exists() else ''}\n{line}\n")
    status, report = lint_imports(source)
    assert status == 1, report
    assert "0 kept, 9 broken" in report
    assert "elsewhere" in report


def test_every_operation_is_held_apart_from_the_others() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [apart] = [contract for contract in contracts if contract.get("modules") == ["frontdesk.operations.*"]]
    assert apart["type"] == "independence"
    shared = {allowed.partition(" -> ")[2] for allowed in apart["ignore_imports"]}
    assert shared.isdisjoint(f"frontdesk.operations.{operation.name}" for operation in OPERATIONS)
    assert not any(module.endswith("*") for module in shared)


def test_only_the_description_of_features_imports_types_from_above() -> None:
    """The contracts leave out what is imported for the type checker alone, for the sake of one module."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["name"] == "Imports go one way"]
    heights = {name.strip(): -row for row, names in enumerate(layers) for name in names.split("|")}
    from_above = set()
    for path in (ROOT / "src/frontdesk").rglob("*.py"):
        own = path.relative_to(ROOT / "src/frontdesk").parts[0].removesuffix(".py")
        for imported in re.findall(r"^ +from frontdesk\.(\w+)", path.read_text(), re.MULTILINE):
            if own != imported and heights.get(own, 0) <= heights.get(imported, 0):
                from_above.add(own)
    assert from_above == {"feature"}
