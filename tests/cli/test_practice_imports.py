"""`frontdesk practice import`: a dry run tells what would change, and nobody who is booked is stranded unasked."""

import asyncio
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.audit.trail import AuditContext
from frontdesk.cli import connection
from frontdesk.practice_file import parse
from frontdesk.store.practices import import_practice
from tests.cli.in_process import Command, command
from tests.support.world import NOW, PRACTICE, World, book, slots, stored_directory

__all__ = ["command"]

HARBOR = PRACTICE.replace("SLUG", "harbor")
WITHOUT_PATIENTS = HARBOR.partition("patients:")[0]
WITHOUT_OKAFOR = re.sub(r"  - id: 12\n.*?(?=visitTypes:)", "", WITHOUT_PATIENTS, flags=re.DOTALL)
AFTERNOONS = WITHOUT_PATIENTS.replace(
    '      - {location: 1, days: [mon, tue, wed, thu, fri], from: "09:00", to: "12:00"}\n', ""
)


@pytest.fixture(autouse=True)
def _at_the_time_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_audit_context", lambda: AuditContext("command-line", NOW, "5" * 32))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "harbor.yaml"


async def appointment(world: World, appointment_id: str) -> Any:
    async with world.database.transaction(1) as opened:
        return await opened.fetchrow("SELECT * FROM appointment WHERE appointment_id = $1", appointment_id)


async def operations(world: World) -> list[str]:
    async with world.database.transaction(1) as opened:
        rows = await opened.fetch(
            "SELECT operation FROM audit_record WHERE practice_id = 1 AND actor = 'command-line' ORDER BY record_id"
        )
    return [row["operation"] for row in rows]


async def test_a_dry_run_tells_what_would_change_and_changes_nothing(
    world: World, command: Command, file: Path
) -> None:
    booked = await book(await world.client(), providerId=12)
    before = await stored_directory(world.database, "harbor")
    file.write_text(
        WITHOUT_OKAFOR.replace("name: Westside", "name: West Side").replace("to: 2026-12-25", "to: 2026-12-26")
        + HARBOR[HARBOR.index("patients:") :].replace("+1 555 010 0199", "+1 555 010 9999")
    )
    shown = (await command("practice", "import", str(file), "--dry-run", "--prune")).out
    assert "locations" in shown
    assert "Dr. Amara Okafor" in shown
    assert "-  name: Westside\n" in shown
    assert "+  name: West Side\n" in shown
    assert "1 future appointment would lose what it was booked for:\nAPPOINTMENT" in shown
    assert re.search(rf"^{booked} +2026-11-16 09:00  America/New_York  provider$", shown, re.MULTILINE)
    assert "The import would be refused." in shown
    assert shown.endswith("This was a dry run: nothing was changed.\n")
    assert "Lovelace" not in shown

    document = (await command("practice", "import", str(file), "--dry-run", "--prune", "--json")).document
    by_kind = {each.pop("kind"): each for each in document["differences"]}
    assert by_kind["locations"] == {"added": [], "changed": ["Downtown", "West Side"], "removed": []}
    assert by_kind["providers"] == {"added": [], "changed": [], "removed": ["Dr. Amara Okafor"]}
    assert by_kind["patients"] == {"added": 0, "changed": 1}
    assert document["stranded"] == [
        {
            "appointmentId": booked,
            "startsAt": "2026-11-16T14:00:00Z",
            "timeZone": "America/New_York",
            "loses": ["provider"],
        }
    ]
    assert document["refused"]
    without_prune = (await command("practice", "import", str(file), "--dry-run", "--json")).document
    assert (without_prune["stranded"], without_prune["refused"]) == ([], False)
    assert await stored_directory(world.database, "harbor") == before
    assert set(await operations(world)) == {"console.compare_patients"}

    file.write_text(WITHOUT_PATIENTS)
    assert (await command("practice", "import", str(file), "--dry-run")).out == (
        "The file changes nothing about harbor.\n\nThis was a dry run: nothing was changed.\n"
    )
    file.write_text(HARBOR.replace("slug: harbor", "slug: annex"))
    new = (await command("practice", "import", str(file), "--dry-run")).out
    assert new.startswith("The file creates annex:\nKIND")
    assert await stored_directory(world.database, "annex") is None


async def test_pruning_strands_booked_patients_only_if_told_so(world: World, command: Command, file: Path) -> None:
    agent = await world.client()
    okafor, chen = await book(agent, providerId=12), await book(agent, "Alan")
    file.write_text(WITHOUT_OKAFOR)
    refused = await command("practice", "import", str(file), "--prune")
    assert refused.status == 2
    assert refused.err.startswith("Nothing was imported: 1 future appointment would lose what it was booked for. Give")
    assert okafor in refused.err
    assert chen not in refused.err
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert directory.providers[12].active
    assert await operations(world) == []

    documented = await command("practice", "import", str(file), "--prune", "--json")
    assert [each["appointmentId"] for each in documented.document["stranded"]] == [okafor]

    kept = await command("practice", "import", str(file), "--prune", "--stranded", "keep")
    assert (kept.status, (await appointment(world, okafor))["status"]) == (0, "booked")
    assert "1 future appointment lost what it was booked for, still booked:" in kept.out
    assert await operations(world) == ["console.import_practice_file"]

    file.write_text(WITHOUT_PATIENTS)
    assert (await command("practice", "import", str(file))).status == 0
    file.write_text(WITHOUT_OKAFOR)
    cancelled = await command("practice", "import", str(file), "--prune", "--stranded", "cancel", "--json")
    assert [each["appointmentId"] for each in cancelled.document["cancelled"]] == [okafor]
    row = await appointment(world, okafor)
    assert (row["status"], row["cancellation_reason"]) == ("cancelled", "The practice has changed its schedule.")
    assert (await appointment(world, chen))["status"] == "booked"
    assert await operations(world) == ["console.import_practice_file"] * 3 + ["cancel_appointment"]
    async with world.database.transaction(1) as opened:
        event = await opened.fetchrow("SELECT * FROM outbox WHERE practice_id = 1 ORDER BY event_id DESC LIMIT 1")
    assert event["type"] == "appointment.cancelled"
    assert okafor in event["subject"]


async def test_changed_hours_are_imported_and_told_and_refused_on_demand(
    world: World, command: Command, file: Path
) -> None:
    morning = await book(await world.client())
    file.write_text(AFTERNOONS)
    assert (await command("practice", "import", str(file), "--stranded", "refuse")).status == 2
    document = (await command("practice", "import", str(file), "--json")).document
    assert [(each["appointmentId"], each["loses"]) for each in document["kept"]] == [(morning, ["hours"])]
    again = (await command("practice", "import", str(file), "--json")).document
    assert "kept" not in again, "it lost its hours before"


async def test_a_booking_that_waited_for_an_import_is_judged_by_what_was_imported(world: World) -> None:
    """Without the second look the booking would commit behind the import that found nobody to strand."""
    agent = await world.client(grant="integration")
    (slot, *_) = await slots(agent, providerId=12)
    patient = (
        await agent.post(
            "/api/patients/match",
            json={"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"},
        )
    ).json()["items"][0]["id"]
    waiting: asyncio.Task[Any] | None = None

    async def wait(opened: Any, _: int) -> None:
        nonlocal waiting
        body = {"patientId": patient, "slotId": slot["id"]}
        waiting = asyncio.create_task(agent.post("/api/appointments", json=body))
        while not await opened.fetchval(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
        ):
            await asyncio.sleep(0.01)

    async with asyncio.timeout(30):
        await import_practice(world.database, parse(WITHOUT_OKAFOR), NOW, prune=True, in_transaction=wait)
    assert waiting is not None
    answer = await waiting
    assert answer.status_code in (404, 409), answer.text
    async with world.database.transaction(1) as opened:
        assert await opened.fetchval("SELECT count(*) FROM appointment WHERE practice_id = 1") == 0


async def test_a_practice_that_changed_meanwhile_is_not_overwritten(
    world: World, command: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frontdesk.store import practice_import

    checked = practice_import.checked_file

    async def slowly(database: Any, text: str, now: datetime, *, prune: bool) -> Any:
        read = await checked(database, text, now, prune=prune)
        await import_practice(database, parse(AFTERNOONS), NOW)
        return read

    monkeypatch.setattr(practice_import, "checked_file", slowly)
    file.write_text(WITHOUT_OKAFOR)
    ended = await command("practice", "import", str(file), "--prune")
    assert (ended.status, ended.err) == (
        1,
        "The practice was changed meanwhile, and nothing was imported: try again.\n",
    )
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert directory.providers[12].active


async def test_a_dry_run_needs_no_database_and_creates_none(
    command: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRONTDESK_DATABASE_URL")
    for text, says in (
        (HARBOR, "The file creates harbor:\n"),
        ("practice: {slug: bare, name: Bare, timeZone: UTC}\n", "The file creates bare.\n"),
    ):
        file.write_text(text)
        ended = await command("practice", "import", str(file), "--dry-run", "--data-dir", str(tmp_path / "none"))
        assert ended.status == 0, ended
        assert ended.out.startswith(says)
    assert not (tmp_path / "none").exists()
