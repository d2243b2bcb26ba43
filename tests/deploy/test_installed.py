"""The wheel, installed in a folder outside the checkout by pip, uv and pipx."""

import json
import re
import shutil
import sys
import zipfile
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from frontdesk import __version__
from tests.deploy.installing import ROOT
from tests.deploy.programs import environment, run
from tests.deploy.service import book, calling, is_booked, running
from tests.support.ports import free_port
from tests.support.previous_release import NO_RELEASE, build_wheel, unpack_previous_release
from tests.support.stopping import NO_DRAIN

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


@pytest.fixture(scope="module")
def programs(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a virtual environment with the locked dependencies, outside the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "venv")
    lock = ("--no-index", "--find-links", wheels, "--require-hashes", "--requirement", ROOT / "requirements.lock")
    run(folder / "venv" / "bin" / "pip", "--quiet", "--no-input", "install", *lock, folder=folder)
    return folder / "venv" / "bin"


@dataclass(frozen=True)
class Installation:
    """A service in a folder of its own, which keeps its data when another wheel is installed."""

    programs: Path
    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def variables(self) -> dict[str, str]:
        return environment(FRONTDESK_PORT=str(self.port), FRONTDESK_LOG_LEVEL="error", **NO_DRAIN)

    def install(self, wheel: Path) -> None:
        options = ("--quiet", "--no-input", "install", "--no-deps", "--no-index", "--force-reinstall")
        run(self.programs / "pip", *options, wheel, folder=self.folder)

    def serving(self) -> AbstractContextManager[None]:
        command = [str(self.programs / "frontdesk"), "serve", "--demo"]
        return running(command, folder=self.folder, variables=self.variables, url=self.url)

    def calling(self) -> AbstractContextManager[httpx.Client]:
        credentials = json.loads((self.folder / ".frontdesk" / "demo-credentials.json").read_text())
        return calling(self.url, credentials["agent"])


@pytest.fixture
def installation(programs: Path, tmp_path: Path) -> Installation:
    return Installation(programs, tmp_path)


def test_pip_installs_the_locked_service_and_an_appointment_is_booked(installation: Installation, wheel: Path) -> None:
    installation.install(wheel)
    run(installation.programs / "pip", "check", folder=installation.folder)
    with installation.serving():
        with installation.calling() as http:
            assert is_booked(http, book(http))
        with httpx.Client(base_url=installation.url, timeout=30) as browser:
            followed = {path for page in PAGES for path in LINKED.findall(_read(browser, page))}
            assert any(path.endswith(".css") for path in followed)
            assert any(path.startswith("/docs/guides/") for path in followed)
            for path in followed:
                _read(browser, path)


def _read(browser: httpx.Client, path: str) -> str:
    answer = browser.get(path, follow_redirects=True)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return answer.text


def test_the_guide_installs_exactly_what_is_locked(wheel: Path, wheels: Path, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "users" / "deploy.md").read_text()
    installing = guide.partition("## Installing the wheel")[2].split("```bash\n")[1].split("```")[0]
    assert all(line in guide.partition("## From a bare Debian")[2] for line in installing.splitlines()[1:])
    assert all(re.search("--require-hashes|--no-deps", line) for line in re.findall(".*pip install.*--?.*", installing))
    for package in (wheel, *wheel.parent.glob("*.tar.gz")):
        shutil.copy(package, tmp_path)
    variables = environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))

    def install(script: str, folder: Path) -> None:
        script = script.replace("/opt/frontdesk", str(folder)).replace("python3", sys.executable)
        run("sh", "-euc", script, folder=tmp_path, variables=variables)

    install(installing, tmp_path / "installed")
    listed = json.loads(run(tmp_path / "installed" / "bin" / "pip", "list", "--format=json", variables=variables))
    versions = {package["name"].lower().replace("_", "-"): package["version"] for package in listed}
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert versions.pop("frontdesk") == __version__
    own = {"pip", "setuptools"}  # of the virtual environment
    assert {name: locked.get(name) for name in versions.keys() - own} == {
        name: version for name, version in versions.items() if name not in own
    }

    lock = tmp_path / "requirements.lock"
    lock.write_text(re.sub("sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text()))
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        install(installing.partition("\n")[2], tmp_path / "replaced")


def test_an_upgrade_from_the_previous_release_keeps_its_data(
    installation: Installation, wheel: Path, tmp_path: Path
) -> None:
    previous = unpack_previous_release(tmp_path / "previous")
    if previous is None:
        pytest.skip(NO_RELEASE)
    installation.install(build_wheel(previous, tmp_path / "packages"))
    with installation.serving(), installation.calling() as http:
        before = book(http)
    installation.install(wheel)
    with installation.serving(), installation.calling() as http:
        assert is_booked(http, before)
        assert is_booked(http, book(http))
    status = (installation.programs / "frontdesk", "db", "status", "--json")
    output = json.loads(run(*status, folder=tmp_path, variables=installation.variables))
    assert output["pending"] == output["deferred"] == 0


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
    output = run(tmp_path / "bin" / "frontdesk", "--version", folder=tmp_path, variables=variables)
    assert output.strip() == f"frontdesk {__version__}"
