"""`frontdesk patient import`: patients from CSV, by the rules of create_patient, and never shown."""

import logging
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli.patients import _MAX_BYTES
from tests.cli.in_process import Command, command
from tests.fhir.practice import file_text
from tests.support.world import World

__all__ = ["command"]

HEADER = "firstName,lastName,dob,phone,email,number,seen\n"
MARY = 'Mary,"Shelley ",1990-08-30,+1 555 010 0188,mary@example.com,77,yes\n'
JANE = "Jane,Austen,1991-12-16,555 010 0189,,,\n"
ADA = "ada,LOVELACE,1985-12-10,555 010 0199,,,\n"  # on file
PRIVATE = ("Mary", "Shelley", "Jane", "Austen", "LOVELACE", "0188", "1990-08-30", "mary@")


async def patients(world: World) -> dict[str, Any]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch("SELECT * FROM patient WHERE practice_id = 1 AND number > 4 ORDER BY number")
    return {row["first_name"]: row for row in rows}


async def records(world: World) -> list[tuple[str, list[str]]]:
    async with world.database.transaction(1) as connection:
        rows = await connection.fetch(
            "SELECT operation, subject_ids FROM audit_record WHERE practice_id = 1 ORDER BY record_id"
        )
    return [(row["operation"], row["subject_ids"]) for row in rows]


async def test_new_patients_are_added_and_duplicates_are_listed(
    world: World, command: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("\ufeff" + HEADER + MARY + "\n" + ADA + JANE + JANE.replace("555 010", "+1 (555) 010"), "utf-8")
    with caplog.at_level(logging.DEBUG):
        dry = await command("patient", "import", str(path), "--practice", "harbor", "--dry-run")
        assert dry.out.startswith("2 patients would be added, 2 duplicates would be left out.\n\nLINE  DUPLICATE\n")
        assert "\n   6  the same as line 5\n" in dry.out
        assert await patients(world) == {}
        (compared,) = await records(world)
        done = await command("patient", "import", str(path), "--practice", "harbor", "--json")
        again = await command("patient", "import", str(path), "--practice", "harbor")
    document = done.document
    assert (document["added"], [each["line"] for each in document["duplicates"]]) == (2, [4, 6])
    assert document["duplicates"][0]["patientId"] in dry.out
    added = await patients(world)
    mary, jane = added["Mary"], added["Jane"]
    assert (mary["number"], mary["last_name"], mary["seen"], mary["email"]) == (77, "Shelley", True, "mary@example.com")
    assert (jane["number"], jane["seen"], jane["email"]) == (78, False, None)
    assert again.out.startswith("0 patients added, 4 duplicates left out.\n")
    assert compared == ("console.compare_patients", [document["duplicates"][0]["patientId"]])
    assert ("command.import_patients", [mary["patient_id"], jane["patient_id"]]) in await records(world)
    output = "".join((dry.out, dry.err, done.out, done.err, again.out, again.err, caplog.text))
    assert not [text for text in PRIVATE if text in output]

    agent = await world.client()
    found = await agent.post(
        "/api/patients/match",
        json={"firstName": "Jane", "lastName": "Austen", "dob": "1991-12-16", "phone": "5550100189"},
    )
    assert found.json()["items"][0]["id"] == jane["patient_id"]


async def test_names_that_differ_in_vowel_signs_are_different_people(
    world: World, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "patients.csv"
    for names, added in (("राम रीमा राम", 2), ("रमा राम रीमा", 1)):
        path.write_text(HEADER + "".join(JANE.replace("Jane", name) for name in names.split()), "utf-8")
        done = await command("patient", "import", str(path), "--practice", "harbor", "--json")
        assert (done.document["added"], len(done.document["duplicates"])) == (added, 3 - added)
    assert set(await patients(world)) == {"राम", "रीमा", "रमा"}


async def test_a_file_with_errors_adds_nobody_and_names_lines_and_columns(
    world: World, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "patients.csv"
    path.write_text(
        HEADER
        + MARY
        + 'Jane,"Au\nsten",1991-12-16,5550100189,,,\n'  # a line break in a name
        + "Jane,,16.12.1991,12,nobody,0,maybe\n"
        + "Jane,Austen,2991-12-16,5550100189,,77,\n"
        + "Jane,Austen\n"
        + MARY.replace("Mary", "Percy")
        + JANE.replace(",,,", ",,1,")  # the number of another patient
    )
    ended = await command("patient", "import", str(path), "--practice", "harbor")
    assert (ended.status, ended.out) == (2, "")
    errors = [line.removeprefix(f"{path}:").split(": ", 1) for line in ended.err.splitlines()]
    assert [(line, message.split()[0]) for line, message in errors] == [
        ("3", "lastName"), ("5", "lastName"), ("5", "phone"), ("5", "dob"), ("5", "email"), ("5", "number"),
        ("5", "seen"), ("6", "dob"),        ("7", "has"), ("8", "number"),
    ]  # fmt: skip
    assert not [text for text in (*PRIVATE, "nobody", "maybe", "2991") if text in ended.err]
    path.write_text(HEADER + JANE.replace(",,,", ",,1,"))
    taken = await command("patient", "import", str(path), "--practice", "harbor", "--json")
    assert taken.document == {
        "errors": [{"file": str(path), "line": 2, "message": "number is that of another patient on file"}]
    }
    path.write_text(MARY + JANE)
    headless = await command("patient", "import", str(path), "--practice", "harbor")
    assert "column 1 has no known name; the names are firstName," in headless.err
    assert not [text for text in PRIVATE if text in headless.err]
    path.write_text("first name;last_name;DOB;Phone\nJane;Austen;1991-12-16;5550100189\n")
    assert (await command("patient", "import", str(path), "--practice", "harbor", "--dry-run")).status == 0
    path.write_bytes(b"##" + "é".encode() * (_MAX_BYTES // 2))  # its beginning ends in the middle of a character
    large = await command("patient", "import", str(path), "--practice", "harbor")
    assert (large.status, large.err) == (2, f"{path} is larger than 5 MB: import it in parts.\n")
    assert await patients(world) == {}


@pytest.mark.parametrize("number", ["2000000001", "2147483647", "000000000009999999999"])
async def test_a_number_that_leaves_none_for_later_patients_is_an_error(
    world: World, command: Command, tmp_path: Path, number: str
) -> None:
    path = tmp_path / "patients.csv"
    path.write_text(HEADER + MARY.replace("77", number))
    ended = await command("patient", "import", str(path), "--practice", "harbor")
    assert (ended.status, ended.err) == (2, f"{path}:2: number must be from 1 to 2000000000\n")


async def test_patients_can_be_created_after_the_one_with_the_largest_number(
    world: World, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "patients.csv"
    path.write_text(HEADER + MARY.replace("77", "2000000000"))
    assert (await command("patient", "import", str(path), "--practice", "harbor")).status == 0
    integration = await world.client(grant="integration")
    jane = {"firstName": "Jane", "lastName": "Austen", "dob": "1991-12-16", "phone": "5550100189"}
    assert (await integration.post("/api/patients", json=jane)).status_code == 201


async def test_patients_of_a_fhir_server_are_added_there(world: World, command: Command, tmp_path: Path) -> None:
    await world.import_file(file_text("elsewhere", "https://ehr.example.com/fhir"))
    (tmp_path / "patients.csv").write_text(HEADER + MARY)
    ended = await command("patient", "import", str(tmp_path / "patients.csv"), "--practice", "elsewhere")
    assert (ended.status, ended.err) == (
        2,
        "The patients of elsewhere are kept in its scheduling system: add them there.\n",
    )
