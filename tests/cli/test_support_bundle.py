"""`frontdesk support-bundle`: a bundle is made whatever is broken, and only the service's own log lines get into it."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from frontdesk.cli import main
from frontdesk.cli.support_bundle import log_lines
from tests.cli.command_line import COMMAND, CommandLine


@pytest.mark.parametrize("host", ["127.0.0.1:1", "[::1"])
def test_a_bundle_of_a_broken_installation_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    for name, value in {
        "FRONTDESK_DATA_DIR": str(tmp_path / "data"),
        "FRONTDESK_DATABASE_URL": f"postgresql://desk:hunter2@{host}/desk",
        "FRONTDESK_PORT": "1",
        "FRONTDESK_METRICS_TOKEN": "a token for the scraper",
    }.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "bundle.tar.gz"
    assert main(["support-bundle", "--output", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == str(file)
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        contents = {Path(name).name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]
    assert sorted(contents) == document["contents"]
    assert contents["queues.json"].startswith("This could not be collected: The database of FRONTDESK_DATABASE_URL ")
    assert contents["metrics.txt"] == "The service does not answer at port 1.\n"
    assert not json.loads(contents["doctor.json"])["healthy"]
    shown = {each["setting"]: each["value"] for each in json.loads(contents["config.json"])["settings"]}
    assert shown["database_url"] == shown["metrics_token"] == "(set)"
    assert not any(secret in text for secret in ("hunter2", "a token for") for text in contents.values())

    assert main(["support-bundle", "--output", str(file)]) == 2
    assert capsys.readouterr().err == f"{file} exists already and is not overwritten.\n"


def test_a_bundle_that_cannot_be_written_is_not_left_behind(tmp_path: Path) -> None:
    settings = {"FRONTDESK_DATABASE_URL": "postgresql://127.0.0.1:1/desk", "FRONTDESK_SECRET_KEY": "x" * 43}
    file = tmp_path / "bundle.tar.gz"
    limited = f"ulimit -f 0; {COMMAND} support-bundle --output {file}"
    environment = CommandLine(tmp_path / "data").environment(**settings)
    done = subprocess.run(["bash", "-c", limited], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"{file} cannot be written: File too large.\n")
    assert not file.exists()


def test_only_lines_of_the_service_are_taken_from_a_log(tmp_path: Path) -> None:
    own = '{"at":"2026-11-16T15:12:18.996+00:00","level":"info","message":"request","n":%d}\n'
    file = tmp_path / "log"
    file.write_text(
        "".join(own % n for n in range(2500))
        + 'Traceback (most recent call last): patient Ada\n{"log":"patient Ada"}\n{"at":"patient Ada"}\n'
        + '{"at":"now","level":"patient Ada","message":"x"}\n{"at":broken\n'
        + own % 2500
    )
    lines = log_lines(file).splitlines()
    assert len(lines) == 2000
    assert [json.loads(line)["n"] for line in (lines[0], lines[-1])] == [501, 2500]
