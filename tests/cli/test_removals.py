"""`client remove`, `client set-scopes` and `practice remove`: asked first, recorded, and nothing of it is left."""

import asyncio
import io
import json
from pathlib import Path

import asyncpg
import pytest

from frontdesk.audit.trail import AuditContext
from frontdesk.cli import connection, practices
from frontdesk.store.practices import practice_ids
from tests.cli.in_process import Command, command
from tests.support.shared_database import as_owner
from tests.support.world import NOW, World, book

__all__ = ["command"]

KEPT = {
    "practice", "appointment_trail", "audit_record", "audit_unsealed", "audit_seal", "audit_head",
    "audit_signed_head", "audit_check",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _at_the_time_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_audit_context", lambda: AuditContext("command-line", NOW, "5" * 32))
    monkeypatch.setattr(practices, "_SUSPENDED_EVERYWHERE_SECONDS", 0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def rows_of(world: World, practice_id: int) -> dict[str, int]:
    """How many rows each table has of a practice, or of its clients and staff."""
    owner = await asyncpg.connect(as_owner(world.database.dsn))
    try:
        await owner.execute("SET search_path = frontdesk, public")
        await owner.execute("SELECT set_config('frontdesk.practice_id', $1, false)", str(practice_id))
        tables = await owner.fetch(
            """SELECT table_name AS name FROM information_schema.columns
               WHERE column_name = 'practice_id' AND table_schema = current_schema()"""
        )
        return {
            row["name"]: await owner.fetchval(f"SELECT count(*) FROM {row['name']} WHERE practice_id = $1", practice_id)
            for row in tables
        }
    finally:
        await owner.close()


async def test_a_client_is_removed_after_a_yes_and_its_tokens_end(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await world.client()
    client_id = agent.headers["X-Test-Client"]
    refused = await command("client", "remove", client_id)
    assert refused.status == 2
    assert refused.err.endswith("it cannot be brought back. Give --yes to confirm.\n")
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    declined = await command("client", "remove", client_id)
    assert (declined.status, declined.err.splitlines()[-1]) == (1, "Type yes to confirm: Nothing was removed.")
    assert (await agent.get("/api/practice")).status_code == 200

    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    done = await command("client", "remove", client_id)
    assert done.out == "Removed.\n", done
    world.service.authenticator.on_change("client", client_id)
    assert (await agent.get("/api/practice")).status_code == 401
    again = await command("client", "remove", client_id, "--yes")
    assert (again.status, again.err) == (2, f"There is no client {client_id!r}.\n")
    (record,) = (await command("audit", "list", "--subject", client_id, "--limit", "1", "--json")).document
    assert (record["operation"], record["actor"]) == ("command.remove_client", "command-line")


async def test_scopes_are_replaced_and_tokens_issued_before_end(world: World, command: Command) -> None:
    agent = await world.client()
    client_id = agent.headers["X-Test-Client"]
    changed = await command("client", "set-scopes", client_id, "slots:read", "practices:read", "--json")
    assert set(changed.document["scopes"]) == {"slots:read", "practices:read"}
    world.service.authenticator.on_change("client", client_id)
    assert (await agent.get("/api/practice")).status_code == 401
    wrong = await command("client", "set-scopes", client_id, "slots:raed")
    assert wrong.status == 2
    assert len((await command("client", "set-scopes", client_id, "all", "--json")).document["scopes"]) > 5


async def test_a_practice_with_future_appointments_is_removed_only_by_force(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await book(await world.client())
    await command("staff", "add", "--practice", "harbor", "--name", "Ana", "--role", "admin")
    await command("feed", "add", "--practice", "harbor", "--provider", "10")
    refused = await command("practice", "remove", "harbor", "--yes")
    assert (refused.status, refused.err) == (
        2,
        "harbor has 1 future appointment, the next one at 2026-11-16T14:00:00Z: "
        "cancel them first, or give --force to delete them.\n",
    )
    unasked = await command("practice", "remove", "harbor", "--force")
    assert unasked.err.endswith("The audit trail is kept. Give --yes to confirm.\n")
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert (await command("practice", "remove", "harbor", "--force")).status == 1, "the slug has to be typed"
    others, before = await rows_of(world, 2), await rows_of(world, 1)
    assert before["appointment"] == 1

    removed = await command("practice", "remove", "harbor", "--force", "--yes")
    assert removed.out == "Removed harbor. Its audit trail is kept: frontdesk audit export --practice harbor~1\n"
    left = {table for table, count in (await rows_of(world, 1)).items() if count}
    assert left <= KEPT, "patients and whatever names them are gone"
    assert await rows_of(world, 2) == others
    verify = ("audit", "verify", "--practice", "harbor~1")
    (trail,) = (await command(*verify, "--json")).document["practices"]
    heads = tmp_path / "heads.jsonl"
    for digest, status in ((trail["head"]["hash"], 0), ("0" * 64, 1)):
        heads.write_text(json.dumps({**trail["head"], "hash": digest, "practice": "harbor~1"}))
        assert (await command(*verify, "--heads", str(heads))).status == status
    records = (await command("audit", "list", "--practice", "harbor~1", "--limit", "2", "--json")).document
    assert {record["operation"] for record in records} == {"command.suspend_practice", "command.remove_practice"}

    (listed,) = [row for row in (await command("practice", "list")).out.splitlines() if row.startswith("harbor")]
    assert listed.split()[-1] == "removed"
    of_practice = ("--practice", "harbor~1")
    for words in (
        ("practice", "resume", "harbor~1"),
        ("practice", "remove", "harbor~1", "--yes"),
        ("practice", "check", "harbor~1"),
        ("practice", "export", "harbor~1"),
        ("client", "add", *of_practice, "--name", "Agent", "--grant", "agent", "--scope", "all"),
        ("staff", "add", *of_practice, "--name", "Ana", "--role", "admin"),
        ("webhook", "add", *of_practice, "--url", "https://203.0.113.1/events"),
        ("feed", "add", *of_practice, "--provider", "10"),
    ):
        again = await command(*words)
        assert (again.status, again.err) == (2, "harbor~1 was removed; only its audit trail is left.\n"), words
    assert (await command("practice", "show", "harbor~1", "--json")).document["slug"] == "harbor~1"
    assert "harbor~1" not in (await command("practice", "suspend", "harbor")).err
    assert "harbor" not in await practice_ids(world.database), "the slug is free"


async def test_a_removal_that_is_interrupted_says_that_the_practice_is_suspended_and_waits_again(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = []

    async def interrupted(seconds: float) -> None:
        waits.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr(practices, "_SUSPENDED_EVERYWHERE_SECONDS", 10)
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr("asyncio.sleep", interrupted)
            with pytest.raises(asyncio.CancelledError):
                await command("practice", "remove", "harbor", "--yes")
        assert capsys.readouterr().err == (
            "harbor is suspended, and its removal did not finish: run the command again, or "
            "frontdesk practice resume harbor.\n"
        )
    assert waits == [10, 10]
    assert (await command("practice", "show", "harbor", "--json")).document["suspended"] is True


async def test_the_row_of_a_practice_with_an_audit_trail_cannot_be_deleted(world: World, command: Command) -> None:
    await book(await world.client())
    await command("practice", "remove", "harbor", "--force", "--yes")
    owner = await asyncpg.connect(as_owner(world.database.dsn), server_settings={"search_path": "frontdesk, public"})
    try:
        await owner.execute("SELECT set_config('frontdesk.practice_id', '1', false), seal_audit(1, 100)")
        with pytest.raises(asyncpg.ForeignKeyViolationError, match="audit_head"):
            await owner.execute("DELETE FROM practice WHERE practice_id = 1")
    finally:
        await owner.close()
