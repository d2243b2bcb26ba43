"""The image: built without a registry on a base of Debian packages, and run as the guide says."""

import contextlib
import json
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.installing import OWN_PYTHON, ROOT, download_wheels
from tests.deploy.programs import environment, need, need_root, run
from tests.deploy.service import book, calling, is_booked, wait_until_ready
from tests.ports import free_port

pytestmark = pytest.mark.heavy
BASE = "localhost/frontdesk-test-base"
IMAGE = "localhost/frontdesk-test"
CONTAINER = VOLUME = "frontdesk-test"
LOCKED_DOWN = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", "no-new-privileges")
# A sandbox may not have the right to raise limits, which are podman's own otherwise.
LIMITS = ("--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096")


@dataclass(frozen=True)
class Engine:
    """podman and buildah with a storage of their own."""

    variables: dict[str, str]

    def podman(self, *arguments: str | Path) -> str:
        return run("podman", "--cgroup-manager=cgroupfs", "--runtime=runc", *arguments, variables=self.variables)

    def run(self, *arguments: str | Path) -> str:
        return self.podman("run", "--network=host", *LIMITS, *arguments)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    need("mmdebstrap", "buildah", "podman", "runc")
    need_root()
    storage = tmp_path / "storage"
    configuration = tmp_path / "storage.conf"
    engine = Engine(environment(CONTAINERS_STORAGE_CONF=str(configuration)))
    text = f'[storage]\ndriver = "%s"\ngraphroot = "{storage}"\nrunroot = "{tmp_path / "run"}"\n'
    configuration.write_text(text % "overlay")
    try:
        engine.podman("info")
    except AssertionError:  # there is no overlay on an overlay
        shutil.rmtree(storage, ignore_errors=True)
        configuration.write_text(text % "vfs")
    yield engine
    with contextlib.suppress(AssertionError):
        engine.podman("rm", "--force", "--time", "0", CONTAINER)
        engine.podman("volume", "rm", "--force", VOLUME)
    shutil.rmtree(storage)


@pytest.fixture
def image(engine: Engine, wheels: Path, tmp_path: Path) -> str:
    base = tmp_path / "base.tar"
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    retries = '--aptopt=Acquire::Retries "5"'
    run("mmdebstrap", "--variant=minbase", "--include=python3,python3-venv", retries, suite, base)
    engine.podman("import", base, BASE)
    base.unlink()
    version = "import sys; print(*sys.version_info[:2], sep='.')"
    python = engine.run("--rm", BASE, "python3", "-c", version).strip()
    if python != OWN_PYTHON:
        wheels = download_wheels(tmp_path / "wheels", python)
    index = tmp_path / "pip.conf"
    index.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    run(
        "buildah", "build", "--isolation=chroot", "--format=docker", f"--build-arg=BASE={BASE}",
        f"--secret=id=pip,src={index}", f"--volume={wheels}:/wheels:ro",
        "--file=deploy/image/Dockerfile", f"--tag={IMAGE}", ".",
        folder=ROOT, variables=engine.variables,
    )  # fmt: skip
    return IMAGE


def test_a_container_keeps_its_bookings(engine: Engine, image: str) -> None:
    shell = ("--rm", *LOCKED_DOWN, "--entrypoint=sh", image, "-c")
    assert engine.run(*shell, "id -u; touch /x 2>/dev/null || echo read-only").split() == ["10001", "read-only"]
    tools = "for tool in gcc make pip hatchling; do command -v $tool; done; ls /opt/frontdesk/bin | grep -c pip; true"
    assert engine.run(*shell, tools).strip() == "0"

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = (f"--env=FRONTDESK_PORT={port}", "--env=FRONTDESK_HOST=127.0.0.1")
    volume = f"--volume={VOLUME}:/var/lib/frontdesk"
    engine.run("--detach", f"--name={CONTAINER}", *LOCKED_DOWN, volume, *settings, image, "serve", "--demo")
    wait_until_ready(url)
    engine.podman("healthcheck", "run", CONTAINER)
    credentials = json.loads(engine.podman("exec", CONTAINER, "cat", "demo-credentials.json"))["agent"]
    with calling(url, credentials) as http:
        appointment = book(http)
    engine.podman("stop", "--time", "60", CONTAINER)
    assert engine.podman("inspect", "--format={{.State.ExitCode}}", CONTAINER).strip() == "0"

    engine.podman("start", CONTAINER)
    wait_until_ready(url)
    with calling(url, credentials) as http:
        assert is_booked(http, appointment)
    engine.podman("stop", "--time", "60", CONTAINER)
    log = engine.podman("logs", CONTAINER)
    assert "recovery" not in log
