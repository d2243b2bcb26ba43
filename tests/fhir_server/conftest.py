"""A service that serves its practices as FHIR R4."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from frontdesk.app import build_app
from tests.world import World


@pytest.fixture
async def server(world: World) -> AsyncIterator[World]:
    """The world with the FHIR door open."""
    service = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    opened = World(service, world.clock, httpx.ASGITransport(app=build_app(service)))
    yield opened
    await opened.close()
