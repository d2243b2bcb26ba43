"""A caller that acts under another's request id, which a caller may choose: the audit trail tells the two apart."""

import re

import httpx
import pytest

from frontdesk.audit import reading
from frontdesk.audit.reading import AuditFilter, actors_of_request, exported_lines, find_records
from tests.console.admin_pages import practice_id, text_of
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.doors.mcp_speech import headers, request
from tests.support.world import World

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BORROWED = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
WARNING = "Several have acted under this request id."


async def match_over_rest(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/patients/match", json=ADA, headers=BORROWED)
    assert (answer.status_code, answer.headers["x-svc-trace-id"]) == (200, TRACE)


async def match_over_mcp(client: httpx.AsyncClient) -> None:
    message = request("tools/call", {"name": "match_patient", "arguments": ADA})
    answer = await client.post("/mcp", json=message, headers={**headers(message, "2025-11-25"), **BORROWED})
    assert (answer.status_code, answer.headers["x-svc-trace-id"]) == (200, TRACE)


async def test_the_audit_page_tells_who_acted_under_a_request_id(world: World) -> None:
    admin, victim, thief = await signed_in(world, role="admin"), await world.client(), await world.client()
    address = f"/console/audit?request={TRACE}"
    await match_over_rest(victim)
    alone = await admin.get(address)
    assert WARNING not in alone.text

    await match_over_mcp(thief)
    for page in (await admin.get(address), await admin.get(f"{address}&actor={thief.headers['X-Test-Client']}")):
        warned = text_of(page).partition(WARNING)[2]
        for client in (victim, thief):
            assert client.headers["X-Test-Client"] in warned.partition("When")[0]
    by_record = dict(re.findall(rf"Record (\d+) by (fd_\w+) , request {TRACE}", text_of(await admin.get(address))))
    assert list(by_record.values()) == [thief.headers["X-Test-Client"], victim.headers["X-Test-Client"]]
    assert len(by_record) == 2
    # The page without a search shows the same of every record.
    shown = text_of(await admin.get("/console/audit"))
    for record, actor in by_record.items():
        assert f"Record {record} by {actor} , request {TRACE}" in shown


async def test_staff_who_borrow_a_request_id_are_shown_beside_it(world: World) -> None:
    admin, agent, clerk = await signed_in(world, role="admin"), await world.client(), await signed_in(world, name="Sam")
    await match_over_rest(agent)
    await clerk.get("/console/calendar", headers=BORROWED)
    warned = text_of(await admin.get(f"/console/audit?request={TRACE}")).partition(WARNING)[2]
    assert agent.headers["X-Test-Client"] in warned
    assert clerk.headers[TEST_STAFF] in warned


async def test_an_act_cannot_be_buried_under_many_of_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 4)
    practice = await practice_id(world)
    async with world.database.transaction(practice) as connection:
        for actor in ("fd_first", *["fd_loud"] * 120):
            await connection.execute(
                "SELECT append_audit($1, $2, $3, 'get_patient', 'executed', '{}', $4)",
                practice, world.clock.now, actor, TRACE,
            )  # fmt: skip
    found = await find_records(world.database, practice, AuditFilter(request=TRACE), limit=50)
    assert {row["actor"] for row in found.records} == {"fd_loud"}
    assert await actors_of_request(world.database, practice, TRACE) == {"fd_first", "fd_loud"}
    assert await actors_of_request(world.database, practice, "0" * 32) == set()
    other = await practice_id(world, "other")
    assert await actors_of_request(world.database, other, TRACE) == set()
    page = await (await signed_in(world, role="admin")).get(f"/console/audit?request={TRACE}")
    assert "fd_first" in text_of(page).partition(WARNING)[2].partition("When")[0]


async def test_an_export_has_record_actor_and_request_of_each_act(world: World) -> None:
    for client in (await world.client(), await world.client()):
        await match_over_rest(client)
    lines = [line async for line in exported_lines(world.database, "harbor", await practice_id(world))]
    assert (
        sum(f'"requestId": "{TRACE}"' in line and '"actor": "fd_' in line and '"recordId": ' in line for line in lines)
        == 2
    )
