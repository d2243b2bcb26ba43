"""A FHIR server for every test here: one in memory always, and in the heavier suite one that nobody here wrote."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from frontdesk.store.database import Database
from tests.fhir.door import Door
from tests.fhir.fake import Fake
from tests.fhir.medplum import Medplum, running
from tests.fhir.practice import Upstream, fhir_world
from tests.world import World

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def medplum() -> Iterator[Medplum]:
    with running() as server:
        yield server


@pytest.fixture(params=["fake", pytest.param("medplum", marks=pytest.mark.heavy)])
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    """The way to an empty FHIR server."""
    opened = Door()
    await opened.open()
    if request.param == "fake":
        opened.backend = Fake(opened.address)
        yield opened
    else:
        server: Medplum = request.getfixturevalue("medplum")
        repository = opened.backend = server.repository(f"test-{next(_numbers)}", opened.address)
        yield opened
        await repository.close()
    await opened.close()


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
