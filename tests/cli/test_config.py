"""Settings on the command line: `config show`, --config, --data-dir, and where the service is."""

from pathlib import Path

from tests.cli.command_line import CommandLine
from tests.support.ports import free_port

SECRET = "a token for the scraper"


def test_every_setting_is_shown_with_its_source_and_no_secret(line: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "frontdesk.toml"
    file.write_text(f'port = 9000\nmetrics_token = "{SECRET}"\ndatabase_url = "postgresql://desk:hunter2@db/desk"\n')
    words = ("config", "show", "--config", str(file), "--data-dir", "elsewhere")
    shown = line.json(*words, FRONTDESK_TRUSTED_PROXIES="10.0.0.0/8")
    found = {each["setting"]: (each["value"], each["source"]) for each in shown["settings"]}
    assert shown["file"] == str(file)
    assert found["port"] == (9000, "file")
    assert found["data_dir"] == ("elsewhere", "option")
    assert found["trusted_proxies"] == (["10.0.0.0/8"], "environment")
    assert found["host"] == ("127.0.0.1", "default")
    assert found["metrics_token"] == found["database_url"] == ("(set)", "file")
    assert found["secret_key"] == (None, "default")
    text = line.run(*words).out
    assert SECRET not in text + str(shown)
    assert "hunter2" not in text + str(shown)
    assert not (tmp_path / "elsewhere").exists()


def test_an_empty_data_directory_counts_as_absent(line: CommandLine) -> None:
    shown = line.json("config", "show", "--data-dir", "", FRONTDESK_DATA_DIR="")["settings"]
    (data_dir,) = (setting for setting in shown if setting["setting"] == "data_dir")
    assert (data_dir["value"], data_dir["source"]) == (".frontdesk", "default")


def test_a_command_in_the_wrong_folder_says_so_and_creates_nothing(line: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    for words in (("practice", "list"), ("client", "list"), ("audit", "verify"), ("db", "migrate"), ("keys", "list")):
        done = line.run(*words, "--data-dir", str(folder))
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(f"There is no frontdesk database in {folder}: ")
    assert not folder.exists()


def test_a_command_that_fails_or_changes_nothing_makes_no_data_directory(line: CommandLine, tmp_path: Path) -> None:
    folder, file = tmp_path / "nothing", tmp_path / "file"
    file.write_text("not a backup")
    unreachable = {"FRONTDESK_DATABASE_URL": "postgresql://me@127.0.0.1:1/x"}
    secret = {"FRONTDESK_SECRET_KEY": "an operator's secret of more than enough characters"}
    for words, settings, sentence in (
        (("doctor",), unreachable, "cannot be reached"),
        (("practice", "list"), unreachable, "cannot be reached"),
        (("client", "list"), unreachable, "cannot be reached"),
        (("restore", f"{file}.missing"), {}, f"There is no file {file}.missing."),
        (("backup", "verify", f"{file}.missing"), {}, f"There is no file {file}.missing."),
        (("backup", "verify", str(file)), {}, f"{folder}/secret.key"),
        (("backup", "verify", str(file)), secret, "not a backup"),
        (("restore", str(file)), secret, "not a backup"),
        (("backup", str(tmp_path / "new")), {}, f"There is no frontdesk database in {folder}: name the data directory"),
    ):
        done = line.run(*words, "--data-dir", str(folder), **settings)
        assert (done.status in (1, 2), sentence in done.out + done.err) == (True, True), done
        assert not folder.exists(), words


def test_commands_print_the_address_of_the_service_that_runs(line: CommandLine, harbor: str) -> None:
    port = free_port()
    with line.serving(FRONTDESK_PORT=str(port)):
        added = line.json("staff", "add", "--practice", harbor, "--name", "Ann", "--role", "staff")
        assert added["link"].startswith(f"http://127.0.0.1:{port}/console/")
        behind_a_proxy = line.json("staff", "link", added["staffId"], FRONTDESK_BASE_URL="https://desk.example")
        assert behind_a_proxy["link"].startswith("https://desk.example/console/")


def test_a_second_service_does_not_replace_the_address_of_one_that_answers(line: CommandLine) -> None:
    recorded = line.data_dir / "address"
    with line.serving() as first, line.serving():
        assert recorded.read_text() == f"{first.url}\n"
    with line.serving() as next_one:
        assert recorded.read_text() == f"{next_one.url}\n"


def test_a_faulty_first_file_creates_nothing(line: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    done = line.run("practice", "import", "-", "--data-dir", str(folder), stdin="practice: {slug: harbor}")
    assert (done.status, "<stdin>:" in done.err) == (2, True)
    assert not folder.exists()
