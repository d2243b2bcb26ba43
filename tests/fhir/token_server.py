"""A token endpoint beside a FHIR server, and clients that ask them."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from frontdesk.systems.fhir.settings import fhir_settings
from frontdesk.systems.fhir.transport.client import FhirClient
from frontdesk.systems.fhir.transport.request_sender import RequestSender
from tests.fhir.door import Answer, Door

SECRETS = {"HARBOR_TOKEN": "fixed-token", "HARBOR_SECRET": "s3cret&more"}
Open = Callable[..., FhirClient]


def as_json(status: int, document: Any) -> Answer:
    return Answer(status, {"content-type": "application/json"}, json.dumps(document).encode())


def a_patient(**members: Any) -> dict[str, Any]:
    return {"resourceType": "Patient", "id": "1", "meta": {"versionId": "7"}, **members}


class Server:
    """A token endpoint and a FHIR server that hands out what it was asked with."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.seen: list[dict[str, str]] = []
        self.token_status = 200
        self.expires_in: Any = 3600
        self.answers: Callable[[str, str], Answer] = lambda method, target: as_json(200, a_patient())

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if target == "/token":
            self.forms.append(
                {key: values[0] for key, values in parse_qs(body.decode()).items()}
                | {"basic": headers.get("authorization", "")}
            )
            if self.token_status != 200:
                return as_json(self.token_status, {"error": "invalid_client"})
            return as_json(200, {"access_token": f"token-{len(self.forms)}", "expires_in": self.expires_in})
        self.seen.append(headers)
        return self.answers(method, target)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    opened = Door(backend=Server())
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def server(door: Door) -> Server:
    assert isinstance(door.backend, Server)
    return door.backend


@pytest.fixture
async def open_client(door: Door) -> AsyncIterator[Open]:
    opened: list[FhirClient] = []

    def make(monotonic: Any = None, **settings: Any) -> FhirClient:
        config = {"kind": "fhir", "baseUrl": door.address, "timeoutSeconds": 30, **settings}
        extra = {} if monotonic is None else {"monotonic": monotonic}
        known = fhir_settings(config)
        opened.append(FhirClient(known.base_url, RequestSender(known, SECRETS, **extra)))
        return opened[-1]

    yield make
    for each in opened:
        await each.close()
