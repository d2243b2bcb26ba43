"""Clients and their secrets: what is accepted, what is stored, and what a guesser learns."""

import hmac
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.access.clients.records import (
    ClientRecord,
    add_client,
    change_client,
    disable_client,
    enable_client,
    list_clients,
    rotate_secret,
    show_client,
)
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.clients.validation import ClientError
from frontdesk.access.keys.ring import CLIENT_SECRETS, SETTLING, KeyRing
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database
from tests.access.stopped_clock import StoppedClock

DAY = 24 * 3600


@pytest.fixture
async def client(database: Database, ring: KeyRing, practice: str, clock: StoppedClock) -> tuple[ClientRecord, str]:
    return await add_client(
        database, ring, practice=practice, name="Phone agent", grant="agent", scopes=SCOPES, clock=clock
    )


async def refusal(database: Database, ring: KeyRing, client_id: str, secret: str, clock: StoppedClock) -> str:
    with pytest.raises(Problem) as raised:
        await authenticate(database, ring, client_id, secret, clock=clock)
    return raised.value.code


async def test_a_new_client_has_the_documented_form_and_defaults(
    client: tuple[ClientRecord, str], practice: str, clock: StoppedClock
) -> None:
    record, secret = client
    assert re.fullmatch(r"fd_[0-9A-Za-z]{20}", record.client_id)
    assert re.fullmatch(r"fds_[0-9A-Za-z_-]{43}", secret)
    assert (record.practice_slug, record.name, record.grant) == (practice, "Phone agent", "agent")
    assert record.scopes == SCOPES
    assert (record.per_minute, record.quota, record.disabled) == (600, 1_000_000, False)
    assert [(s.created_at, s.retires_at) for s in record.secrets] == [(clock.now, None)]


async def test_the_right_secret_authenticates_in_one_query(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, secret = client
    before = database.statements
    found = await authenticate(database, ring, record.client_id, secret, clock=clock)
    assert database.statements == before + 1
    assert (found.client_id, found.practice_slug, found.grant) == (record.client_id, "riverside", "agent")
    assert found.scopes == SCOPES


async def test_the_secret_itself_is_nowhere_in_the_database(
    database: Database, client: tuple[ClientRecord, str]
) -> None:
    rows = await database.fetch("SELECT * FROM client NATURAL JOIN client_secret")
    text = repr([list(row.values()) for row in rows])
    assert client[0].client_id in text
    assert client[1] not in text
    assert client[1].removeprefix("fds_") not in text


async def test_a_wrong_secret_is_unauthorized(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    for wrong in (
        "",
        "fds_",
        "x",
        "fds_" + "A" * 43,
        "fds_\x00",
        "fds_\ud800",
        "🙂" * 50,
        "A" * 60_000,
        client[1][:-1],
    ):
        assert await refusal(database, ring, client[0].client_id, wrong, clock) == "unauthorized"


async def test_an_unknown_client_is_unauthorized(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    for unknown in ("", "fd_" + "0" * 20, "fd_\x00", "' OR 1=1 --", "fd_" + "é" * 20, "\ud800", "x" * 9000):
        assert await refusal(database, ring, unknown, client[1], clock) == "unauthorized"


async def test_another_clients_secret_does_not_fit(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], practice: str, clock: StoppedClock
) -> None:
    other, _ = await add_client(
        database, ring, practice=practice, name="Other", grant="agent", scopes=SCOPES, clock=clock
    )
    assert await refusal(database, ring, other.client_id, client[1], clock) == "unauthorized"
    await database.write(
        """UPDATE client_secret SET digest = (SELECT digest FROM client_secret WHERE client_id = $1)
           WHERE client_id = $2""",
        client[0].client_id,
        other.client_id,
    )
    assert await refusal(database, ring, other.client_id, client[1], clock) == "unauthorized"


async def test_every_refusal_takes_the_same_queries_hashes_and_comparisons(
    database: Database,
    ring: KeyRing,
    client: tuple[ClientRecord, str],
    clock: StoppedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record, _ = client
    done: list[str] = []
    digest, compare = hmac.digest, hmac.compare_digest

    def counted_digest(*arguments: Any) -> bytes:
        done.append("digest")
        return digest(*arguments)

    def counted_compare(*arguments: Any) -> bool:
        done.append("compare")
        return compare(*arguments)

    monkeypatch.setattr(hmac, "digest", counted_digest)
    monkeypatch.setattr(hmac, "compare_digest", counted_compare)

    async def cost(client_id: str, secret: str) -> tuple[int, list[str]]:
        done.clear()
        before = database.statements
        assert await refusal(database, ring, client_id, secret, clock) == "unauthorized"
        return database.statements - before, list(done)

    wrong_secret = await cost(record.client_id, "fds_" + "A" * 43)
    assert wrong_secret[0] == 1
    assert "compare" in wrong_secret[1]
    assert await cost("fd_" + "0" * 20, "fds_" + "A" * 43) == wrong_secret
    assert await cost("not a client id", "fds_" + "A" * 43) == wrong_secret
    await rotate_secret(database, ring, record.client_id, clock=clock)
    assert await cost(record.client_id, "fds_" + "A" * 43) == wrong_secret
    await ring.rotate(CLIENT_SECRETS)
    assert await cost(record.client_id, "x") == await cost("fd_" + "0" * 20, "x")


async def test_a_disabled_client_is_refused_until_it_is_enabled_again(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, secret = client
    assert (await disable_client(database, record.client_id)).disabled
    assert await refusal(database, ring, record.client_id, secret, clock) == "unauthorized"
    assert not (await enable_client(database, record.client_id)).disabled
    await authenticate(database, ring, record.client_id, secret, clock=clock)


async def test_a_suspended_practice_is_told_only_to_who_knows_the_secret(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, secret = client
    await database.write("UPDATE practice SET suspended = true")
    assert await refusal(database, ring, record.client_id, secret, clock) == "forbidden_tenant"
    assert await refusal(database, ring, record.client_id, "wrong", clock) == "unauthorized"


async def test_both_secrets_work_until_the_old_one_retires(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, old = client
    rotated, new = await rotate_secret(database, ring, record.client_id, clock=clock)
    assert [s.retires_at for s in rotated.secrets] == [None, clock.now + timedelta(hours=24)]
    for secret in (old, new):
        await authenticate(database, ring, record.client_id, secret, clock=clock)
    clock.advance(DAY)
    assert await refusal(database, ring, record.client_id, old, clock) == "unauthorized"
    await authenticate(database, ring, record.client_id, new, clock=clock)


async def test_a_further_rotation_drops_the_oldest_secret_at_once(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, first = client
    _, second = await rotate_secret(database, ring, record.client_id, clock=clock)
    rotated, third = await rotate_secret(database, ring, record.client_id, clock=clock)
    assert len(rotated.secrets) == 2
    assert await refusal(database, ring, record.client_id, first, clock) == "unauthorized"
    for secret in (second, third):
        await authenticate(database, ring, record.client_id, secret, clock=clock)


async def test_an_old_secret_can_be_retired_at_once(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, old = client
    _, new = await rotate_secret(database, ring, record.client_id, retire_old_after=timedelta(0), clock=clock)
    assert await refusal(database, ring, record.client_id, old, clock) == "unauthorized"
    await authenticate(database, ring, record.client_id, new, clock=clock)
    clock.advance(-3600)
    assert await refusal(database, ring, record.client_id, old, clock) == "unauthorized", "on a node that is behind"
    with pytest.raises(ClientError, match="past"):
        await rotate_secret(database, ring, record.client_id, retire_old_after=timedelta(seconds=-1), clock=clock)


async def test_secrets_survive_the_rotation_of_the_key_they_are_hashed_with(
    database: Database, ring: KeyRing, client: tuple[ClientRecord, str], clock: StoppedClock
) -> None:
    record, old = client
    await ring.rotate(CLIENT_SECRETS)
    clock.advance(SETTLING.total_seconds())
    _, new = await rotate_secret(database, ring, record.client_id, clock=clock)
    for secret in (old, new):
        await authenticate(database, ring, record.client_id, secret, clock=clock)


async def test_limits_change_one_by_one(database: Database, client: tuple[ClientRecord, str]) -> None:
    client_id = client[0].client_id
    changed = await change_client(database, client_id, per_minute=10)
    assert (changed.per_minute, changed.quota) == (10, 1_000_000)
    changed = await change_client(database, client_id, quota=20)
    assert (changed.per_minute, changed.quota) == (10, 20)
    for limits in ({"per_minute": 0}, {"per_minute": 2**31}, {"quota": 0}, {"quota": 2**63}):
        with pytest.raises(ClientError, match="between 1 and"):
            await change_client(database, client_id, **limits)


async def test_clients_are_listed_by_practice(
    database: Database, ring: KeyRing, make_practice: Callable[[str], Awaitable[int]]
) -> None:
    for slug in ("lakeside", "riverside"):
        await make_practice(slug)
        await add_client(database, ring, practice=slug, name=slug, grant="integration", scopes=["slots:read"])
    assert [client.name for client in await list_clients(database)] == ["lakeside", "riverside"]
    [only] = await list_clients(database, practice="riverside")
    assert (only.name, only.grant, only.scopes) == ("riverside", "integration", ("slots:read",))
    assert await list_clients(database, practice="nowhere") == []


async def test_bad_input_is_one_sentence_and_adds_nothing(database: Database, ring: KeyRing, practice: str) -> None:
    errors: list[tuple[dict[str, Any], str]] = [
        ({"practice": "riversid"}, "no practice 'riversid'; the closest is 'riverside'"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"grant": "admin"}, "agent or integration"),
        ({"scopes": ["slot:read"]}, "no scope 'slot:read'; the closest is 'slots:read'"),
        ({"scopes": []}, "at least one scope"),
        ({"per_minute": 0}, r"rate limit \(calls a minute\) must be between"),
        ({"quota": -1}, "quota must be between"),
    ]
    good = {"practice": practice, "name": "Agent", "grant": "agent", "scopes": ["slots:read"]}
    for change, sentence in errors:
        with pytest.raises(ClientError, match=sentence):
            await add_client(database, ring, **{**good, **change})
    assert await list_clients(database) == []


async def test_an_unknown_client_cannot_be_changed(database: Database, ring: KeyRing) -> None:
    for change in (show_client, disable_client, enable_client, change_client):
        with pytest.raises(ClientError, match="There is no client 'fd_nobody'"):
            await change(database, "fd_nobody")
    with pytest.raises(ClientError, match="There is no client 'fd_nobody'"):
        await rotate_secret(database, ring, "fd_nobody")
