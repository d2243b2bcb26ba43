"""`frontdesk practice`: files in and out, all or nothing."""

import json
import re
import stat
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from frontdesk.practice_file import parse
from frontdesk.practice_file.reading import MAX_BYTES
from frontdesk.practice_file.schema import generate_schema
from tests.cli.command_line import COMMAND, CommandLine
from tests.support.world import PRACTICE

HARBOR = PRACTICE.replace("SLUG", "harbor")


def test_import_creates_a_practice_and_repeating_it_changes_nothing(line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "practice.yaml").write_text(HARBOR)
    done = line.run("practice", "import", str(tmp_path / "practice.yaml"))
    assert (done.status, done.err) == (0, "")
    imported, _, following = done.out.partition("\n\nNext:\n")
    assert imported == "Imported harbor: 2 locations, 3 providers, 3 visit types, 4 patients."
    assert "frontdesk client add --practice harbor " in following
    again = line.run("practice", "import", str(tmp_path / "practice.yaml"))
    assert again.out == f"{imported}\n", "there is no next step"
    before = line.run("practice", "export", "harbor", "--with-patients").out
    assert line.json("practice", "import", "-", stdin=HARBOR) == {
        "practice": "harbor", "locations": 2, "providers": 3, "visitTypes": 3, "patients": 4,
    }  # fmt: skip
    assert line.run("practice", "export", "harbor", "--with-patients").out == before


def test_a_new_practice_starts_from_a_commented_file_that_can_be_imported(line: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "practice.yaml"
    done = line.run("practice", "init", str(path))
    assert done.out == f"Wrote {path}. Edit it, then run: frontdesk practice import {path}\n"
    first, _ = path.read_text().split("\n", 1)
    assert first == "# yaml-language-server: $schema=http://127.0.0.1:8080/schemas/practice-file.json"
    imported = line.run("practice", "import", str(path))
    assert line.run("practice", "export", "my-practice").out.startswith(f"{first}\npractice:\n")
    assert imported.out.startswith("Imported my-practice: 1 location, 1 provider, 2 visit types, 0 patients.\n\nNext:")
    path.write_text("an own file")
    again = line.run("practice", "init", str(path))
    assert (again.status, again.err) == (2, f"{path} cannot be written: File exists.\n")
    assert path.read_text() == "an own file"


def test_a_file_to_start_from_that_cannot_be_written_is_not_left_behind(line: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "practice.yaml"
    limited = f"ulimit -f 0; {COMMAND} practice init {path}"
    done = subprocess.run(["bash", "-c", limited], env=line.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"{path} cannot be written: File too large.\n")
    assert not path.exists()


def test_editors_get_the_schema_without_a_service(line: CommandLine) -> None:
    assert json.loads(line.run("practice", "schema").out) == generate_schema()


def test_everything_in_comments_of_the_file_to_start_from_can_be_used() -> None:
    text = (files("frontdesk.practice_file") / "new_practice.yaml").read_text()
    used = parse(re.sub(r"^( *)# (?=[\w-]+: |  [-\w]|[-\w]+:$)", r"\1", text, flags=re.MULTILINE))
    assert used.directory.practice.phone == "+1 555 010 0100"
    assert used.directory.providers[10].capacity == 2
    assert len(used.patients) == 1


@pytest.mark.usefixtures("harbor")
def test_a_file_with_errors_names_each_by_its_path_and_changes_nothing(line: CommandLine) -> None:
    before = line.run("practice", "export", "harbor", "--with-patients").out
    broken = (
        HARBOR.replace("name: Harbor Family Medicine", "name: Another Name")
        .replace('from: "09:00", to: "12:00"', 'from: "12:00", to: "09:00"', 1)
        .replace("durationMinutes: 30", "durationMinutes: 0")
    )
    done = line.run("practice", "import", "-", stdin=broken)
    assert (done.status, done.out) == (2, "")
    errors = done.err.splitlines()
    assert [error.split(": ")[:2] for error in errors] == [
        ["<stdin>:17:71", "providers[0].hours[0].to"],
        ["<stdin>:35:54", "visitTypes[0].procedures[0].durationMinutes"],
    ]
    documented = line.run("practice", "import", "-", "--json", stdin=broken)
    assert documented.status == 2
    listed = json.loads(documented.out)["errors"]
    assert ["{file}:{line}:{column}: {path}: {message}".format(**error) for error in listed] == errors
    assert line.run("practice", "export", "harbor", "--with-patients").out == before


@pytest.mark.parametrize("text", ["", '{"practice": ', "- a list\x00"])
def test_what_is_no_practice_file_is_bad_input(line: CommandLine, text: str) -> None:
    done = line.run("practice", "import", "-", stdin=text)
    assert (done.status, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_a_file_that_cannot_be_read_is_bad_input(line: CommandLine, tmp_path: Path) -> None:
    done = line.run("practice", "import", str(tmp_path / "none.yaml"))
    assert (done.status, done.err) == (2, f"{tmp_path / 'none.yaml'} cannot be read: No such file or directory.\n")
    (tmp_path / "latin.yaml").write_bytes("practice: {name: Café}".encode("latin-1"))
    done = line.run("practice", "import", str(tmp_path / "latin.yaml"))
    assert (done.status, done.err) == (2, f"{tmp_path / 'latin.yaml'}: $: the file is not UTF-8 text\n")
    (tmp_path / "large.yaml").write_bytes(b"##" + "é".encode() * (MAX_BYTES // 2))
    done = line.run("practice", "import", str(tmp_path / "large.yaml"))
    assert (done.status, done.err) == (2, f"{tmp_path / 'large.yaml'}: $: the file is larger than 5 MB\n")


@pytest.mark.usefixtures("harbor")
@pytest.mark.parametrize("as_json", [False, True])
def test_an_export_reads_back_as_the_same_practice(line: CommandLine, *, as_json: bool) -> None:
    words = ("practice", "export", "harbor", *(["--json"] if as_json else []))
    text = line.run(*words, "--with-patients").out
    assert parse(text) == parse(HARBOR)
    assert parse(line.run(*words).out).patients == ()
    if as_json:
        assert json.loads(text)["practice"]["slug"] == "harbor"
    copy = text.replace("harbor", "copy", 1)
    line.json("practice", "import", "-", stdin=copy)
    assert parse(line.run("practice", "export", "copy", "--with-patients").out) == parse(copy)


@pytest.mark.usefixtures("harbor")
def test_an_export_to_a_file_is_for_its_owner_alone(line: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "harbor.yaml"
    done = line.json("practice", "export", "harbor", "--output", str(path))
    assert done == {"practice": "harbor", "file": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said_to_people = line.run("practice", "export", "harbor", "--output", str(tmp_path / "no" / "where"))
    assert said_to_people.status == 2


@pytest.mark.usefixtures("harbor")
def test_an_export_replaces_a_file_that_others_can_read_by_a_private_one(line: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "harbor.yaml"
    path.write_text("an earlier export")
    path.chmod(0o644)
    with path.open() as opened_by_another:
        line.json("practice", "export", "harbor", "--with-patients", "--output", str(path))
        assert opened_by_another.read() == "an earlier export"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert parse(path.read_text()) == parse(HARBOR)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("harbor")
def test_an_export_is_not_written_through_a_link_or_to_a_device(line: CommandLine, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "harbor.yaml"
    target.write_text("of somebody else")
    link.symlink_to(target)
    for path in (link, Path("/dev/null"), tmp_path):
        done = line.run("practice", "export", "harbor", "--with-patients", "--output", str(path))
        assert done.status == 2
        assert done.err == f"{path} is not a regular file: name another, or leave out --output.\n"
    assert target.read_text() == "of somebody else"
    assert link.is_symlink()


@pytest.mark.usefixtures("harbor")
def test_pruning_deactivates_what_the_file_no_longer_lists(line: CommandLine) -> None:
    whole = HARBOR.replace("slug: harbor", "slug: pruned")
    line.json("practice", "import", "-", stdin=whole)
    document = json.loads(line.run("practice", "export", "pruned", "--json").out)
    document["providers"] = [provider for provider in document["providers"] if provider["id"] != 12]
    line.json("practice", "import", "-", stdin=json.dumps(document))
    assert line.json("practice", "show", "pruned")["providers"] == 3
    line.json("practice", "import", "-", "--prune", stdin=json.dumps(document))
    assert line.json("practice", "show", "pruned")["providers"] == 2


@pytest.mark.usefixtures("harbor")
def test_pruning_refuses_a_file_that_refers_to_what_it_would_deactivate(line: CommandLine) -> None:
    part = {
        "practice": {"slug": "harbor", "name": "Harbor", "timeZone": "America/New_York"},
        "providers": [
            {"id": 10, "name": "Dr. Chen", "hours": [{"location": 1, "days": ["mon"], "from": "09:00", "to": "10:00"}]}
        ],
    }
    done = line.run("practice", "import", "-", "--prune", stdin=json.dumps(part))
    assert (done.status, done.err) == (
        2,
        "<stdin>:1:140: providers[0].hours[0].location: there is no location with this id\n",
    )


@pytest.mark.usefixtures("harbor")
def test_practices_are_listed_shown_suspended_and_resumed(line: CommandLine) -> None:
    shown = line.json("practice", "show", "harbor")
    assert shown in line.json("practice", "list")
    assert {key: shown[key] for key in ("slug", "timeZone", "schedulingSystem", "suspended", "patients")} == {
        "slug": "harbor", "timeZone": "America/New_York", "schedulingSystem": "native", "suspended": False,
        "patients": 4,
    }  # fmt: skip
    heading, *rows = line.run("practice", "list").out.splitlines()
    assert heading.split()[:2] == ["SLUG", "NAME"]
    assert any(row.startswith("harbor") and row.endswith("active") for row in rows)
    assert line.json("practice", "suspend", "harbor")["suspended"] is True
    assert line.json("practice", "resume", "harbor")["suspended"] is False


@pytest.mark.usefixtures("harbor")
@pytest.mark.parametrize("word", ["show", "export", "suspend"])
def test_an_unknown_practice_is_bad_input_and_the_closest_is_named(line: CommandLine, word: str) -> None:
    done = line.run("practice", word, "harbour")
    assert (done.status, done.out) == (2, "")
    assert done.err == "There is no practice 'harbour'; the closest is 'harbor'.\n"
