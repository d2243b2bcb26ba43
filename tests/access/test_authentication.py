"""From token to caller: disabling and suspending take hold in time, and a warm check asks the database nothing."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.records import add_client, disable_client, enable_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.ring import KeyRing
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem
from frontdesk.store.database import Database, DatabaseUnavailable
from frontdesk.store.hosts import Hosts
from frontdesk.store.notifications import NotificationListener, notify
from tests.access.stopped_clock import StoppedClock
from tests.access.timing import seconds
from tests.support.running import running


@pytest.fixture
def authenticator(database: Database, tokens: Tokens, clock: StoppedClock) -> Authenticator:
    return Authenticator(database, tokens, monotonic=clock.monotonic)


@pytest.fixture
async def token(database: Database, ring: KeyRing, practice: str, tokens: Tokens, clock: StoppedClock) -> str:
    return await token_for(database, ring, practice, tokens, clock)


async def token_for(database: Database, ring: KeyRing, practice: str, tokens: Tokens, clock: StoppedClock) -> str:
    record, secret = await add_client(
        database, ring, practice=practice, name="Agent", grant="agent", scopes=SCOPES, clock=clock
    )
    client = await authenticate(database, ring, record.client_id, secret, clock=clock)
    return tokens.issue(client, ["slots:read"]).text


async def client_of(authenticator: Authenticator, token: str) -> str:
    return (await authenticator.identify(token)).client_id


async def refusal(authenticator: Authenticator, token: str | None) -> str:
    with pytest.raises(Problem) as raised:
        await authenticator.identify(token)
    return raised.value.code


async def settle(authenticator: Authenticator) -> None:
    """Lets what is read in the background arrive."""
    while authenticator._tasks:
        await asyncio.sleep(0.001)


async def test_a_caller_is_what_token_client_and_practice_say(
    authenticator: Authenticator, token: str, database: Database, practice: str
) -> None:
    caller = await authenticator.identify(token)
    row = await database.fetchrow("SELECT practice_id, version FROM practice WHERE slug = $1", practice)
    assert row is not None
    assert (caller.practice_id, caller.directory_version) == (row["practice_id"], row["version"])
    assert (caller.practice_slug, caller.grant, caller.scopes) == (practice, "agent", frozenset({"slots:read"}))


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "Bearer x"])
async def test_without_a_good_token_the_answer_is_unauthorized(authenticator: Authenticator, token: str | None) -> None:
    assert await refusal(authenticator, token) == "unauthorized"


async def test_an_expired_token_is_unauthorized(authenticator: Authenticator, token: str, clock: StoppedClock) -> None:
    await authenticator.identify(token)
    clock.advance(3600)
    assert await refusal(authenticator, token) == "unauthorized"


async def test_a_warm_check_costs_no_query_and_little_time(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    await authenticator.identify(token)
    before = database.statements
    warm = [await seconds(authenticator.identify(token)) for _ in range(2000)]
    assert database.statements == before
    queries = [await seconds(database.fetchval("SELECT 1")) for _ in range(100)]
    assert min(warm) < min(queries) / 2  # on this machine, whatever else it does


async def test_a_cold_check_costs_one_query_however_many_ask(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    before = database.statements
    await asyncio.gather(*(authenticator.identify(token) for _ in range(50)))
    assert database.statements == before + 1


async def test_a_disabled_client_is_refused_after_five_seconds_at_most(
    authenticator: Authenticator, token: str, database: Database, clock: StoppedClock
) -> None:
    client_id = await client_of(authenticator, token)
    await disable_client(database, client_id)
    clock.advance(4.9)
    await authenticator.identify(token)  # known from before, and now being read again
    await settle(authenticator)
    assert await refusal(authenticator, token) == "unauthorized"


async def test_a_status_older_than_five_seconds_is_never_used(
    authenticator: Authenticator, token: str, database: Database, clock: StoppedClock
) -> None:
    client_id = await client_of(authenticator, token)
    await disable_client(database, client_id)
    clock.advance(5)
    assert await refusal(authenticator, token) == "unauthorized"
    await enable_client(database, client_id)
    clock.advance(5)
    with pytest.raises(Problem) as raised:
        await authenticator.identify(token)
    assert raised.value.detail == "The access token has been revoked."


async def test_between_two_and_five_seconds_the_answer_does_not_wait_for_the_query(
    authenticator: Authenticator, token: str, database: Database, clock: StoppedClock
) -> None:
    await authenticator.identify(token)
    before = database.statements
    clock.advance(1.9)
    await authenticator.identify(token)
    await settle(authenticator)
    assert database.statements == before
    clock.advance(0.1)
    for _ in range(10):
        await authenticator.identify(token)
    assert database.statements == before  # nothing has run yet beside us
    await settle(authenticator)
    assert database.statements == before + 1
    await authenticator.identify(token)
    assert database.statements == before + 1


async def test_a_suspended_practice_is_forbidden_and_comes_back(
    authenticator: Authenticator, token: str, database: Database, clock: StoppedClock
) -> None:
    await authenticator.identify(token)
    await database.write("UPDATE practice SET suspended = true")
    clock.advance(5)
    assert await refusal(authenticator, token) == "forbidden_tenant"
    await database.write("UPDATE practice SET suspended = false")
    clock.advance(5)
    await authenticator.identify(token)


async def test_a_revoked_token_is_unauthorized_also_at_a_suspended_practice(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    await database.write("UPDATE practice SET suspended = true")
    await database.write("UPDATE client SET tokens_not_before = now() + interval '1 minute'")
    assert await refusal(authenticator, token) == "unauthorized"


async def test_a_token_for_a_practice_that_its_client_does_not_belong_to_is_forbidden(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    await database.write("UPDATE practice SET slug = 'renamed'")
    assert await refusal(authenticator, token) == "forbidden_tenant"


async def test_a_client_that_is_gone_is_unauthorized(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    await database.write("DELETE FROM client_secret")
    await database.write("UPDATE client SET client_id = 'fd_someone_else'")
    assert await refusal(authenticator, token) == "unauthorized"


async def test_word_of_a_change_of_the_client_is_heeded_at_once(
    authenticator: Authenticator, token: str, database: Database
) -> None:
    client_id = await client_of(authenticator, token)
    await disable_client(database, client_id)
    await authenticator.identify(token)
    authenticator.on_change("client", client_id)
    assert await refusal(authenticator, token) == "unauthorized"


async def test_word_of_a_change_of_the_practice_is_heeded_at_once_and_by_that_practice_alone(
    authenticator: Authenticator,
    token: str,
    database: Database,
    ring: KeyRing,
    tokens: Tokens,
    clock: StoppedClock,
    make_practice: Callable[[str], Awaitable[int]],
) -> None:
    await make_practice("lakeside")
    other = await token_for(database, ring, "lakeside", tokens, clock)
    await authenticator.identify(token)
    await authenticator.identify(other)
    await database.write("UPDATE practice SET suspended = true")
    authenticator.on_change("practice", "riverside")
    before = database.statements
    assert await refusal(authenticator, token) == "forbidden_tenant"
    assert database.statements == before + 1
    await authenticator.identify(other)
    assert database.statements == before + 1
    authenticator.on_change("something else", "lakeside")
    await authenticator.identify(other)


async def test_a_reading_that_began_before_a_change_is_not_kept(
    token: str, database: Database, tokens: Tokens, clock: StoppedClock
) -> None:
    slow = SlowDatabase(database)
    authenticator = Authenticator(slow, tokens, monotonic=clock.monotonic)  # type: ignore[arg-type]
    waiting = asyncio.create_task(authenticator.identify(token))
    await slow.answered.wait()
    await database.write("UPDATE client SET disabled = true")
    authenticator.on_change("client", (await tokens.verify(token)).client_id)
    slow.deliver.set()
    await waiting  # asked before the change, and answered as of then
    assert await refusal(authenticator, token) == "unauthorized"


async def test_one_that_gives_up_does_not_take_the_answer_from_the_others(
    token: str, database: Database, tokens: Tokens, clock: StoppedClock
) -> None:
    slow = SlowDatabase(database)
    authenticator = Authenticator(slow, tokens, monotonic=clock.monotonic)  # type: ignore[arg-type]
    cancelled, waiting = (asyncio.create_task(authenticator.identify(token)) for _ in range(2))
    await slow.answered.wait()
    cancelled.cancel()
    await asyncio.sleep(0)
    slow.deliver.set()
    assert (await waiting).practice_slug == "riverside"
    assert cancelled.cancelled()


async def test_without_a_database_a_known_caller_passes_for_five_seconds_and_then_not(
    authenticator: Authenticator, token: str, database: Database, clock: StoppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    await authenticator.identify(token)
    gc.collect()
    caplog.clear()  # of what others left behind
    await database.close()
    clock.advance(4.9)
    for _ in range(2):
        await authenticator.identify(token)
        await settle(authenticator)
    gc.collect()
    assert caplog.text == ""  # the event loop complains about failures that nobody took
    clock.advance(0.1)
    with pytest.raises(DatabaseUnavailable):
        await authenticator.identify(token)
    await database.open()
    await authenticator.identify(token)


async def test_only_a_bounded_number_of_clients_is_kept(
    authenticator: Authenticator,
    database: Database,
    ring: KeyRing,
    practice: str,
    tokens: Tokens,
    clock: StoppedClock,
) -> None:
    authenticator._statuses = BoundedCache(2)
    issued = [await token_for(database, ring, practice, tokens, clock) for _ in range(3)]
    clients = [await client_of(authenticator, text) for text in issued]
    assert [client_id for client_id, _ in authenticator._statuses.items()] == clients[1:]
    assert authenticator._reading == {}
    assert authenticator._tasks == set()


async def test_a_disabled_client_is_refused_as_soon_as_the_notification_arrives(
    authenticator: Authenticator, token: str, database: Database, database_dsn: str
) -> None:
    heard = asyncio.Event()

    def on_change(kind: str, id_: str) -> None:
        authenticator.on_change(kind, id_)
        heard.set()

    listener = NotificationListener(Hosts(database_dsn), on_change)
    async with running(listener.step):
        await asyncio.wait_for(listener.listening.wait(), 30)
        client_id = await client_of(authenticator, token)
        await disable_client(database, client_id)
        await asyncio.wait_for(heard.wait(), 30)
        assert await refusal(authenticator, token) == "unauthorized"
        heard.clear()
        await database.write("UPDATE client SET disabled = false, tokens_not_before = NULL")
        await database.write("UPDATE practice SET suspended = true")
        await notify(database, "practice", "riverside")
        await asyncio.wait_for(heard.wait(), 30)
        assert await refusal(authenticator, token) == "forbidden_tenant"


class SlowDatabase:
    """Reads at once and delivers when told to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.answered = asyncio.Event()
        self.deliver = asyncio.Event()

    async def fetchrow(self, sql: str, *arguments: Any) -> Any:
        row = await self._database.fetchrow(sql, *arguments)
        self.answered.set()
        await self.deliver.wait()
        return row
