"""How a FHIR server gets to know who asks: nothing, a fixed token, client credentials, a signed assertion."""

import asyncio
from base64 import b64decode
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from frontdesk.systems.fhir.transport.client import AnswerLost, FhirClient
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.port import Misconfigured, SystemUnavailable
from tests.fhir.door import Answer, Door, Request
from tests.fhir.token_server import Open, Server, a_patient, as_json, door, open_client, server

__all__ = ["door", "open_client", "server"]


def _smart(door: Door, key: Any, folder: Path) -> dict[str, str]:
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return {
        "kind": "smartBackend",
        "tokenUrl": f"{door.address}/token",
        "clientId": "front desk",
        "privateKeyFile": str(path),
        "keyId": "2026",
        "scope": "system/*.*",
    }


async def test_without_credentials_none_are_sent(open_client: Open, server: Server) -> None:
    await open_client().read(Deadline(30), "Patient/1")
    assert "authorization" not in server.seen[0]


async def test_a_fixed_token_is_read_from_the_environment(open_client: Open, server: Server) -> None:
    await open_client(auth={"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"}).read(Deadline(30), "Patient/1")
    assert server.seen[0]["authorization"] == "Bearer fixed-token"
    with pytest.raises(Misconfigured) as caught:
        await open_client(auth={"kind": "bearer", "tokenEnv": "MISSING"}).read(Deadline(30), "Patient/1")
    assert caught.value.reason == "the environment variable MISSING holds no usable secret"


async def test_client_credentials_are_exchanged_for_a_token_that_is_used_again(
    door: Door, open_client: Open, server: Server
) -> None:
    auth = {
        "kind": "clientCredentials",
        "tokenUrl": f"{door.address}/token",
        "clientId": "front desk",
        "clientSecretEnv": "HARBOR_SECRET",
        "scope": "system/*.*",
    }
    asking = open_client(auth=auth)
    await asking.read(Deadline(30), "Patient/1")
    await asking.read(Deadline(30), "Patient/1")
    [form] = server.forms
    assert (form["grant_type"], form["scope"]) == ("client_credentials", "system/*.*")
    assert b64decode(form["basic"].removeprefix("Basic ")).decode() == "front+desk:s3cret%26more"
    assert [seen["authorization"] for seen in server.seen] == ["Bearer token-1", "Bearer token-1"]


@pytest.mark.parametrize("algorithm", ["RS384", "ES384"])
async def test_a_backend_service_signs_an_assertion(
    door: Door, open_client: Open, server: Server, tmp_path: Path, algorithm: str
) -> None:
    key: Any = (
        rsa.generate_private_key(65537, 2048) if algorithm == "RS384" else ec.generate_private_key(ec.SECP384R1())
    )
    await open_client(auth=_smart(door, key, tmp_path)).read(Deadline(30), "Patient/1")
    [form] = server.forms
    assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert jwt.get_unverified_header(form["client_assertion"]) == {"alg": algorithm, "kid": "2026", "typ": "JWT"}
    claims = jwt.decode(
        form["client_assertion"], key.public_key(), algorithms=[algorithm], audience=f"{door.address}/token"
    )
    assert claims["iss"] == claims["sub"] == "front desk"
    assert claims["jti"]
    assert server.seen[0]["authorization"] == "Bearer token-1"


async def test_a_key_that_cannot_sign_is_named(door: Door, open_client: Open, tmp_path: Path) -> None:
    auth = _smart(door, ed25519.Ed25519PrivateKey.generate(), tmp_path)
    for change, reason in (
        (lambda path: path, "must hold an RSA key or an EC key on P-384"),
        (lambda path: path.write_text("none"), "holds no unencrypted private key in PEM form"),
        (lambda path: path.unlink(), "cannot be read: No such file or directory"),
    ):
        change(tmp_path / "key.pem")
        with pytest.raises(Misconfigured) as caught:
            await open_client(auth=auth).read(Deadline(30), "Patient/1")
        assert reason in caught.value.reason


@pytest.fixture
def asking(door: Door, open_client: Open, tmp_path: Path) -> FhirClient:
    return open_client(auth=_smart(door, ec.generate_private_key(ec.SECP384R1()), tmp_path))


async def test_a_token_is_renewed_before_it_ends(door: Door, open_client: Open, server: Server, tmp_path: Path) -> None:
    clock = [1000.0]
    auth = _smart(door, ec.generate_private_key(ec.SECP384R1()), tmp_path)
    asking = open_client(monotonic=lambda: clock[0], auth=auth)
    deadline = Deadline(1e6, lambda: clock[0])
    await asking.read(deadline, "Patient/1")
    clock[0] += 3560
    await asking.read(deadline, "Patient/1")
    assert len(server.forms) == 1
    clock[0] += 30
    await asking.read(deadline, "Patient/1")
    assert len(server.forms) == 2


def _refusing(server: Server, *tokens: str) -> None:
    """The server no longer takes these tokens."""
    refused = [f"Bearer {token}" for token in tokens]
    server.answers = lambda method, target: as_json(
        401 if server.seen[-1]["authorization"] in refused else 200, a_patient()
    )


async def test_a_refused_token_is_replaced_and_the_request_sent_once_more(asking: FhirClient, server: Server) -> None:
    _refusing(server, "token-1")
    assert await asking.read(Deadline(30), "Patient/1") is not None
    assert await asking.update(Deadline(30), a_patient()) is not None
    assert [seen["authorization"] for seen in server.seen] == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]


async def test_a_write_with_a_refused_token_was_not_executed_and_is_sent_once_more(
    asking: FhirClient, server: Server
) -> None:
    _refusing(server, "token-1")
    assert await asking.update(Deadline(30), a_patient()) is not None
    assert [seen["authorization"] for seen in server.seen] == ["Bearer token-1", "Bearer token-2"]


async def test_a_request_is_sent_at_most_twice(asking: FhirClient, server: Server) -> None:
    _refusing(server, "token-1", "token-2")
    with pytest.raises(SystemUnavailable):
        await asking.update(Deadline(30), a_patient())
    assert len(server.seen) == len(server.forms) == 2


async def test_one_who_hears_late_of_a_refusal_uses_the_token_that_others_have_got(
    asking: FhirClient, server: Server, door: Door
) -> None:
    await asking.read(Deadline(30), "Patient/1")
    _refusing(server, "token-1")
    server.seen.clear()
    renewed = asyncio.Event()

    async def hold_back(request: Request, answer: Answer) -> Answer:
        if request.headers.get("authorization") == "Bearer token-2":
            renewed.set()
        elif request.target.endswith("/Patient/late"):
            await renewed.wait()
        return answer

    door.rewrite = hold_back
    late = asyncio.create_task(asking.read(Deadline(60), "Patient/late"))
    while not server.seen:
        await asyncio.sleep(0.01)
    await asking.read(Deadline(60), "Patient/1")
    with pytest.raises(SystemUnavailable):
        await late  # the server has another record for it
    assert len(server.forms) == 2
    assert server.seen[-1]["authorization"] == "Bearer token-2"


async def test_a_write_that_was_not_answered_is_not_sent_with_another_token(
    asking: FhirClient, server: Server, door: Door
) -> None:
    await asking.read(Deadline(30), "Patient/1")
    _refusing(server, "token-1")
    for lost, sent in ((0, ["PUT"]), (2, ["PUT", "POST", "PUT"])):  # the first, or the one with the new token
        door.reset({lost: "cut_after"})
        with pytest.raises(AnswerLost):
            await asking.update(Deadline(30), a_patient())
        assert [request.method for request in door.seen] == sent


async def test_a_write_is_not_sent_once_a_new_token_has_taken_all_its_time(
    asking: FhirClient, server: Server, door: Door
) -> None:
    clock = [0.0]

    async def slowly(request: Request, answer: Answer) -> Answer:
        clock[0] += 29.5
        return answer

    door.rewrite = slowly
    with pytest.raises(SystemUnavailable):
        await asking.update(Deadline(30, lambda: clock[0]), a_patient())
    assert server.seen == []


@pytest.mark.parametrize(("status", "error"), [(401, Misconfigured), (400, Misconfigured), (503, SystemUnavailable)])
async def test_a_token_endpoint_that_says_no_is_told_apart(
    door: Door, open_client: Open, server: Server, tmp_path: Path, status: int, error: type[Exception]
) -> None:
    server.token_status = status
    with pytest.raises(error):
        await open_client(auth=_smart(door, ec.generate_private_key(ec.SECP384R1()), tmp_path)).read(
            Deadline(30), "Patient/1"
        )
    assert server.seen == []
