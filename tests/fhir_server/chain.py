"""Services whose practices live in the FHIR server of the next one, down to a native calendar."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from frontdesk.access.clients.records import add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.app import build_app, build_service
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.practices import import_practice
from tests.fhir.door import Answer, Door
from tests.support.shared_database import new_database, opened
from tests.support.world import PRACTICE, Clock, World

CODES = {
    "visitTypes": {number: {"system": "urn:frontdesk:visit-type", "code": number} for number in ("20", "21", "22")},
    "procedures": {
        number: {"system": "urn:frontdesk:procedure", "code": number} for number in ("100", "101", "102", "103")
    },
}


@dataclass
class Hop:
    """A service, and the way to its FHIR server."""

    world: World
    door: Door


@dataclass
class Facade:
    """The FHIR server of a service, as a listener passes requests on to it."""

    world: World

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        path = target if target.startswith("/oauth") else f"/fhir{target}"
        async with httpx.AsyncClient(transport=self.world.transport, base_url="http://test") as http:
            answer = await http.request(method, path, content=body, headers=headers)
        kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return Answer(answer.status_code, kept, answer.content)


def practice_file(door: Door, client_id: str) -> str:
    """The practice of the small world, kept in another frontdesk."""
    system = {
        "kind": "fhir",
        "baseUrl": f"{door.address}/R4",
        "auth": {
            "kind": "clientCredentials",
            "tokenUrl": f"http://127.0.0.1:{door.port}/oauth/token",
            "clientId": client_id,
            "clientSecretEnv": f"SECRET_OF_{client_id.upper()}",
        },
        "locations": {"1": "Location/1", "2": "Location/2"},
        "providers": {number: f"Practitioner/{number}" for number in ("10", "11", "12")},
        **CODES,
        "timeoutSeconds": 30,
    }
    directory, _, _ = PRACTICE.partition("patients:")
    phone = 'phone: "+1 555 0100"'
    return directory.replace("SLUG", "harbor").replace(
        f"{phone}}}", f"{phone}, schedulingSystem: {json.dumps(system)}}}", 1
    )


@asynccontextmanager
async def chain(
    cluster: EmbeddedPostgres, template: str, folder: Path, monkeypatch: pytest.MonkeyPatch, hops: int
) -> AsyncIterator[list[Hop]]:
    """Services from the native calendar up: each but the first keeps its practice in the one before it."""
    clock, chained = Clock(), list[Hop]()
    async with AsyncExitStack() as stack:
        text = PRACTICE.replace("SLUG", "harbor")
        for hop in range(hops + 1):
            database = await stack.enter_async_context(
                opened(await stack.enter_async_context(new_database(cluster, template)), 4)
            )
            door = Door()
            await door.open()
            stack.push_async_callback(door.close)
            data_dir = folder / str(hop)
            data_dir.mkdir()
            settings = Settings(data_dir=data_dir, base_url=f"http://127.0.0.1:{door.port}", fhir_server=True)
            service = build_service(settings, database, clock)
            await service.ring.load()
            await import_practice(database, parse(text), clock.now)
            world = World(service, clock, httpx.ASGITransport(app=build_app(service)))
            stack.push_async_callback(service.fhir.close)
            stack.push_async_callback(world.close)
            door.backend = Facade(world)
            client, secret = await add_client(
                database,
                service.ring,
                practice="harbor",
                name="the frontdesk above",
                grant="integration",
                scopes=list(SCOPES),
                per_minute=1_000_000,
            )
            monkeypatch.setenv(f"SECRET_OF_{client.client_id.upper()}", secret)
            chained.append(Hop(world, door))
            text = practice_file(door, client.client_id)
        yield chained
