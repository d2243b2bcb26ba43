"""podman and buildah with a storage of their own, and the image of the service in it."""

import contextlib
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.installing import OWN_PYTHON, ROOT, download_wheels
from tests.deploy.programs import environment, run

BASE = "localhost/frontdesk-test-base"
IMAGE = "localhost/frontdesk-test"
# A sandbox may not have the right to raise limits, which are podman's own otherwise.
LIMITS = ("--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096")


@dataclass(frozen=True)
class Engine:
    variables: dict[str, str]

    def podman(self, *arguments: str | Path) -> str:
        return run("podman", "--cgroup-manager=cgroupfs", "--runtime=runc", *arguments, variables=self.variables)

    def run(self, *arguments: str | Path) -> str:
        return self.podman("run", "--network=host", *LIMITS, *arguments)

    @contextlib.contextmanager
    def running(self, name: str, *arguments: str | Path) -> Iterator[None]:
        """A container of this name in the background; it and its volumes are removed after the block."""
        self.run("--detach", f"--name={name}", *arguments)
        try:
            yield
        finally:
            with contextlib.suppress(AssertionError):
                self.podman("rm", "--force", "--volumes", "--time", "0", name)


def open_engine(folder: Path) -> Engine:
    configuration = folder / "storage.conf"
    engine = Engine(environment(CONTAINERS_STORAGE_CONF=str(configuration)))
    text = f'[storage]\ndriver = "%s"\ngraphroot = "{folder / "storage"}"\nrunroot = "{folder / "run"}"\n'
    configuration.write_text(text % "overlay")
    try:
        engine.podman("info")
    except AssertionError:  # there is no overlay on an overlay
        shutil.rmtree(folder / "storage", ignore_errors=True)
        configuration.write_text(text % "vfs")
    return engine


def build_image(engine: Engine, wheels: Path, folder: Path) -> str:
    """On a base of Debian packages, without a registry. The base also has systemd, for the test of the unit."""
    base = folder / "base.tar"
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    retries = '--aptopt=Acquire::Retries "5"'
    run("mmdebstrap", "--variant=minbase", "--include=python3,python3-venv,systemd", retries, suite, base)
    engine.podman("import", base, BASE)
    base.unlink()
    version = "import sys; print(*sys.version_info[:2], sep='.')"
    python = engine.run("--rm", BASE, "python3", "-c", version).strip()
    if python != OWN_PYTHON:
        wheels = download_wheels(folder / "wheels", python)
    index = folder / "pip.conf"
    index.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    run(
        "buildah", "build", "--isolation=chroot", "--format=docker", f"--build-arg=BASE={BASE}",
        f"--secret=id=pip,src={index}", f"--volume={wheels}:/wheels:ro",
        "--file=deploy/image/Dockerfile", f"--tag={IMAGE}", ".",
        folder=ROOT, variables=engine.variables,
    )  # fmt: skip
    return IMAGE
