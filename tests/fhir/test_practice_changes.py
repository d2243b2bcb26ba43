"""Changes of a practice whose appointments are in a FHIR server: nobody who is booked there is stranded unasked."""

import re
from pathlib import Path

import pytest

from frontdesk.audit.trail import AuditContext
from frontdesk.cli import connection
from tests.cli.in_process import Command, command
from tests.console.filled_forms import send
from tests.console.signing_in import signed_in
from tests.fhir.practice import VISITS, Upstream, file_text, forgive
from tests.support.world import NOW, World, book, stored_directory

__all__ = ["command"]

EDIT = "/console/practice/providers/edit"


@pytest.fixture
def world(fhir: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Whose lists have one appointment on each page."""
    monkeypatch.setattr("frontdesk.systems.port.PAGE_OF_APPOINTMENTS", 1)
    monkeypatch.setattr(connection, "_audit_context", lambda: AuditContext("command-line", NOW, "5" * 32))
    return fhir


def file_without_okafor(address: str) -> str:
    text = file_text("harbor", address)
    return re.sub(r"  - id: 12\n.*?(?=visitTypes:)", "", text, flags=re.DOTALL).replace(
        ', "12": "Practitioner/okafor"', ""
    )


async def made_by_staff(upstream: Upstream, start: str, status: str = "booked") -> None:
    """An appointment with Dr. Okafor that this service has never seen."""
    actors = ("Patient/grace", "Practitioner/okafor", "Location/downtown")
    await upstream.create(
        {
            "resourceType": "Appointment",
            "status": status,
            "serviceType": [{"coding": [{"system": VISITS, "code": "FU15"}]}],
            "start": f"{start}:00Z",
            "end": f"{start}:30Z",
            "participant": [{"actor": {"reference": actor}, "status": "accepted"} for actor in actors],
        }
    )


async def test_pruning_tells_and_refuses_what_strands_patients_at_the_server(
    world: World, upstream: Upstream, command: Command, tmp_path: Path
) -> None:
    chen = await book(await world.client(), "Alan")
    okafor = await book(await world.client(), providerId=12)
    for start, status in (
        ("2026-11-18T15:00", "booked"),
        ("2026-11-18T16:00", "cancelled"),
        ("2026-11-12T15:00", "booked"),
    ):
        await made_by_staff(upstream, start, status)
    before = await stored_directory(world.database, "harbor")
    file = tmp_path / "harbor.yaml"
    address = upstream.door.address
    file.write_text(file_without_okafor(address))

    dry = await command("practice", "import", str(file), "--dry-run", "--prune", "--json")
    found = dry.document["stranded"]
    assert [(each["startsAt"], each["loses"]) for each in found] == [
        ("2026-11-16T14:00:00Z", ["provider"]),
        ("2026-11-18T15:00:00Z", ["provider"]),
    ]
    assert found[0]["appointmentId"] == okafor
    assert dry.document["refused"]

    for words in ((), ("--stranded", "cancel")):
        refused = await command("practice", "import", str(file), "--prune", *words)
        assert refused.status == 2
        assert "2 future appointments would lose what they were booked for" in refused.err
        assert "where an import cancels nothing" in refused.err
        assert okafor in refused.err
        assert chen not in refused.err
    assert await stored_directory(world.database, "harbor") == before

    file.write_text(file_without_okafor(address))
    kept = await command("practice", "import", str(file), "--prune", "--stranded", "keep", "--json")
    assert [each["appointmentId"] for each in kept.document["kept"]] == [each["appointmentId"] for each in found]
    assert len(await upstream.live_appointments()) == 4, "none of them was cancelled"


async def test_a_server_that_is_away_is_told_of_and_nothing_is_pruned(
    world: World, upstream: Upstream, command: Command, tmp_path: Path
) -> None:
    await book(await world.client(), providerId=12)
    before = await stored_directory(world.database, "harbor")
    file = tmp_path / "harbor.yaml"
    file.write_text(file_without_okafor(upstream.door.address))
    upstream.door.harm = lambda _: "error_before"

    dry = await command("practice", "import", str(file), "--dry-run", "--prune")
    assert dry.status == 0
    assert "FHIR server could not be checked: it cannot be reached, or cannot answer now." in dry.out
    assert "The import would be refused." in dry.out
    refused = await command("practice", "import", str(file), "--prune", "--json")
    assert (refused.status, refused.document["stranded"]) == (2, [])
    assert "cannot be reached" in refused.document["notLookedAt"]
    assert await stored_directory(world.database, "harbor") == before

    renamed = file_text("harbor", upstream.door.address).replace("name: Westside", "name: West Side")
    file.write_text(renamed)
    assert (await command("practice", "import", str(file), "--prune")).status == 0, "it can strand nobody"

    admin = await signed_in(world, role="admin")
    form = await admin.get(f"{EDIT}?id=12")
    shown = await send(admin, form, EDIT, performs="some", procedures=["100"])
    assert "could not be checked" in shown.text
    assert 'value="cancel"' not in shown.text
    undecided = await send(admin, shown, EDIT, step="apply")
    assert undecided.status_code == 409
    upstream.door.harm = None
    forgive(world)
    listed = await send(admin, form, EDIT, performs="some", procedures=["100"])
    assert "1 booked appointment loses" in listed.text
    assert 'value="cancel"' not in listed.text
    assert (await send(admin, listed, EDIT, step="apply")).status_code == 409
    assert (await send(admin, listed, EDIT, step="apply", stranded="keep")).status_code == 303
