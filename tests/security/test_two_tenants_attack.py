"""An attacker with a token of its own and everything it could ever have overheard, driven at random.

Both practices work on; whatever either of them was answered goes into one pool, and the attacker calls any operation
at any door with any of it. It never learns anything of the other practice and never changes a row of it.
"""

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.operations import OPERATIONS, Operation
from frontdesk.operations._schemas import plain_schema
from frontdesk.store.database import session_settings
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.security.two_practices import (
    BY_NAME,
    PERSON,
    WINDOW,
    Side,
    arguments,
    attacker,
    call,
    call_tool,
    victim,
)
from tests.support.shared_database import as_owner, patient_statements, shared_world
from tests.support.world import World

RECORD_ID = re.compile(r"(?:pat|apt)_[0-9A-Za-z]{22}")
OVERHEARD = {
    "slotId": re.compile(r"slt_[\w-]{40}"),
    "patientId": re.compile(r"pat_[0-9A-Za-z]{22}"),
    "appointmentId": re.compile(r"apt_[0-9A-Za-z]{22}"),
    "confirmationToken": re.compile(r'confirmationToken\\*":\\*"([0-9a-f]{32})'),
    "cursor": re.compile(r'nextCursor\\*":\\*"([\w-]+)'),
}
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=40), st.lists(st.integers(), max_size=3),
    st.sampled_from(["", "0", "-1", "%00", "' OR 1=1 --", "../../x", "pat_" + "0" * 22, "slt_" + "A" * 40]),
)  # fmt: skip


@dataclass
class Arena:
    mine: Side
    theirs: Side
    poor: httpx.AsyncClient
    owner: Any
    tables: list[str]
    their_practice: int
    pool: dict[str, list[Any]] = field(default_factory=dict)

    def overhear(self, answer: httpx.Response) -> None:
        for name, pattern in OVERHEARD.items():
            found = pattern.findall(answer.text)
            self.pool.setdefault(name, []).extend(found[:3])
            del self.pool[name][60:-20]

    async def their_rows(self) -> list[str]:
        """What the other practice has stored, as the owner sees it; one digest per table."""
        digest = "SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {} t WHERE practice_id = {}"
        sql = " UNION ALL ".join(
            f"SELECT '{table} ' || ({digest.format(table, self.their_practice)}) AS row" for table in self.tables
        )
        return [row["row"] for row in await self.owner.fetch(sql)]

    async def their_ids(self) -> set[str]:
        rows = await self.owner.fetch(
            """SELECT patient_id AS id FROM patient WHERE practice_id = $1
               UNION ALL SELECT appointment_id FROM appointment WHERE practice_id = $1""",
            self.their_practice,
        )
        return {row["id"] for row in rows}


@pytest.fixture(scope="module")
async def arena(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Arena]:
    with patient_statements():
        async with shared_world(cluster, template, tmp_path_factory.mktemp("world")) as world:
            owner = await asyncpg.connect(as_owner(world.database.dsn), server_settings=session_settings(None))
            yield await _arena(world, owner)
            await owner.close()


async def _arena(world: World, owner: Any) -> Arena:
    mine, theirs = await attacker(world), await victim(world)
    rows = await owner.fetch("SELECT tablename FROM pg_policies WHERE schemaname = 'frontdesk' ORDER BY tablename")
    tables = [row["tablename"] for row in rows if row["tablename"] != "client_usage"]  # the victim's own calls count on
    practice = await owner.fetchval("SELECT practice_id FROM practice WHERE slug = 'quixotic'")
    arena = Arena(mine, theirs, await world.client(scopes=["slots:read"]), owner, tables, practice)
    for side in (mine, theirs):
        for name, value in side.ids.items():
            arena.pool.setdefault(name, []).append(value)
        arena.pool.setdefault("cursor", []).extend(side.cursors.values())
        arena.pool.setdefault("confirmationToken", []).extend(side.tokens.values())
    return arena


def some_arguments(data: st.DataObject, arena: Arena, operation: Operation) -> dict[str, Any]:
    """A good request of one of the two, with any part replaced by anything overheard, or by junk."""
    side = data.draw(st.sampled_from([arena.mine, arena.theirs]), label="whose request")
    given = dict(arguments(operation.name, side.ids))
    for name in plain_schema(operation.input).get("properties", {}):
        choice = data.draw(st.integers(0, 9), label=name)
        if choice >= 7 and name in arena.pool:
            # A place in what was overheard so far: what hypothesis draws must not depend on the answers.
            given[name] = arena.pool[name][data.draw(st.integers(0, 10_000), label=name) % len(arena.pool[name])]
        elif choice == 6 and operation.kind == "read" and name in (*PERSON, *WINDOW):
            given[name] = {**PERSON, **WINDOW}[name]  # looked for, and never stored: it would be the attacker's own
        elif choice == 5:
            given[name] = data.draw(JUNK, label=f"junk {name}")
    return given


async def attack(data: st.DataObject, arena: Arena) -> None:
    operation = data.draw(st.sampled_from(OPERATIONS), label="operation")
    client = data.draw(st.sampled_from([arena.mine.agent, arena.mine.integration, arena.poor]), label="client")
    sent = some_arguments(data, arena, operation)
    before = await arena.their_rows()
    if data.draw(st.booleans(), label="over MCP"):
        answer = await call_tool(client, operation, sent)
    else:
        for name in sent:
            if f"{{{name}}}" in operation.path:
                sent[name] = re.sub(r"[^\w-]", "", str(sent[name])) or "x"
        query = operation.method == "GET"
        plain = {k: v for k, v in sent.items() if not query or isinstance(v, str | int)}
        headers = {}
        if data.draw(st.booleans(), label="with a key"):
            headers["Idempotency-Key"] = arena.theirs.keys["book_appointment"]
        answer = await call(client, operation, plain, **headers)
    assert answer.status_code < 500, answer.text
    assert '"code":"internal"' not in answer.text
    assert await arena.their_rows() == before
    text = answer.text + repr(sorted(answer.headers.multi_items()))
    leaked = [mark for mark in arena.theirs.marks if mark in text and mark not in repr(sent)]
    assert leaked == []
    disclosed = set(RECORD_ID.findall(answer.text)) - set(RECORD_ID.findall(repr(sent)))
    assert not disclosed & await arena.their_ids()
    arena.overhear(answer)


async def victim_works(data: st.DataObject, arena: Arena) -> None:
    name = data.draw(
        st.sampled_from(["search_slots", "book_appointment", "confirm_attendance", "list_appointments"]),
        label="they do",
    )
    given = arguments(name, arena.theirs.ids)
    arena.overhear(await call(arena.theirs.agent, BY_NAME[name], {**given, **({"limit": 1} if "list" in name else {})}))


async def run(data: st.DataObject, start: Arena, steps: int) -> None:
    arena = replace(start, pool={name: list(values) for name, values in start.pool.items()})
    for _ in range(steps):
        if data.draw(st.integers(0, 4), label="whose turn") == 0:
            await victim_works(data, arena)
        else:
            await attack(data, arena)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_an_attacker_of_another_practice_learns_and_changes_nothing(data: st.DataObject, arena: Arena) -> None:
    await run(data, arena, 12)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@settings(max_examples=int(os.environ.get("ATTACKERS", "200")), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_an_attacker_with_more_time_learns_and_changes_nothing_either(data: st.DataObject, arena: Arena) -> None:
    await run(data, arena, 40)
