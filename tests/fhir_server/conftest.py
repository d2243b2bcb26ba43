"""A service that serves its practices as FHIR R4."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from frontdesk.app import build_app
from tests.support.world import World


class RecordingTransport(httpx.ASGITransport):
    """Keeps the FHIR resources that were answered, with what was asked."""

    answers: list[tuple[str, dict[str, Any]]]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if answer.headers.get("content-type", "").startswith("application/fhir+json"):
            await answer.aread()
            self.answers.append((f"{request.method} {request.url}", answer.json()))
        return answer


@pytest.fixture
async def server(world: World) -> AsyncIterator[World]:
    """The world with the FHIR door open."""
    service = replace(world.service, settings=world.service.settings.model_copy(update={"fhir_server": True}))
    transport = RecordingTransport(app=build_app(service))
    transport.answers = []
    opened = World(service, world.clock, transport)
    yield opened
    await opened.close()
