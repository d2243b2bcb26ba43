"""The packages under test, what they need to be installed, and the checkers of files for other programs."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.containers import Engine, build_image, open_engine
from tests.deploy.installing import OWN_PYTHON, ROOT, download_wheels
from tests.deploy.programs import need, need_root, run
from tests.nodes.clusters import Cluster
from tests.support.previous_release import build_wheel


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked dependencies and build tools as wheels, downloaded once."""
    return download_wheels(tmp_path_factory.mktemp("wheels"), OWN_PYTHON)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked source distribution, which therefore holds everything that it needs."""
    folder = tmp_path_factory.mktemp("packages")
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder, folder=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    run("tar", "--extract", "--file", archive, "--directory", folder)
    source = folder / archive.name.removesuffix(".tar.gz")
    return build_wheel(source, folder)


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs in requirements-deploy.lock."""
    folder = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", folder)
    lock = ROOT / "requirements-deploy.lock"
    run(folder / "bin" / "pip", "install", "--quiet", "--no-compile", "--require-hashes", "--requirement", lock)
    return folder / "bin"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    need("mmdebstrap", "buildah", "podman", "runc")
    need_root()
    folder = tmp_path_factory.mktemp("containers")
    yield open_engine(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def image(engine: Engine, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_image(engine, wheels, tmp_path_factory.mktemp("image"))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="frontdesk-deploy-") as name:
        Path(name).chmod(0o755)  # PostgreSQL of root's tests runs as another account
        cluster = Cluster(Path(name) / "one")
        cluster.create()
        cluster.start()
        yield cluster
        cluster.kill()
