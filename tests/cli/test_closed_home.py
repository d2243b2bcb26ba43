"""A home that an account may not enter, as `runuser -u` and systemd leave it, does not keep it from the database."""

import os
from pathlib import Path

import pytest

from frontdesk.cli.connection import CommandError, explain_database_errors
from frontdesk.settings import Settings
from tests.cli.command_line import CommandLine
from tests.support.ports import free_port


def test_a_command_does_not_look_into_a_closed_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0)
    if os.access(home, os.X_OK):
        pytest.skip("root may look everywhere")
    address = f"postgresql://frontdesk@127.0.0.1:{free_port()}/frontdesk"
    found = CommandLine(tmp_path / "data").run("db", "status", HOME=str(home), FRONTDESK_DATABASE_URL=address)
    assert "(connection refused)" in found.err, found


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="postgresql://frontdesk@db.example.org/frontdesk")
    with (
        pytest.raises(CommandError, match=r"cannot be reached \(permission denied: /closed/postgresql\.key\)\.$"),
        explain_database_errors(settings),
    ):
        raise PermissionError(13, "Permission denied", "/closed/postgresql.key")
