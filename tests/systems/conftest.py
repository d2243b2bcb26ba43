"""The desk of every scheduling system. The FHIR system runs against a small server in memory, and in the heavier suite
against one that nobody here wrote."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.store.database import Database
from frontdesk.store.practices import practice_id_of
from tests.fhir.practice import Upstream, extend_timeouts, fhir_world, opened
from tests.support.world import World, build_world
from tests.systems.desk import Desk


@pytest.fixture(autouse=True)
def longer_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    extend_timeouts(monkeypatch)


@pytest.fixture(params=["native", "fhir", pytest.param("medplum", marks=pytest.mark.heavy)])
async def desk(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> AsyncIterator[Desk]:
    if request.param == "native":
        world = await build_world(database, tmp_path)
        yield await _desk(world)
        await world.close()
        return
    async with opened(request.param) as door:
        await Upstream(door).seed()
        async with fhir_world(database, tmp_path, door, timeoutSeconds=30) as world:
            yield await _desk(world)


async def _desk(world: World) -> Desk:
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    return Desk(world, practice_id)
