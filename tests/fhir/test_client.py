"""Requests to a FHIR server: credentials, pages, sizes, and answers that no server should give."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from frontdesk.systems.fhir import breaker, client
from frontdesk.systems.fhir.auth import Misconfigured
from frontdesk.systems.fhir.client import AnswerLost, Declined, FhirClient
from frontdesk.systems.fhir.deadline import Deadline
from frontdesk.systems.fhir.settings import fhir_settings
from frontdesk.systems.port import SystemUnavailable
from tests.fhir.door import Answer, Door

SECRETS = {"HARBOR_TOKEN": "fixed-token", "HARBOR_SECRET": "s3cret&more"}


def _json(status: int, document: Any) -> Answer:
    return Answer(status, {"content-type": "application/json"}, json.dumps(document).encode())


class Server:
    """A token endpoint and a FHIR server that hands out what it was asked with."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.seen: list[dict[str, str]] = []
        self.token_status = 200
        self.expires_in: Any = 3600
        self.answers: Callable[[str, str], Answer] = lambda method, target: _json(200, _patient())

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if target == "/token":
            self.forms.append(
                {key: values[0] for key, values in parse_qs(body.decode()).items()}
                | {"basic": headers.get("authorization", "")}
            )
            if self.token_status != 200:
                return _json(self.token_status, {"error": "invalid_client"})
            return _json(200, {"access_token": f"token-{len(self.forms)}", "expires_in": self.expires_in})
        self.seen.append(headers)
        return self.answers(method, target)


def _patient(**members: Any) -> dict[str, Any]:
    return {"resourceType": "Patient", "id": "1", "meta": {"versionId": "7"}, **members}


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


Open = Callable[..., FhirClient]


@pytest.fixture
async def open_client(door: Door) -> AsyncIterator[Open]:
    opened: list[FhirClient] = []

    def make(monotonic: Any = None, **settings: Any) -> FhirClient:
        config = {"kind": "fhir", "baseUrl": door.address, "timeoutSeconds": 2, **settings}
        extra = {} if monotonic is None else {"monotonic": monotonic}
        opened.append(FhirClient(fhir_settings(config), SECRETS, **extra))
        return opened[-1]

    yield make
    for each in opened:
        await each.close()


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
    await open_client().read(Deadline(2), "Patient/1")
    assert "authorization" not in server.seen[0]


async def test_a_fixed_token_is_read_from_the_environment(open_client: Open, server: Server) -> None:
    await open_client(auth={"kind": "bearer", "tokenEnv": "HARBOR_TOKEN"}).read(Deadline(2), "Patient/1")
    assert server.seen[0]["authorization"] == "Bearer fixed-token"
    with pytest.raises(Misconfigured) as caught:
        await open_client(auth={"kind": "bearer", "tokenEnv": "MISSING"}).read(Deadline(2), "Patient/1")
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
    await asking.read(Deadline(2), "Patient/1")
    await asking.read(Deadline(2), "Patient/1")
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
    await open_client(auth=_smart(door, key, tmp_path)).read(Deadline(2), "Patient/1")
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
            await open_client(auth=auth).read(Deadline(2), "Patient/1")
        assert reason in caught.value.reason


async def test_a_token_is_renewed_before_it_ends_and_when_it_is_refused(
    door: Door, open_client: Open, server: Server, tmp_path: Path
) -> None:
    clock = [1000.0]
    auth = _smart(door, ec.generate_private_key(ec.SECP384R1()), tmp_path)
    asking = open_client(monotonic=lambda: clock[0], auth=auth)
    deadline = Deadline(1e6, lambda: clock[0])
    await asking.read(deadline, "Patient/1")
    clock[0] += 3590
    await asking.read(deadline, "Patient/1")
    assert len(server.forms) == 2
    server.answers = lambda method, target: _json(200 if len(server.forms) > 2 else 401, _patient())
    assert await asking.read(deadline, "Patient/1") is not None
    assert server.seen[-1]["authorization"] == "Bearer token-3"


@pytest.mark.parametrize(("status", "error"), [(401, Misconfigured), (400, Misconfigured), (503, SystemUnavailable)])
async def test_a_token_endpoint_that_says_no_is_told_apart(
    door: Door, open_client: Open, server: Server, tmp_path: Path, status: int, error: type[Exception]
) -> None:
    server.token_status = status
    with pytest.raises(error):
        await open_client(auth=_smart(door, ec.generate_private_key(ec.SECP384R1()), tmp_path)).read(
            Deadline(2), "Patient/1"
        )
    assert server.seen == []


async def test_pages_are_followed_on_the_same_server_only(door: Door, open_client: Open, server: Server) -> None:
    def pages(method: str, target: str) -> Answer:
        entries = [{"resource": _patient()}, {"resource": {"resourceType": "OperationOutcome"}}, "odd"]
        bundle: dict[str, Any] = {"resourceType": "Bundle", "entry": entries}
        if "page" not in target:
            bundle["link"] = [{"relation": "next", "url": f"{door.address}/Patient?page=2"}]
        return _json(200, bundle)

    server.answers = pages
    assert len(await open_client().search(Deadline(2), "Patient", [("birthdate", "1985-12-10")])) == 2
    for elsewhere in ("http://127.0.0.1:1/fhir/Patient?page=2", f"{door.address}evil/Patient", "ht!tp://[", "//x/y"):
        link = [{"relation": "next", "url": elsewhere}]
        server.answers = lambda method, target, link=link: _json(200, {"resourceType": "Bundle", "link": link})  # type: ignore[misc]
        with pytest.raises(SystemUnavailable):
            await open_client().search(Deadline(2), "Patient", [])


async def test_pages_without_end_are_given_up(
    door: Door, open_client: Open, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_PAGES", 3)
    link = [{"relation": "next", "url": f"{door.address}/Patient?again"}]
    server.answers = lambda method, target: _json(200, {"resourceType": "Bundle", "link": link})
    with pytest.raises(SystemUnavailable):
        await open_client().search(Deadline(2), "Patient", [])
    assert len(server.seen) == 3


async def test_an_answer_without_end_is_given_up(
    open_client: Open, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LARGEST_ANSWER", 1000)
    server.answers = lambda method, target: _json(200, _patient(text="x" * 2000))
    with pytest.raises(SystemUnavailable):
        await open_client().read(Deadline(2), "Patient/1")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {}, b"<html>"),
        Answer(200, {}, b"[1]"),
        Answer(200, {}, b'{"resourceType": 7}'),
        Answer(200, {}, b'{"resourceType": "Patient", "id": "other"}'),
        Answer(302, {"location": "http://elsewhere/"}, b""),
        Answer(403, {}, b""),
        Answer(500, {}, b""),
    ],
)
async def test_a_read_takes_nothing_for_a_record_that_is_none(
    open_client: Open, server: Server, answer: Answer
) -> None:
    server.answers = lambda method, target: answer
    with pytest.raises(SystemUnavailable):
        await open_client().read(Deadline(2), "Patient/1")


@pytest.mark.parametrize("status", [404, 410])
async def test_a_record_that_is_gone_is_none(open_client: Open, server: Server, status: int) -> None:
    server.answers = lambda method, target: Answer(status, {}, b"")
    assert await open_client().read(Deadline(2), "Patient/1") is None


async def test_a_write_carries_its_condition(open_client: Open, server: Server, door: Door) -> None:
    asking = open_client()
    await asking.update(Deadline(2), _patient())
    assert server.seen[0]["if-match"] == 'W/"7"'
    await asking.create(Deadline(2), {"resourceType": "Patient"}, "identifier=a|b")
    assert server.seen[1]["if-none-exist"] == "identifier=a|b"
    assert server.seen[1]["content-type"] == "application/fhir+json"
    with pytest.raises(SystemUnavailable):
        await asking.update(Deadline(2), {"resourceType": "Patient", "id": "1"})
    assert len(server.seen) == 2, "what has no version is not written"


@pytest.mark.parametrize("status", [409, 412, 422, 400, 404])
async def test_a_declined_write_is_told_with_its_reason(open_client: Open, server: Server, status: int) -> None:
    issue = [{"severity": "error", "diagnostics": "No.\x00\nNever."}, {"severity": "warning", "diagnostics": "Hm"}]
    server.answers = lambda method, target: _json(status, {"resourceType": "OperationOutcome", "issue": issue})
    with pytest.raises(Declined) as caught:
        await open_client().update(Deadline(2), _patient())
    assert caught.value.text == "No. Never."
    assert caught.value.contended == (status in (409, 412))


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (Answer(500, {}, b""), True),
        (Answer(503, {"Retry-After": "9"}, b""), True),
        (Answer(502, {}, b""), False),
        (Answer(504, {}, b""), False),
        (Answer(200, {}, b"thanks"), False),
        (Answer(201, {}, b""), False),
    ],
)
async def test_a_write_without_an_answer_is_never_repeated(
    open_client: Open, server: Server, answer: Answer, failed: bool
) -> None:
    server.answers = lambda method, target: answer
    with pytest.raises(AnswerLost) as caught:
        await open_client().create(Deadline(2), {"resourceType": "Patient"}, "identifier=a|b")
    assert caught.value.failed == failed
    assert len(server.seen) == 1
    if answer.status == 503:
        assert caught.value.retry_after == 9


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_write_that_was_turned_away_was_not_executed(open_client: Open, server: Server, status: int) -> None:
    server.answers = lambda method, target: Answer(status, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}, b"")
    with pytest.raises(SystemUnavailable) as caught:
        await open_client().update(Deadline(2), _patient())
    assert caught.value.retry_after == 120


async def test_a_write_does_not_begin_without_time_to_hear_how_it_ended(open_client: Open, server: Server) -> None:
    with pytest.raises(SystemUnavailable):
        await open_client().update(Deadline(0.0), _patient())
    assert server.seen == []


def test_the_breaker_lets_one_try_at_a_time() -> None:
    clock = [0.0]
    tested = breaker.Breaker(lambda: clock[0])
    for _ in range(breaker.FAILURES):
        tested.admit()
        tested.failed()
    with pytest.raises(SystemUnavailable) as caught:
        tested.admit()
    assert caught.value.retry_after == 2
    clock[0] = 2.0
    tested.admit()
    with pytest.raises(SystemUnavailable):
        tested.admit()  # somebody else tries already
    tested.failed()
    clock[0] = 5.9
    with pytest.raises(SystemUnavailable):
        tested.admit()  # and waits twice as long
    clock[0] = 6.0
    tested.admit()
    tested.succeeded()
    tested.admit()
    tested.admit()
