"""A practice whose FHIR server lets in only whom it knows: every kind of credentials, and tokens that end halfway."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from frontdesk.store.database import Database
from tests.fhir.calls import booking, challenged
from tests.fhir.door import Answer, Backend
from tests.fhir.practice import Upstream, fhir_world, opened
from tests.support.world import book

FIXED = "a-token-that-does-not-change"


class Guarded:
    """Hands out tokens, and answers only those who carry the newest."""

    def __init__(self, inner: Backend | None) -> None:
        assert inner is not None
        self._inner = inner
        self._tokens = 0
        self._valid = FIXED
        self._lasts: int | None = None  # requests, until the token ends
        self.refused = 0

    def end_before(self, request: int) -> None:
        """The token ends before this request, counted from now."""
        self._lasts, self.refused = request, 0

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if target == "/token":
            self._tokens += 1
            self._valid = f"token-{self._tokens}"
            document = {"access_token": self._valid, "token_type": "bearer", "expires_in": 300}
            return Answer(200, {"content-type": "application/json"}, json.dumps(document).encode())
        if self._lasts is not None:
            self._lasts -= 1
            if self._lasts < 0:
                self._lasts, self._valid = None, "nobody has it yet"
        if headers.get("authorization") != f"Bearer {self._valid}":
            self.refused += 1
            return Answer(401, {}, b"")
        return await self._inner.answer(method, target, headers, body)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with opened("fake") as door:
        seeded = Upstream(door)
        await seeded.seed()
        yield seeded


@pytest.fixture
def credentials(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The settings of every kind, with the secrets where they point to."""
    monkeypatch.setenv("HARBOR_TOKEN", FIXED)
    monkeypatch.setenv("HARBOR_SECRET", "s3cret")
    key = tmp_path / "key.pem"
    private = ec.generate_private_key(ec.SECP384R1())
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    client = {"tokenUrl": f"{upstream.door.address}/token", "clientId": "frontdesk", "scope": "system/*.*"}
    return {
        "none": {"kind": "none"},
        "bearer": {"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"},
        "clientCredentials": {"kind": "clientCredentials", "clientSecretEnv": "HARBOR_SECRET", **client},
        "smartBackend": {"kind": "smartBackend", "privateKeyFile": str(key), **client},
    }


@pytest.mark.parametrize("kind", ["none", "bearer", "clientCredentials", "smartBackend"])
async def test_an_appointment_is_booked_with_every_kind_of_credentials(
    database: Database, tmp_path: Path, upstream: Upstream, credentials: dict[str, Any], kind: str
) -> None:
    inner = upstream.door.backend
    if kind != "none":
        upstream.door.backend = Guarded(inner)
    async with fhir_world(database, tmp_path, upstream.door, auth=credentials[kind]) as world:
        assert await book(await world.client())
    upstream.door.backend = inner
    assert len(await upstream.live_appointments()) == 1
    sent = [request for request in upstream.door.seen if not request.target.endswith("/token")]
    assert all(("authorization" in request.headers) is (kind != "none") for request in sent)


async def test_a_token_that_ends_at_any_request_of_a_booking_changes_nothing(
    database: Database, tmp_path: Path, upstream: Upstream, credentials: dict[str, Any]
) -> None:
    inner = upstream.door.backend
    upstream.door.backend = guard = Guarded(inner)
    async with fhir_world(database, tmp_path, upstream.door, auth=credentials["clientCredentials"]) as world:
        agent = await world.client()
        for point in range(30):
            body = await challenged(agent, "/api/appointments", await booking(agent, ("Ada", "Alan")[point % 2]))
            guard.end_before(point)
            answer = await agent.post("/api/appointments", json=body)
            assert answer.status_code == 201, (point, answer.text)
            if not guard.refused:
                assert point > 5
                break
        upstream.door.backend = inner
        assert len(await upstream.live_appointments()) == point + 1


async def test_wrong_credentials_are_no_answer_about_the_practice(
    database: Database, tmp_path: Path, upstream: Upstream, credentials: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARBOR_TOKEN", "another")
    upstream.door.backend = Guarded(upstream.door.backend)
    async with fhir_world(database, tmp_path, upstream.door, auth=credentials["bearer"]) as world:
        agent = await world.client()
        person = {"firstName": "Ada", "lastName": "Lovelace", "phone": "0199", "dob": "1985-12-10"}
        answers: list[httpx.Response] = await asyncio.gather(
            *(agent.post("/api/patients/match", json=person) for _ in range(3))
        )
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(502, "upstream_unavailable")}
    assert all("another" not in answer.text for answer in answers)
