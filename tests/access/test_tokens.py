"""Access tokens: what they say, how long they live, and what checking them costs."""

from datetime import timedelta

import jwt
import pytest

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.access.keys.ring import SETTLING, TOKEN_SIGNING, KeyRing
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock
from tests.access.timing import seconds

URL = "https://desk.example"
SETTINGS = Settings(base_url=URL)
CLIENT = AuthenticatedClient("fd_0123456789abcdefghij", "riverside", "agent", SCOPES)


async def test_an_issued_token_says_who_for_which_practice_and_what(tokens: Tokens, clock: StoppedClock) -> None:
    issued = tokens.issue(CLIENT, ["slots:read", "practices:read"])
    assert (issued.expires_in, issued.scopes) == (3600, ("practices:read", "slots:read"))
    claims = await tokens.verify(issued.text)
    assert (claims.client_id, claims.practice_slug, claims.grant) == (CLIENT.client_id, "riverside", "agent")
    assert claims.scopes == {"practices:read", "slots:read"}
    assert claims.expires_at == clock.now + timedelta(hours=1)


def test_a_token_carries_the_documented_claims_and_verifies_with_the_published_keys(
    tokens: Tokens, ring: KeyRing, clock: StoppedClock
) -> None:
    text = tokens.issue(CLIENT, SCOPES).text
    header = jwt.get_unverified_header(text)
    assert (header["alg"], header["typ"]) == ("EdDSA", "at+jwt")
    [published] = [key for key in ring.jwks()["keys"] if key["kid"] == header["kid"]]
    claims = jwt.decode(
        text,
        jwt.PyJWK(published),
        algorithms=["EdDSA"],
        audience=URL,
        issuer=URL,
        options={"verify_exp": False, "verify_iat": False},
    )
    now = int(clock.now.timestamp())
    assert claims.pop("jti")
    assert claims == {
        "iss": URL,
        "aud": URL,
        "sub": CLIENT.client_id,
        "client_id": CLIENT.client_id,
        "practice": "riverside",
        "scope": " ".join(SCOPES),
        "grant": "agent",
        "iat": now,
        "exp": now + 3600,
    }


def test_no_two_tokens_are_alike(tokens: Tokens) -> None:
    assert tokens.issue(CLIENT, SCOPES).text != tokens.issue(CLIENT, SCOPES).text


async def test_a_token_expires_to_the_second_also_when_it_is_remembered(tokens: Tokens, clock: StoppedClock) -> None:
    text = tokens.issue(CLIENT, SCOPES).text
    clock.advance(3599)
    await tokens.verify(text)
    clock.advance(1)
    with pytest.raises(Problem, match="unauthorized") as raised:
        await tokens.verify(text)
    assert raised.value.detail == "The access token has expired."


async def test_tokens_of_both_keys_work_across_a_rotation(tokens: Tokens, ring: KeyRing, clock: StoppedClock) -> None:
    old = tokens.issue(CLIENT, SCOPES).text
    await ring.rotate(TOKEN_SIGNING)
    clock.advance(SETTLING.total_seconds())
    new = tokens.issue(CLIENT, SCOPES).text
    assert jwt.get_unverified_header(old)["kid"] != jwt.get_unverified_header(new)["kid"]
    for text in (old, new):
        assert (await Tokens(ring, SETTINGS, clock=clock).verify(text)).client_id == CLIENT.client_id


async def test_a_node_that_missed_a_rotation_looks_the_key_up(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    late = KeyRing(
        database,
        KeyCipher(["a secret key for tests that is long enough"]),
        clock=clock,
        monotonic=clock.monotonic,
    )
    await late.load()
    await ring.rotate(TOKEN_SIGNING)
    clock.advance(SETTLING.total_seconds())
    text = Tokens(ring, SETTINGS, clock=clock).issue(CLIENT, SCOPES).text
    assert (await Tokens(late, SETTINGS, clock=clock).verify(text)).client_id == CLIENT.client_id


async def test_a_known_token_costs_no_query_and_little_time(tokens: Tokens, database: Database) -> None:
    text = tokens.issue(CLIENT, SCOPES).text
    before = database.statements
    checked, known = [], []
    for _ in range(100):
        tokens._verified.clear()
        checked.append(await seconds(tokens.verify(text)))
        known += [await seconds(tokens.verify(text)) for _ in range(20)]
    assert database.statements == before
    assert min(known) < min(checked) / 5  # a signature is not checked again


async def test_only_a_bounded_number_of_tokens_is_remembered(tokens: Tokens) -> None:
    tokens._verified = BoundedCache(3)
    texts = [tokens.issue(CLIENT, SCOPES).text for _ in range(5)]
    for text in texts:
        await tokens.verify(text)
    assert [text for text, _ in tokens._verified.items()] == texts[2:]
    await tokens.verify(texts[0])
