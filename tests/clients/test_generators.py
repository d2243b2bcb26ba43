"""The published OpenAPI document feeds generators that nobody here wrote: what they make type-checks, and books.

The generators are installed once, in pinned versions, into a cache of the account. Without them the tests fail.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from frontdesk_client import Frontdesk

from tests.clients.running_desk import Desk

HERE = Path(__file__).parent / "generators"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontdesk-generators"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]


def run(folder: Path, *command: str | Path, **environment: str) -> str:
    """What the command prints. One that fails fails the test, with everything it said."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def installed(pins: Path, *commands: Sequence[str | Path], beside: Sequence[Path] = ()) -> Path:
    """The folder into which the commands have installed what the file pins; made once for each content of the file."""
    folder = CACHE / f"{pins.stem}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in (pins, *beside):
            shutil.copy(path, folder)
        for command in commands:
            run(folder, *command)
        (folder / "complete").touch()
    return folder


@pytest.fixture
def document(desk: Desk, tmp_path: Path) -> Path:
    answer = httpx.get(f"{desk.url}/openapi/v1.json", timeout=30).raise_for_status()
    path = tmp_path / "openapi.json"
    path.write_bytes(answer.content)
    return path


@pytest.fixture
def environment(desk: Desk, patient_id: str) -> dict[str, str]:
    return {
        "DESK_URL": desk.url,
        "DESK_CLIENT_ID": desk.agent.client_id,
        "DESK_CLIENT_SECRET": desk.agent.client_secret,
        "PATIENT_ID": patient_id,
    }


def appointments_of(client: Frontdesk, patient_id: str) -> list[str]:
    return [appointment.id for appointment in client.list_appointments(patient_id=patient_id)]


def test_openapi_python_client_makes_a_client_that_type_checks_and_books(
    document: Path, environment: dict[str, str], direct: Frontdesk, tmp_path: Path
) -> None:
    tools = installed(
        HERE / "requirements.txt",
        [sys.executable, "-m", "venv", "."],
        ["bin/python", "-m", "pip", "install", "--quiet", "-r", "requirements.txt"],
    )
    path = f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}"  # it calls its own ruff by name
    generator = tools / "bin" / "openapi-python-client"
    made = ("--path", document, "--output-path", "practice_api", "--meta", "none", "--fail-on-warning")
    run(tmp_path, generator, "generate", *made, PATH=path)
    shutil.copy(HERE / "book_with_python.py", tmp_path)

    python = tools / "bin" / "python"
    types = ("--strict", "--python-executable", python)
    run(tmp_path, sys.executable, "-m", "mypy", *types, "practice_api", "book_with_python.py")
    booked = run(tmp_path, python, "book_with_python.py", **environment).strip()
    assert appointments_of(direct, environment["PATIENT_ID"]) == [booked]


def test_openapi_typescript_makes_types_that_check_and_book(
    document: Path, environment: dict[str, str], direct: Frontdesk, tmp_path: Path
) -> None:
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    tools = installed(HERE / "package-lock.json", install, beside=[HERE / "package.json"])
    for name in ("package.json", "tsconfig.json", "book_with_typescript.ts"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(tools / "node_modules")
    binaries = tools / "node_modules" / ".bin"
    run(tmp_path, binaries / "openapi-typescript", document, "--output", "practice-api.d.ts")
    run(tmp_path, binaries / "tsc", "--project", ".")
    booked = run(tmp_path, "node", "built/book_with_typescript.js", **environment).strip()
    assert appointments_of(direct, environment["PATIENT_ID"]) == [booked]
