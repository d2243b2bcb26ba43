"""The wheel, installed in a folder outside the checkout by pip, uv and pipx."""

import json
import re
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from frontdesk import __version__
from tests.accounts import NO_DRAIN, SAME_ACCOUNT
from tests.deploy.installing import ROOT
from tests.deploy.programs import environment, run
from tests.deploy.service import book, calling, is_booked, running
from tests.ports import free_port

pytestmark = pytest.mark.heavy

PAGES = ("/docs", "/docs/guides", "/errors.html", "/openapi/v1.json", "/schemas/practice-file.json", "/console/sign-in")
LINKED = re.compile(r'(?:src|href)="(/[^"#?]+)')


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    written = {
        str(path.relative_to(source))
        for path in (source / "frontdesk").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if name.startswith("frontdesk/")} == written


def test_pip_installs_the_locked_service_and_an_appointment_is_booked(
    wheel: Path, wheels: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    pip = (tmp_path / "venv" / "bin" / "pip", "--quiet", "--no-input")
    lock = ("--no-index", "--find-links", wheels, "--require-hashes", "--requirement", ROOT / "requirements.lock")
    run(*pip, "install", *lock, folder=tmp_path)
    run(*pip, "install", "--no-deps", "--no-index", wheel, folder=tmp_path)
    run(*pip, "check", folder=tmp_path)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = environment(FRONTDESK_PORT=str(port), FRONTDESK_LOG_LEVEL="error", **SAME_ACCOUNT, **NO_DRAIN)
    command = [str(tmp_path / "venv" / "bin" / "frontdesk"), "serve", "--demo"]
    with running(command, folder=tmp_path, variables=variables, url=url):
        credentials = json.loads((tmp_path / ".frontdesk" / "demo-credentials.json").read_text())
        with calling(url, credentials["agent"]) as http:
            assert is_booked(http, book(http))
        with httpx.Client(base_url=url, timeout=30) as browser:
            followed = {path for page in PAGES for path in LINKED.findall(_read(browser, page))}
            assert any(path.endswith(".css") for path in followed)
            assert any(path.startswith("/docs/guides/") for path in followed)
            for path in followed:
                _read(browser, path)


def _read(browser: httpx.Client, path: str) -> str:
    answer = browser.get(path, follow_redirects=True)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return answer.text


@pytest.mark.parametrize("installer", ["uv", "pipx"])
def test_installers_of_tools_install_the_command(
    wheel: Path, wheels: Path, tools: Path, tmp_path: Path, installer: str
) -> None:
    variables = environment(
        HOME=str(tmp_path), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels), UV_NO_INDEX="1", UV_FIND_LINKS=str(wheels),
        UV_CACHE_DIR=str(tmp_path / "cache"), UV_PYTHON=sys.executable, PIPX_DEFAULT_PYTHON=sys.executable,
        UV_TOOL_DIR=str(tmp_path / "uv"), UV_TOOL_BIN_DIR=str(tmp_path / "bin"),
        PIPX_HOME=str(tmp_path / "pipx"), PIPX_BIN_DIR=str(tmp_path / "bin"),
    )  # fmt: skip
    install = ("uv", "tool", "install", "--offline") if installer == "uv" else ("pipx", "install")
    run(tools / install[0], *install[1:], wheel, folder=tmp_path, variables=variables)
    told = run(tmp_path / "bin" / "frontdesk", "--version", folder=tmp_path, variables=variables)
    assert told.strip() == f"frontdesk {__version__}"
