"""Tokens for clients that sign with their own keys (private_key_jwt), and SMART scopes."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from frontdesk.access.clients.assertions import ASSERTION_TYPE, prune_assertions
from frontdesk.access.clients.public_keys import read_jwks
from frontdesk.access.clients.records import ClientKeys, add_client, disable_client, set_keys
from frontdesk.access.clients.validation import ClientError
from frontdesk.app import build_app
from frontdesk.outbound.checked_http import CheckedHttp, FetchError
from frontdesk.outbound.key_sets import FRESH_SECONDS, RETRY_SECONDS, KeySets
from tests.cli.in_process import Command, command
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

__all__ = ["command"]

world = world_of_a_module

KEY = ec.generate_private_key(ec.SECP384R1())
OTHER = ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
HELD = ("practices:read", "slots:read", "appointments:read", "appointments:book")
URL = "https://keys.example/jwks.json"


def jwk(key: Any, kid: str, **members: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **members}


KEYS = {"keys": [jwk(KEY, "k1"), jwk(RSA, "r1", alg="RS384", use="sig")]}


class Signer:
    """A client that signs its requests for tokens."""

    def __init__(self, world: World, client_id: str, http: httpx.AsyncClient) -> None:
        self.world, self.client_id, self.http = world, client_id, http
        self.signed = 0

    def assertion(
        self, key: Any = KEY, alg: str = "ES384", headers: dict[str, Any] | None = None, **changes: Any
    ) -> str:
        self.signed += 1
        now = self.world.clock.now.timestamp()
        claims = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": "http://test/oauth/token",
            "exp": now + 300,
            "jti": f"{self.client_id} {self.signed}",
            **changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        parameters = {"kid": "k1", **(headers or {})}
        if parameters["kid"] is None:
            del parameters["kid"]
        return jwt.encode(claims, key, algorithm=alg, headers=parameters)

    async def post(self, assertion: str, http: httpx.AsyncClient | None = None, **changes: str) -> httpx.Response:
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion,
            **changes,
        }
        return await (http or self.http).post("/oauth/token", data=form)


@pytest.fixture
async def signer(world: World) -> Signer:
    client, _ = await add_client(
        world.database,
        world.service.ring,
        practice="harbor",
        name="EHR",
        grant="integration",
        scopes=HELD,
        keys=ClientKeys(jwks=read_jwks(json.dumps(KEYS).encode())),
    )
    return Signer(world, client.client_id, world.anonymous())


def refused(answer: httpx.Response, words: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), answer.text
    assert words in answer.json()["detail"], answer.text


async def test_a_signed_assertion_gets_a_token_that_works(signer: Signer) -> None:
    for assertion in (
        signer.assertion(),
        signer.assertion(RSA, "RS384", {"kid": "r1"}),
        signer.assertion(headers={"typ": None}),
        signer.assertion(aud=["http://test/oauth/token"]),
    ):
        answer = await signer.post(assertion)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"access_token", "token_type", "expires_in", "scope"}
        assert answer.json()["scope"] == " ".join(HELD)
    bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    assert (await signer.http.get("/api/locations", headers=bearer)).status_code == 200
    assert (await signer.post(signer.assertion(), client_id=signer.client_id)).status_code == 200


async def test_an_assertion_is_accepted_once_over_all_nodes(signer: Signer, world: World) -> None:
    used = signer.assertion()
    assert (await signer.post(used)).status_code == 200
    node = httpx.ASGITransport(app=build_app(replace(world.service)))
    async with httpx.AsyncClient(transport=node, base_url="http://test") as elsewhere:
        refused(await signer.post(used, elsewhere), "used before")
    # The same jti signed again, with other claims, is a replay as well.
    again = signer.assertion(jti=f"{signer.client_id} {signer.signed}", exp=world.clock.now.timestamp() + 200)
    refused(await signer.post(again), "used before")
    await prune_assertions(world.database, world.clock.now + timedelta(minutes=6), 100)
    refused(await signer.post(used), "used before")
    await prune_assertions(world.database, world.clock.now + timedelta(hours=2), 100)
    assert await world.database.fetchval("SELECT count(*) FROM used_assertion") == 0


async def test_an_assertion_that_breaks_a_rule_is_refused_with_the_reason(signer: Signer, world: World) -> None:
    now = world.clock.now.timestamp()
    for assertion, words in (
        ("x", "JSON Web Token"),
        ("a" * 9000, "too long"),
        (signer.assertion("secret" * 10, "HS384"), "RS384 or ES384"),
        (jwt.encode({"sub": signer.client_id}, None, algorithm="none"), "RS384 or ES384"),
        (signer.assertion(headers={"typ": "at+jwt"}), "type JWT"),
        (signer.assertion(headers={"crit": ["b64"]}), "JSON Web Token"),
        (signer.assertion(headers={"kid": None}), "kid"),
        (signer.assertion(iss="fd_00000000000000000000"), "iss and sub"),
        (signer.assertion(aud="http://test"), "aud"),
        (signer.assertion(aud=["http://test/oauth/token", "https://evil.example"]), "aud"),
        (signer.assertion(aud=None), "aud"),
        (signer.assertion(jti=None), "jti"),
        (signer.assertion(jti="x" * 256), "jti"),
        (signer.assertion(exp=None), "exp"),
        (signer.assertion(exp=now), "exp"),
        (signer.assertion(exp=now + 361), "exp"),
        (signer.assertion(exp=True), "exp"),
        (signer.assertion(exp="soon"), "exp"),
        (signer.assertion(iat=now + 61), "iat"),
        (signer.assertion(nbf=now + 61), "nbf"),
    ):
        refused(await signer.post(assertion), words)


async def test_wrong_signatures_and_unknown_clients_look_alike(signer: Signer, world: World) -> None:
    plain, _ = await add_client(
        world.database, world.service.ring, practice="harbor", name="No keys", grant="agent", scopes=HELD
    )
    header, claims, signature = signer.assertion().split(".")
    wrong = [
        signer.assertion(OTHER),
        signer.assertion(headers={"kid": "k2"}),
        signer.assertion(headers={"kid": "r1"}),
        signer.assertion(headers={"jku": "https://evil.example/jwks.json"}),
        f"{header}.{claims}.{'A' * len(signature)}",
        signer.assertion(iss=plain.client_id, sub=plain.client_id),
        signer.assertion(iss="fd_00000000000000000000", sub="fd_00000000000000000000"),
        signer.assertion(iss="nobody", sub="nobody"),
    ]
    answers = [await signer.post(assertion) for assertion in wrong]
    await disable_client(world.database, signer.client_id)
    answers.append(await signer.post(signer.assertion()))
    for answer in answers:
        refused(answer, "is not signed with a key of a client that may call")
        assert "www-authenticate" in answer.headers


async def test_wrong_assertions_are_capped_like_wrong_secrets(signer: Signer) -> None:
    statuses = [(await signer.post(signer.assertion(OTHER))).status_code for _ in range(21)]
    assert (statuses[0], statuses[-1]) == (401, 429)


async def test_two_ways_of_authenticating_and_missing_parameters_are_refused(signer: Signer) -> None:
    for changes in (
        {"client_secret": "fds_x"},
        {"client_id": "fd_00000000000000000000"},
        {"client_assertion_type": "urn:other"},
        {"client_assertion": ""},
        {"client_assertion_type": ""},
        {"grant_type": "password"},
    ):
        answer = await signer.post(signer.assertion(), **changes)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"] in ("invalid_request", "unsupported_grant_type")


async def test_smart_scopes_are_narrowed_to_what_the_client_holds(signer: Signer, world: World) -> None:
    for requested, answered, ours in (
        ("system/Slot.rs", "system/Slot.rs", "slots:read"),
        ("system/Appointment.read", "system/Appointment.read", "appointments:read"),
        ("system/Appointment.cruds", "system/Appointment.crus", "appointments:book appointments:read"),
        ("system/Patient.rs system/Location.r", "system/Location.r", "practices:read"),
        ("system/Slot.rs?status=free system/Slot.r", "system/Slot.r", "slots:read"),
        ("user/Slot.rs system/Slot.s launch", "system/Slot.s", "slots:read"),
        ("slots:read system/Location.rs", "slots:read system/Location.rs", "practices:read slots:read"),
    ):
        body = (await signer.post(signer.assertion(), scope=requested)).json()
        assert body["scope"] == answered
        bearer = {"Authorization": f"Bearer {body['access_token']}"}
        held = (await signer.http.get("/api/capabilities", headers=bearer)).json()["capabilities"]
        assert " ".join(sorted(held)) == ours
    everything = (await signer.post(signer.assertion(), scope="system/*.*")).json()["scope"].split()
    assert "system/Appointment.crus" in everything
    assert not any("Patient" in scope for scope in everything)
    for requested in ("system/Patient.rs", "system/Slot.sr", "system/Slot.", "system/Observation.rs", "openid", "x"):
        answer = await signer.post(signer.assertion(), scope=requested)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope"), requested


def test_key_sets_with_private_weak_or_ambiguous_keys_are_refused() -> None:
    private = {**jwk(KEY, "k1"), "d": "AAAA"}
    weak = jwk(rsa.generate_private_key(65537, 1024), "weak")
    for keys, words in (
        ([jwk(OTHER, "k2"), private], "private"),
        ([{"kty": "oct", "k": "AAAA", "kid": "k1"}], "private or secret"),
        ([weak], "2048"),
        ([jwk(ec.generate_private_key(ec.SECP256R1()), "p256")], "P-384"),
        ([jwk(KEY, "k1", use="enc")], "P-384"),
        ([jwk(RSA, "r1", alg="RS256")], "RS384"),
        ([jwk(KEY, "same"), jwk(OTHER, "same")], "kid"),
        ([{**jwk(KEY, "k1"), "x": "AAAA"}], "P-384"),
        ([], "public key"),
        ([jwk(KEY, "k1")] * 21, "at most"),
    ):
        with pytest.raises(ClientError, match=words):
            read_jwks(json.dumps({"keys": keys}).encode())
    for content in (b"", b"[]", b"{}", b'{"keys": 5}', b'"keys"'):
        with pytest.raises(ClientError):
            read_jwks(content)


async def test_keys_are_registered_on_the_command_line(command: Command, world: World, tmp_path: Path) -> None:
    public, private = tmp_path / "public.json", tmp_path / "private.json"
    public.write_text(json.dumps(KEYS))
    private.write_text(json.dumps({"keys": [{**jwk(KEY, "k1"), "d": "AAAA"}]}))
    add = (
        "client",
        "add",
        "--practice",
        "harbor",
        "--name",
        "EHR",
        "--grant",
        "integration",
        "--scope",
        "all",
        "--json",
    )
    added = (await command(*add, "--jwks", str(public))).document
    assert set(added) == {"clientId", "clientSecret"}
    signer = Signer(world, added["clientId"], world.anonymous())
    assert (await signer.post(signer.assertion())).status_code == 200
    assert (await command("client", "show", added["clientId"], "--json")).document["keyIds"] == ["k1", "r1"]
    removed = await command("client", "set-keys", added["clientId"], "--remove", "--json")
    assert removed.document["keyIds"] == []
    refused(await signer.post(signer.assertion()), "not signed")
    for source, words in (
        (str(private), "private or secret"),
        (str(tmp_path / "none.json"), "cannot be read"),
        ("https://127.0.0.1/jwks.json", "public address"),
    ):
        failed = await command("client", "set-keys", added["clientId"], "--jwks", source)
        assert (failed.status, words in failed.err) == (2, True), failed


class Published(CheckedHttp):
    """A key set at a URL, and how often it was fetched."""

    def __init__(self) -> None:
        super().__init__(allow_private=False)
        self.keys: dict[str, Any] | None = {"keys": [jwk(KEY, "k1")]}
        self.fetched = 0

    async def fetch(self, url: str) -> bytes:
        assert url == URL
        self.fetched += 1
        if self.keys is None:
            raise FetchError("refused")
        return json.dumps(self.keys).encode()


async def test_a_key_set_at_a_url_is_cached_and_fetched_again_for_a_new_key(signer: Signer, world: World) -> None:
    published, seconds = Published(), 0.0
    service = replace(world.service, key_sets=KeySets(published, monotonic=lambda: seconds))
    await set_keys(world.database, signer.client_id, ClientKeys(url=URL))
    transport = httpx.ASGITransport(app=build_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:

        async def status(*signature: Any) -> int:
            return (await signer.post(signer.assertion(*signature), http)).status_code

        assert [await status(), await status()] == [200, 200]
        assert (await signer.post(signer.assertion(headers={"jku": URL}), http)).status_code == 200
        assert published.fetched == 1
        # An unknown key id fetches at most twice a minute, whatever is sent.
        new = (OTHER, "ES384", {"kid": "k2"})
        assert [await status(*new), await status(*new)] == [401, 401]
        published.keys = {"keys": [jwk(OTHER, "k2")]}
        seconds += RETRY_SECONDS
        assert [await status(*new), await status()] == [200, 401]
        assert published.fetched == 2
        # While the key set cannot be fetched nobody gets in: a removed key must not live on.
        published.keys = None
        seconds += FRESH_SECONDS
        answers = [await signer.post(signer.assertion(*new), http) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [502, 502]
        assert answers[0].headers["retry-after"] == "30"
        assert published.fetched == 3


async def test_a_key_set_is_fetched_from_public_addresses_only() -> None:
    http = CheckedHttp(allow_private=False)
    for url in (
        "https://127.0.0.1/jwks.json",
        "http://keys.example/jwks.json",
        "https://[::ffff:10.0.0.1]/",
        "file:///x",
    ):
        with pytest.raises(FetchError, match="forbidden address"):
            await http.fetch(url)
    await http.close()
