"""The audit trail at the console: found by what it says, page by page, exported as the command does, and checked."""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from frontdesk.audit import reading
from frontdesk.audit.reading import AuditFilter, seal_pending
from frontdesk.console.audit_sentences import recorded
from frontdesk.desk import audit
from frontdesk.store.database import session_settings
from tests.cli.command_line import CommandLine
from tests.console.admin_pages import EVIL, check_harmless, practice_id, text_of
from tests.console.signing_in import TEST_STAFF, audited, signed_in
from tests.support.world import World, book, patient_id

ROW = re.compile(r'<th scope="row"><time datetime="([^"]+)">.*?</tr>', re.DOTALL)


def rows(page: httpx.Response) -> list[str]:
    assert page.status_code == 200, page.text
    return [text_of(httpx.Response(200, text=found.group(0))) for found in ROW.finditer(page.text)]


async def append(world: World, count: int, slug: str = "harbor", **fields: Any) -> None:
    """Records as the service writes them, a second apart."""
    given = {"actor": "fd_somebody", "operation": "get_patient", "outcome": "executed", "subjects": [], **fields}
    practice = await practice_id(world, slug)
    async with world.database.transaction(practice) as connection:
        for number in range(count):
            await connection.execute(
                "SELECT append_audit($1, $2, $3, $4, $5, $6, $7)",
                practice,
                world.clock.now + timedelta(seconds=number),
                given["actor"],
                given["operation"],
                given["outcome"],
                given["subjects"],
                f"request-{number}",
            )


async def test_records_are_found_by_who_what_how_and_whom(world: World, admin: httpx.AsyncClient) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    appointment = await book(agent)
    await patient_id(integration, "Grace")

    async def found(**query: str) -> list[str]:
        return rows(await admin.get("/console/audit", params=query))

    everything = await found()
    assert sum("agent of harbor" in row for row in everything) >= 3
    mine = await found(actor=agent.headers["X-Test-Client"])
    assert mine
    assert all("agent of harbor" in row for row in mine)
    (booked,) = await found(operation="book_appointment", outcome="executed")
    assert appointment in booked
    assert len(await found(subject=appointment)) == 1
    assert await found(subject=appointment, outcome="conflict") == []
    (signed,) = await found(actor=admin.headers[TEST_STAFF], operation="console.sign_in")
    assert "Ana" in signed
    today = await found(**{"from": "2026-11-15", "to": "2026-11-15"})
    assert [row for row in today if "looked at the audit trail" not in row] == everything
    assert await found(to="2026-11-14") == []
    assert await found(**{"from": "2026-11-16"}) == []


async def test_a_search_by_patient_finds_lists_of_many_patients(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client()
    for first in ("Ada", "Alan", "José"):
        await book(agent, first)
    alan = await patient_id(agent, "Alan")
    assert len((await agent.get("/api/appointments")).json()["items"]) == 3
    assert (await admin.get("/console/calendar?date=2026-11-16")).status_code == 200
    assert f"/console/audit?subject={alan}" in (await admin.get(f"/console/patients/{alan}")).text
    found = rows(await admin.get("/console/audit", params={"subject": alan}))
    for done in ("listed appointments", "looked at the calendar", "booked an appointment", "searched for a patient"):
        (row, *_) = [row for row in found if done in row]
        shown, _, _ = row.partition(" more ")
        assert alan in shown, "the patient who was searched for is among those that a row shows at once"
    grace = await patient_id(agent, "Grace")
    found = rows(await admin.get("/console/audit", params={"subject": grace}))
    assert len(found) == 1
    assert "searched for a patient" in found[0]


async def test_records_are_sentences_with_names_that_are_looked_up(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client()
    appointment = await book(agent)
    await agent.post(f"/api/appointments/{appointment}/cancel", json={"reason": "Ill"})
    ada = await patient_id(agent)
    for _ in range(3):
        await admin.get(f"/console/patients/{ada}")
    page = await admin.get("/console/audit")
    found = rows(page)
    booked = "agent of harbor booked an appointment for Ada Lovelace"
    assert any(booked in row for row in found)
    (asked,) = [row for row in found if "agent of harbor was asked to confirm: Cancel an appointment" in row]
    assert "Ada Lovelace" in asked
    (views,) = [row for row in found if "Ana looked at the record of Ada Lovelace" in row]
    assert "2 earlier page views" in views
    assert f'<option value="{ada}">Ada Lovelace</option>' in page.text
    assert '<option value="book_appointment">Book an appointment</option>' in page.text
    assert '<optgroup label="Agents">' in page.text
    timeline = await admin.get("/console/audit", params={"patient": ada, "outcome": "executed"})
    assert "The timeline of Ada Lovelace" in text_of(timeline)
    assert any(booked in row for row in rows(timeline))
    client = await admin.get("/console/audit", params={"actor": agent.headers["X-Test-Client"]})
    assert "The timeline of agent of harbor" in text_of(client)
    async with world.database.transaction(await practice_id(world)) as connection:
        await connection.execute("UPDATE patient SET last_name = 'King' WHERE patient_id = $1", ada)
        stored = await connection.fetch("SELECT * FROM audit_record")
    assert booked.replace("Lovelace", "King") in text_of(await admin.get("/console/audit"))
    assert not any("Lovelace" in str(dict(row)) for row in stored), "names are not stored"
    (seen, *_) = [row for row in stored if row["operation"] == "console.audit"]
    assert (seen["actor"], seen["subject_ids"]) == (admin.headers[TEST_STAFF], [ada]), "reading names is recorded"


async def test_german_sentences_have_german_word_order(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client()
    await agent.post(f"/api/appointments/{await book(agent)}/cancel", json={"reason": "Ill"})
    found = rows(await admin.get("/console/audit", headers={"Accept-Language": "de"}))
    assert any("agent of harbor hat einen Termin für Ada Lovelace gebucht" in row for row in found)
    assert any("agent of harbor wurde um Bestätigung gebeten: Termin absagen" in row for row in found)


async def test_records_of_every_operation_are_sentences_and_none_shows_its_raw_name(
    world: World, admin: httpx.AsyncClient
) -> None:
    for name in recorded():
        await append(world, 1, actor="fd_somebody", operation=name)
        await append(world, 1, actor="fd_somebody", operation=name, outcome="conflict")
    shown, address = [], "/console/audit?actor=fd_somebody"
    while address:
        page = await admin.get(address)
        shown += rows(page)
        older = re.search(r'rel="next" href="([^"]+)"', page.text)
        address = older[1].replace("&amp;", "&") if older else ""
    listed = "\n".join(shown)
    assert all(name not in listed for name in recorded())
    for each in recorded().values():
        assert each.audit is not None
        assert each.audit.done.replace("%(actor)s", "fd_somebody") in listed
        assert f"fd_somebody attempted: {each.title}" in listed


async def test_a_record_of_an_unknown_operation_is_shown_in_words(world: World, admin: httpx.AsyncClient) -> None:
    await append(world, 1, operation="console.undo_100%_of_moves")
    (row,) = rows(await admin.get("/console/audit?actor=fd_somebody"))
    assert "fd_somebody : Undo 100% of moves" in row


async def test_pages_name_operations_in_words(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client()
    appointment = await book(agent)
    await agent.post(f"/api/appointments/{appointment}/cancel", json={})
    await world.service.usage.flush()
    for path in ("/confirmations", "/usage", "/calendar?date=2026-11-16", f"/appointments/{appointment}"):
        page = text_of(await admin.get(f"/console{path}"))
        assert not re.search(r"\b(?:book|cancel)_appointment\b|\bmatch_patient\b", page), path
    assert "Cancel an appointment" in text_of(await admin.get("/console/confirmations"))


async def test_days_are_the_practices(world: World, admin: httpx.AsyncClient) -> None:
    """Eight in the morning in UTC is three at night in New York; four hours earlier it was the day before."""
    world.clock.advance(hours=-4)
    await append(world, 1, actor="fd_late")
    assert len(rows(await admin.get("/console/audit?actor=fd_late&from=2026-11-14&to=2026-11-14"))) == 1
    assert rows(await admin.get("/console/audit?actor=fd_late&from=2026-11-15")) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"),
        ("to=2026-13-01", "to"),
        ("from=1815-12-10", "from"),
        ("from=2026-11-15&to=2026-11-14", "to"),
    ],
)
async def test_a_day_that_is_none_is_told_beside_its_field(admin: httpx.AsyncClient, query: str, field: str) -> None:
    page = await admin.get(f"/console/audit?{query}")
    assert page.status_code == 422
    assert f'id="{field}-error"' in page.text
    assert f'<a href="#{field}">' in page.text


async def test_a_long_trail_is_walked_page_by_page_and_no_record_is_missed(
    world: World, admin: httpx.AsyncClient
) -> None:
    await append(world, 123)
    address, seen = "/console/audit?actor=fd_somebody", []
    for count in (50, 50, 23):
        page = await admin.get(address)
        assert len(rows(page)) == count
        seen += ROW.findall(page.text)
        older = re.search(r'rel="next" href="([^"]+)"', page.text)
        address = older.group(1).replace("&amp;", "&") if older else ""
    assert address == ""
    assert len(set(seen)) == 123
    assert seen == sorted(seen, reverse=True)


async def test_a_page_looks_through_a_bounded_part_of_the_trail(
    world: World, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(world, 1, actor="fd_rare")
    await append(world, 60)
    monkeypatch.setattr(reading, "BATCH", 5)
    monkeypatch.setattr(audit, "_BATCHES", 4)
    address, looked = "/console/audit?actor=fd_rare", 0
    while True:
        page = await admin.get(address)
        looked += 1
        if rows(page):
            break
        assert "Search further back" in page.text
        address = re.findall(r'rel="next" href="([^"]+)"', page.text)[0].replace("&amp;", "&")
    assert looked == 4


async def test_a_search_that_ends_in_the_past_does_not_read_what_is_older(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 5)
    await append(world, 100)
    world.clock.advance(days=2)
    await append(world, 10)
    before = world.database.statements
    wanted = AuditFilter(since=world.clock.now - timedelta(hours=12))
    found = await reading.find_records(world.database, await practice_id(world), wanted, limit=50)
    assert len(found.records) == 10
    assert found.before is None
    assert world.database.statements - before < 12


async def test_the_export_is_what_the_command_line_exports(
    world: World, admin: httpx.AsyncClient, tmp_path: Path, owner_dsn: str
) -> None:
    await book(await world.client())
    await append(world, 3, actor="Ünicode ✓")
    answer = await admin.get("/console/audit/export")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["content-disposition"] == 'attachment; filename="audit-harbor-2026-11-15.jsonl"'
    done = CommandLine(tmp_path).run(
        "audit", "export", "--practice", "harbor", FRONTDESK_DATABASE_URL=owner_dsn, FRONTDESK_SECRET_KEY="x" * 43
    )
    assert done.status == 0, done.err
    *exported, of_the_command = done.out.splitlines(keepends=True)
    assert answer.text == "".join(exported)
    assert "console.export_audit" in of_the_command
    last = json.loads(answer.text.splitlines()[-1])
    assert (last["operation"], last["actor"]) == ("console.export_audit", admin.headers[TEST_STAFF])


async def verified(browser: httpx.AsyncClient) -> httpx.Response:
    """Presses the button and waits for the result."""
    answer = await browser.post("/console/audit/verify")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/audit#check")
    async with asyncio.timeout(30):
        while True:
            shown = await browser.get("/console/audit/check")
            assert shown.status_code == 200
            if 'data-check="running"' not in shown.text:
                return shown
            await asyncio.sleep(0.05)


async def test_a_whole_trail_is_said_to_be_whole(world: World, admin: httpx.AsyncClient) -> None:
    await append(world, 7)
    assert 'data-check="none"' in (await admin.get("/console/audit")).text
    shown = await verified(admin)
    assert 'data-check="whole"' in shown.text
    assert "none of them changed, removed or reordered" in text_of(shown)
    assert "by Ana" in text_of(shown)
    assert ("console.verify_audit", "executed", admin.headers[TEST_STAFF]) in await audited(world)
    other = await signed_in(world, role="admin", practice="other")
    assert 'data-check="none"' in (await other.get("/console/audit")).text


async def test_a_record_that_context_changed_is_found_and_named(
    world: World, admin: httpx.AsyncClient, owner_dsn: str
) -> None:
    await append(world, 7)
    await seal_pending(world.database, await practice_id(world))
    owner = await asyncpg.connect(owner_dsn, server_settings=session_settings(None))
    try:
        changed = await owner.fetchval(
            "UPDATE audit_record SET outcome = 'conflict' WHERE request_id = 'request-4' RETURNING record_id"
        )
    finally:
        await owner.close()
    shown = await verified(admin)
    assert 'data-check="broken"' in shown.text
    assert f"Record {changed} " in text_of(shown)
    assert "does not match its seal" in text_of(shown)
    assert "Broken" in text_of(await admin.get("/console/practice/system"))


async def test_only_one_check_runs_and_its_progress_is_told_by_every_node(
    world: World, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(world, 500)
    monkeypatch.setattr(audit, "_PROGRESS_SECONDS", 0.0)
    reached, go = asyncio.Event(), asyncio.Event()
    verify = audit.verify_chain
    runs = []

    async def held(database: Any, practice: int, now: Any, progress: Any, **options: Any) -> Any:
        async def heard(checked: int, expected: int) -> None:
            await progress(checked, expected)
            if checked:
                reached.set()
                await go.wait()

        runs.append(practice)
        return await verify(database, practice, now, heard, **options)

    monkeypatch.setattr(audit, "verify_chain", held)
    await admin.post("/console/audit/verify")
    async with asyncio.timeout(30):
        await reached.wait()
    shown = text_of(await admin.get("/console/audit"))
    assert re.search(r"Checking since .*: 200 of 50\d records", shown), shown[:500]
    await admin.post("/console/audit/verify")
    assert len(runs) == 1
    go.set()
    async with asyncio.timeout(30):
        while 'data-check="whole"' not in (await admin.get("/console/audit/check")).text:
            await asyncio.sleep(0.05)


async def test_a_check_names_the_signed_heads(world: World, admin: httpx.AsyncClient) -> None:
    await append(world, 3)
    assert "no signed head to compare with" in text_of(await verified(admin))
    await world.service.audit_heads.sign_due()
    await append(world, 1)
    shown = text_of(await verified(admin))
    assert "covered by a signed head. Heads have been signed since 2026-11-15" in shown


async def test_a_check_whose_worker_died_can_be_begun_again(world: World, admin: httpx.AsyncClient) -> None:
    practice = await practice_id(world)
    async with world.database.transaction(practice) as connection:
        await connection.execute(
            """INSERT INTO audit_check (practice_id, check_id, started_by, started_at, heard_at, checked, expected)
               VALUES ($1, 'gone', 'op_x', $2, $2, 5, 10)""",
            practice,
            world.clock.now,
        )
    assert 'data-check="running"' in (await admin.get("/console/audit")).text
    world.clock.advance(minutes=1)
    assert 'data-check="interrupted"' in (await admin.get("/console/audit")).text
    assert 'data-check="whole"' in (await verified(admin)).text


async def test_another_practices_records_are_not_found(world: World, admin: httpx.AsyncClient) -> None:
    await append(world, 3, slug="other", actor="fd_theirs", subjects=["pat_theirs"])
    for query in ("actor=fd_theirs", "subject=pat_theirs"):
        assert rows(await admin.get(f"/console/audit?{query}")) == []
    assert "fd_theirs" not in (await admin.get("/console/audit/export")).text


async def test_staff_reach_nothing_of_it_whatever_a_page_forgets(world: World, staff: httpx.AsyncClient) -> None:
    for path in ("", "/check", "/export"):
        assert (await staff.get(f"/console/audit{path}")).status_code == 403
    assert (await staff.post("/console/audit/verify")).status_code == 403


async def test_what_was_asked_and_what_is_stored_is_text(world: World, admin: httpx.AsyncClient) -> None:
    await append(world, 1, actor=EVIL, operation=EVIL, outcome=EVIL, subjects=[EVIL])
    check_harmless(await admin.get("/console/audit"))
    for name in ("actor", "operation", "outcome", "subject", "from", "to"):
        check_harmless(await admin.get("/console/audit", params={name: EVIL}))
    evil = await signed_in(world, role="admin", name=EVIL)
    check_harmless(await verified(evil))
    assert (await admin.get("/console/audit", params={"before": "9" * 30})).status_code == 200
