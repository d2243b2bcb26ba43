"""A FHIR server for every test here: one in memory always, and in the heavier suite one that nobody here wrote."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.settings import fhir_settings
from tests.fhir.door import Door
from tests.fhir.practice import Upstream, extend_timeouts, fhir_world, file_text, opened
from tests.support.world import World

# Files whose tests are about our own side of the wire: the small server will do.
OUR_SIDE = ("test_capabilities", "test_events", "test_neighbours", "test_outages", "test_sandbox")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "door" in metafunc.fixturenames and not hasattr(metafunc.module, "door"):
        ours = metafunc.module.__name__.rpartition(".")[2] in OUR_SIDE
        servers = ["fake"] if ours else ["fake", pytest.param("medplum", marks=pytest.mark.heavy)]
        metafunc.parametrize("door", servers, indirect=True)


@pytest.fixture(autouse=True)
def longer_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    extend_timeouts(monkeypatch)


@pytest.fixture
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    """The way to an empty FHIR server."""
    async with opened(request.param) as door:
        yield door


@pytest.fixture
async def upstream(door: Door) -> Upstream:
    """A FHIR server with a practice's calendar in it."""
    seeded = Upstream(door)
    await seeded.seed()
    return seeded


@pytest.fixture
async def fhir(database: Database, tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A running service whose practice lives in the FHIR server."""
    async with fhir_world(database, tmp_path, upstream.door) as world:
        yield world


@pytest.fixture
async def healthy() -> AsyncIterator[Upstream]:
    """Another FHIR server, with another practice's calendar in it."""
    async with opened("fake") as door:
        seeded = Upstream(door)
        await seeded.seed()
        yield seeded


@pytest.fixture(scope="session")
def practice() -> PracticeMap:
    """What the practice file says stands for what, without a server."""
    directory = parse(file_text("harbor", "https://ehr.example.com/fhir")).directory
    settings = fhir_settings(directory.practice.scheduling_system)
    locations = {"Location/downtown": 1, "Location/westside": 2, "Location/former": 1}
    providers = {"Practitioner/chen": 10, "Practitioner/nunez": 11, "Practitioner/okafor": 12}
    return PracticeMap(settings, directory, locations, providers)
