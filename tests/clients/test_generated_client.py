"""The committed client is the generated one, covers every operation and code, and does without the server."""

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import frontdesk_client
from frontdesk_client import AsyncFrontdesk, Frontdesk
from frontdesk_client.problems import BY_CODE

from frontdesk.domain.errors import CATALOGUE
from frontdesk.operations import OPERATIONS

PACKAGE = Path(frontdesk_client.__file__).parent
GENERATOR = PACKAGE.parent.parent / "generate.py"


def check(package: Path) -> str:
    """What the generator finds out of date; empty when nothing is."""
    done = subprocess.run([sys.executable, GENERATOR, "--check", package], capture_output=True, text=True, timeout=120)
    assert bool(done.returncode) == bool(done.stderr), done.stderr
    return done.stderr


def test_the_committed_client_is_what_the_generator_makes() -> None:
    assert check(PACKAGE) == ""


def test_a_client_that_was_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "frontdesk_client"))
    for name, old, new in (
        ("records.py", "class Slot:", "class Slots:"),
        ("_async/client.py", "/appointments", "/appointment"),
        ("_async/pages.py", "page = await page.next_page()", "page = None"),
    ):
        text = (copy / name).read_text()
        assert old in text
        (copy / name).write_text(text.replace(old, new))
    (copy / "_sync" / "left_over.py").write_text((copy / "_sync" / "__init__.py").read_text())
    found = check(copy)
    for name in ("records.py", "_async/client.py", "_sync/pages.py", "_sync/left_over.py"):
        assert name in found
    assert "problems.py" not in found


def test_every_operation_is_a_method_of_both_clients() -> None:
    for operation in OPERATIONS:
        plain = inspect.signature(getattr(Frontdesk, operation.name)).parameters
        assert plain == inspect.signature(getattr(AsyncFrontdesk, operation.name)).parameters
        business = {name for name in plain if name not in ("self", "idempotency_key")}
        fields = {field.alias or name for name, field in operation.input.model_fields.items()}
        assert {name.rstrip("_").replace("_", "") for name in business} == {field.lower() for field in fields}
        assert ("idempotency_key" in plain) == (operation.kind == "write")
        assert all(each.kind is each.KEYWORD_ONLY for name, each in plain.items() if name != "self")


def test_every_code_has_an_exception_of_its_own() -> None:
    assert list(BY_CODE) == list(CATALOGUE)
    assert len(set(BY_CODE.values())) == len(CATALOGUE)
    assert {kind.__name__ for kind in BY_CODE.values()} <= set(frontdesk_client.__all__)


def test_the_package_imports_nothing_but_httpx() -> None:
    allowed = {*sys.stdlib_module_names, "frontdesk_client", "httpx"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names.append(node.module or "")
            assert {name.partition(".")[0] for name in names} <= allowed, path
