"""What holds for every command: JSON or text, one sentence for an error, exit statuses, a start without delay."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.server import OWNER_ROLE
from tests.cli.command_line import COMMAND, CommandLine, create_database, on_database, owner_dsn
from tests.store.embedded_processes import is_stopped, temporary_home, wait_until

EMPTY = "practice: {slug: harbor, name: Harbor, timeZone: UTC}\n"


def test_help_is_shown_without_importing_anything_heavy() -> None:
    code = "import sys, frontdesk.cli; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "asyncpg", "cryptography", "pydantic", "starlette", "uvicorn", "yaml"} & set(loaded)


def test_no_command_shows_the_commands_and_is_bad_input(line: CommandLine) -> None:
    done = line.run()
    assert (done.status, done.out) == (2, "")
    assert all(name in done.err for name in ("serve", "practice", "client", "audit", "keys", "db"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("client", "add", "--name", "X"), "frontdesk client add: the following arguments are required: --practice,"),
        (
            ("practice", "list", "--everything"),
            "frontdesk practice list: unrecognized arguments: --everything. See frontdesk practice list --help.",
        ),
        (("doctor", "--jsn"), "frontdesk doctor: unrecognized arguments: --jsn. See frontdesk doctor --help."),
        (("--jsn",), "frontdesk: unrecognized arguments: --jsn. See frontdesk --help."),
        *(
            (
                (*words, "--limit", limit),
                f"frontdesk {' '.join(words[:2])}: argument --limit: must be a whole number from",
            )
            for words in (("audit", "list"), ("webhook", "deliveries", "x"))
            for limit in ("many", "0", "9223372036854775808")
        ),
        (("client", "disable", "\udcff"), "An argument is not UTF-8 text."),
        (("practise",), "frontdesk: argument COMMAND: invalid choice: 'practise'"),
        (("serve", "--port", "70000"), "FRONTDESK_PORT must be between 1 and 65535."),
    ],
)
def test_a_slip_of_the_pen_is_one_line_and_status_2(line: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    done = line.run(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(sentence)
    assert done.err.count("\n") == 1


def test_an_error_is_a_document_too_when_json_was_asked_for(line: CommandLine) -> None:
    done = line.run("practice", "show", "nowhere", "--json")
    assert done.status == 2
    assert json.loads(done.out) == {"error": done.err.rstrip("\n")}


def test_an_error_with_the_undecodable_name_of_a_file_is_a_document_too(line: CommandLine) -> None:
    done = line.run("practice", "import", "\udcff.yaml", "--json")
    assert (done.status, done.err) == (2, "\\udcff.yaml cannot be read: No such file or directory.\n")
    assert json.loads(done.out) == {"error": "\udcff.yaml cannot be read: No such file or directory."}


def test_an_unknown_variable_is_bad_input_and_names_the_closest(line: CommandLine) -> None:
    done = line.run("practice", "list", FRONTDESK_DATABSE_URL="postgresql://localhost/x")
    assert done.status == 2
    assert done.err == "FRONTDESK_DATABSE_URL is not a setting of frontdesk; the closest is FRONTDESK_DATABASE_URL.\n"


@pytest.mark.parametrize(
    ("url", "status", "sentence"),
    [
        ("localhost/frontdesk", 2, "FRONTDESK_DATABASE_URL must start with postgresql:// or postgres://."),
        ("postgresql://localhost:port/x", 1, "The database of FRONTDESK_DATABASE_URL has no valid address: it looks"),
        ("postgresql://me:hush@[::1/x", 1, "The database of FRONTDESK_DATABASE_URL has no valid address: it looks"),
        ("postgresql://me:hush@127.0.0.1:1/x", 1, "The database of FRONTDESK_DATABASE_URL cannot be reached (conn"),
        ("postgresql://me:hush@nowhere.invalid/x", 1, "The database of FRONTDESK_DATABASE_URL cannot be reached ("),
    ],
)
def test_a_database_that_cannot_be_used_is_one_sentence(
    line: CommandLine, url: str, status: int, sentence: str
) -> None:
    done = line.run("practice", "list", FRONTDESK_DATABASE_URL=url)
    assert (done.status, done.out) == (status, "")
    assert done.err.startswith(sentence)
    assert done.err.count("\n") == 1
    assert "hush" not in done.err


@pytest.mark.parametrize("setting", ["FRONTDESK_MIGRATION_DATABASE_URL", "FRONTDESK_DIRECT_DATABASE_URL"])
def test_the_setting_whose_address_failed_is_named(line: CommandLine, setting: str) -> None:
    line.json("db", "migrate")
    service = owner_dsn(line).replace(f"{OWNER_ROLE}@", f"{SERVICE_ROLE}@", 1)
    for words in (("practice", "list"), ("db", "migrate"), ("db", "status")):
        for own in ({"FRONTDESK_DATABASE_URL": service}, {}):
            done = line.run(*words, **own, **{setting: "postgresql://me:hush@127.0.0.1:1/x"})
            assert (done.status, done.err.count("\n")) == (1, 1)
            assert done.err.startswith(f"The database of {setting} cannot be reached (")
    both = {"FRONTDESK_DATABASE_URL": "postgresql://[::1/x", setting: owner_dsn(line)}
    assert line.run("practice", "list", **both).err.startswith("The database of FRONTDESK_DATABASE_URL has no valid")


def test_a_login_that_may_not_create_the_tables_is_told_what_to_set(line: CommandLine) -> None:
    line.json("db", "migrate")
    create_database(line, "bare")
    owner = owner_dsn(line, "bare")
    service = owner.replace(f"{OWNER_ROLE}@", f"{SERVICE_ROLE}@", 1)
    reading = line.run("practice", "list", FRONTDESK_DATABASE_URL=service)
    assert (reading.status, reading.err.partition(":")[0]) == (1, "The database has no tables yet")
    done = line.run("practice", "import", "-", stdin=EMPTY, FRONTDESK_DATABASE_URL=service)
    assert done.status == 1
    assert "FRONTDESK_MIGRATION_DATABASE_URL" in done.err
    both = {"FRONTDESK_DATABASE_URL": service, "FRONTDESK_MIGRATION_DATABASE_URL": owner}
    assert line.json("practice", "import", "-", stdin=EMPTY, **both)["practice"] == "harbor"
    assert line.json("db", "status", FRONTDESK_DATABASE_URL=service)["pending"] == 0


def test_a_data_directory_that_is_a_file_or_somebody_elses_is_one_sentence(line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = line.run("practice", "import", "-", stdin=EMPTY, FRONTDESK_DATA_DIR=str(tmp_path / "file"))
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "it is a file" in done.err
    theirs = Path("/")
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, 65534, -1)
    done = line.run("practice", "import", "-", stdin=EMPTY, FRONTDESK_DATA_DIR=str(theirs))
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert f"The data directory {theirs} belongs to " in done.err


def test_an_import_brings_an_empty_folder_to_life_and_leaves_nothing_running() -> None:
    with temporary_home() as home:
        line = CommandLine(home.parent / "new" / "data")
        assert line.json("practice", "import", "-", stdin=EMPTY)["practice"] == "harbor"
        assert line.json("db", "status")["pending"] == 0
        assert line.data_dir.stat().st_mode & 0o777 == 0o700
        wait_until(lambda: is_stopped(line.data_dir / "postgres"))


def test_a_database_of_an_older_version_is_left_for_an_explicit_migration(line: CommandLine) -> None:
    create_database(line, "older")
    older = {"FRONTDESK_DATABASE_URL": owner_dsn(line, "older")}
    assert len(line.json("db", "migrate", **older)["applied"]) > 1
    assert line.json("db", "migrate", **older) == {"applied": [], "functions": []}
    newest = "DELETE FROM migration WHERE number = (SELECT max(number) FROM migration)"
    on_database(line, lambda connection: connection.execute(newest), "older")
    done = line.run("practice", "list", **older)
    assert (done.status, done.out) == (1, "")
    assert done.err == "The database was made by an older version of frontdesk: run frontdesk db migrate.\n"


def test_a_reader_that_stops_early_is_no_error(line: CommandLine) -> None:
    # The pipe breaks for sure: nobody reads it, and all of it would not fit.
    pipeline = f"{COMMAND} practice export harbor --with-patients | true"
    many = "".join(
        f"  - {{number: {n}, firstName: Ada, lastName: Lovelace, dob: 1985-12-10, phone: '5550100'}}\n"
        for n in range(1, 3001)
    )
    line.json("practice", "import", "-", stdin=f"{EMPTY}patients:\n{many}")
    done = subprocess.run(
        ["bash", "-c", f"{pipeline}; echo ${{PIPESTATUS[0]}}"], env=line.environment(), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_that_cannot_be_written_is_one_sentence(line: CommandLine, options: tuple[str, ...]) -> None:
    for words, status, sentence in (
        (("config", "show"), 1, "There is no disk space left.\n"),
        (("practice", "schema"), 1, "There is no disk space left.\n"),  # more than a buffer
        (("practice", "import", "none"), 2, "none cannot be read: No such file or directory.\n"),
    ):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [COMMAND, *words, *options], stdout=full, stderr=subprocess.PIPE, text=True, env=line.environment()
            )
        assert (done.returncode, done.stderr) == (status, sentence), words
