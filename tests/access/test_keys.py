"""The service's own keys: made once, encrypted at rest, replaced without anybody noticing."""

import asyncio
from base64 import urlsafe_b64decode

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError
from frontdesk.access.keys.ring import (
    AUDIT_HEADS,
    CLIENT_SECRETS,
    CURSORS,
    PURPOSES,
    SETTLING,
    SLOT_IDS,
    TOKEN_SIGNING,
    KeyRing,
)
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock

SECRET_KEY = "a secret key for tests that is long enough"  # what the ring of these tests encrypts with
NEW_SECRET_KEY = "a newer secret key for tests that is long enough"
HOUR = 3600


def another_node(database: Database, clock: StoppedClock, *secret_keys: str) -> KeyRing:
    return KeyRing(database, KeyCipher(list(secret_keys or [SECRET_KEY])), clock=clock, monotonic=clock.monotonic)


async def test_the_first_start_makes_one_key_of_each_purpose(database: Database, ring: KeyRing) -> None:
    assert sorted(key.purpose for key in await ring.list_keys()) == sorted(PURPOSES)
    assert [len(ring.secrets(purpose)[0]) for purpose in PURPOSES] == [32] * len(PURPOSES)
    assert len({ring.secrets(purpose)[0] for purpose in PURPOSES}) == len(PURPOSES)


async def test_processes_that_start_together_make_the_same_keys(database: Database, clock: StoppedClock) -> None:
    rings = [another_node(database, clock) for _ in range(4)]
    await asyncio.gather(*(database.fetchval("SELECT pg_sleep(0.1)") for _ in rings))  # opens a connection for each
    await asyncio.gather(*(ring.load() for ring in rings))
    assert len(await rings[0].list_keys()) == len(PURPOSES)
    assert len({ring.signing_key.kid for ring in rings}) == 1
    for purpose in PURPOSES:
        assert len({tuple(ring.secrets(purpose)) for ring in rings}) == 1


async def test_keys_are_not_readable_in_the_database(database: Database, ring: KeyRing) -> None:
    stored = b"".join(row["sealed"] for row in await database.fetch("SELECT sealed FROM sealed_key"))
    assert stored
    assert not any(ring.secrets(purpose)[0] in stored for purpose in PURPOSES)


async def test_a_node_with_another_secret_key_is_told_so(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    with pytest.raises(SecretKeyError, match="another secret key"):
        await another_node(database, clock, NEW_SECRET_KEY).load()


async def test_keys_of_a_newer_release_are_left_alone(database: Database, ring: KeyRing, clock: StoppedClock) -> None:
    await database.write(
        "INSERT INTO sealed_key (key_id, purpose, sealed, created_at) VALUES ('k', 'of tomorrow', 'x', $1)", clock()
    )
    node = another_node(database, clock)
    await node.load()
    assert node.secrets(CURSORS) == ring.secrets(CURSORS)


async def test_only_a_known_key_verifies_an_audit_head(ring: KeyRing, clock: StoppedClock) -> None:
    key_id, signature = ring.sign_audit_head(b"head")
    await ring.rotate(AUDIT_HEADS)
    clock.advance(10 * 365 * 24 * HOUR)
    assert ring.sign_audit_head(b"head")[0] != key_id
    assert ring.verify_audit_head(key_id, b"head", signature)
    assert not ring.verify_audit_head(key_id, b"other", signature)
    assert not ring.verify_audit_head("unknown", b"head", signature)


async def test_keys_swapped_in_the_database_do_not_open(database: Database, ring: KeyRing, clock: StoppedClock) -> None:
    await database.write(
        """UPDATE sealed_key SET sealed = (SELECT sealed FROM sealed_key WHERE purpose = $1) WHERE purpose = $2""",
        SLOT_IDS,
        CURSORS,
    )
    with pytest.raises(SecretKeyError):
        await another_node(database, clock).load()


async def test_a_rotated_key_is_published_before_it_signs(ring: KeyRing, clock: StoppedClock) -> None:
    before = ring.signing_key.kid
    made = await ring.rotate(TOKEN_SIGNING)
    assert made.key_id != before
    assert ring.signing_key.kid == before
    assert set(ring.verification_keys) == {before, made.key_id}
    clock.advance(SETTLING.total_seconds())
    assert ring.signing_key.kid == made.key_id


async def test_a_replaced_signing_key_verifies_until_its_last_token_has_expired(
    ring: KeyRing, clock: StoppedClock
) -> None:
    old = ring.signing_key.kid
    made = await ring.rotate(TOKEN_SIGNING)
    clock.advance(SETTLING.total_seconds() + HOUR - 1)
    assert set(ring.verification_keys) == {old, made.key_id}
    clock.advance(1)
    assert set(ring.verification_keys) == {made.key_id}
    assert [key["kid"] for key in ring.jwks()["keys"]] == [made.key_id, ring.audit_key.kid]


async def test_rotating_twice_in_a_moment_never_leaves_a_gap(ring: KeyRing, clock: StoppedClock) -> None:
    kids = [ring.signing_key.kid]
    for _ in range(2):
        clock.advance(1)
        kids.append((await ring.rotate(TOKEN_SIGNING)).key_id)
    assert ring.signing_key.kid == kids[0]
    clock.advance(SETTLING.total_seconds() - 1)
    assert ring.signing_key.kid == kids[1]
    clock.advance(1)
    assert ring.signing_key.kid == kids[2]
    assert set(ring.verification_keys) == set(kids)


async def test_rotation_forgets_keys_that_nothing_depends_on(ring: KeyRing, clock: StoppedClock) -> None:
    old = ring.signing_key.kid
    await ring.rotate(TOKEN_SIGNING)
    clock.advance(SETTLING.total_seconds() + HOUR)
    await ring.rotate(TOKEN_SIGNING)
    assert old not in {key.key_id for key in await ring.list_keys()}


async def test_slot_id_secrets_put_the_one_in_use_first_and_keep_the_old(ring: KeyRing, clock: StoppedClock) -> None:
    [old] = ring.secrets(SLOT_IDS)
    await ring.rotate(SLOT_IDS)
    assert ring.secrets(SLOT_IDS)[0] == old
    clock.advance(SETTLING.total_seconds())
    new = ring.secrets(SLOT_IDS)
    assert new[0] != old
    assert new[1:] == [old]
    clock.advance(7 * 24 * HOUR)
    assert ring.secrets(SLOT_IDS) == new[:1]


async def test_client_secret_keys_are_kept_for_ever(ring: KeyRing, clock: StoppedClock) -> None:
    [old] = ring.secrets(CLIENT_SECRETS)
    await ring.rotate(CLIENT_SECRETS)
    clock.advance(1000 * 24 * HOUR)
    await ring.rotate(CLIENT_SECRETS)
    assert old in ring.secrets(CLIENT_SECRETS)


async def test_another_node_knows_a_new_key_before_it_is_used(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    other = another_node(database, clock)
    await other.load()
    made = await ring.rotate(TOKEN_SIGNING)
    clock.advance(5)
    await other.refresh()
    assert made.key_id in other.verification_keys


async def test_refresh_asks_the_database_at_most_once_a_second(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    clock.advance(1)
    before = database.statements
    await asyncio.gather(*(ring.refresh() for _ in range(50)))
    assert database.statements == before + 1
    clock.advance(0.9)
    await ring.refresh()
    assert database.statements == before + 1
    clock.advance(0.1)
    await ring.refresh()
    assert database.statements == before + 2


async def test_reencryption_makes_the_old_secret_key_unnecessary(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    both = another_node(database, clock, NEW_SECRET_KEY, SECRET_KEY)
    await both.load()
    assert await both.reencrypt() == len(PURPOSES)
    only_new = another_node(database, clock, NEW_SECRET_KEY)
    await only_new.load()
    assert only_new.signing_key.kid == ring.signing_key.kid
    assert only_new.secrets(SLOT_IDS) == ring.secrets(SLOT_IDS)
    with pytest.raises(SecretKeyError):
        await another_node(database, clock).load()


async def test_a_running_node_goes_on_while_the_secret_key_is_replaced(
    database: Database, ring: KeyRing, clock: StoppedClock
) -> None:
    both = another_node(database, clock, NEW_SECRET_KEY, SECRET_KEY)
    await both.load()
    await both.reencrypt()
    clock.advance(1)
    await ring.refresh()
    assert ring.signing_key.kid == both.signing_key.kid


async def test_the_published_keys_are_the_public_halves(ring: KeyRing) -> None:
    keys = ring.jwks()["keys"]
    private = [ring.signing_key, ring.audit_key]
    assert [key["kid"] for key in keys] == [each.kid for each in private]
    for key, held in zip(keys, private, strict=True):
        _is_public_half(key, held.private)


async def test_keys_of_the_audit_trail_stay_published(ring: KeyRing, clock: StoppedClock) -> None:
    kids = [ring.audit_key.kid]
    for _ in range(3):
        kids.append((await ring.rotate(AUDIT_HEADS)).key_id)
        clock.advance(400 * 24 * HOUR)
    assert set(kids) < {key["kid"] for key in ring.jwks()["keys"]}
    assert ring.audit_key.kid == kids[-1]
    assert not set(kids) & set(ring.verification_keys), "no token is signed with one"


def _is_public_half(key: dict[str, str], private: Ed25519PrivateKey) -> None:
    assert {name: key[name] for name in ("kty", "crv", "use", "alg")} == {
        "kty": "OKP",
        "crv": "Ed25519",
        "use": "sig",
        "alg": "EdDSA",
    }
    assert set(key) == {"kty", "crv", "use", "alg", "kid", "x"}
    public = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(key["x"] + "="))
    public.verify(private.sign(b"message"), b"message")


async def test_the_service_role_alone_can_do_all_of_this(database: Database, ring: KeyRing) -> None:
    assert await database.fetchval("SELECT current_user") == "frontdesk_service"
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await database.fetchval("DROP TABLE sealed_key")
