"""Recovery of an external database to a point in time, with the files of `deploy/pgbackrest`."""

import configparser
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.harness import COMMAND
from tests.deploy.installing import ROOT
from tests.deploy.programs import environment, need, run, unavailable
from tests.deploy.service import book, calling, is_booked, running
from tests.nodes.clusters import Cluster
from tests.nodes.test_logins import PREPARING
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

pytestmark = pytest.mark.heavy
FILES = ROOT / "deploy" / "pgbackrest"
GUIDE = ROOT / "docs" / "users" / "deploy.md"


@dataclass
class Archived:
    """A database whose backups and WAL go to a repository on this machine."""

    cluster: Cluster
    configuration: Path

    def pgbackrest(self, *arguments: str) -> None:
        self.cluster.run("/usr/bin/pgbackrest", f"--config={self.configuration}", "--stanza=frontdesk", *arguments)

    def dsn(self, login: str) -> str:
        return f"postgresql://{login}@127.0.0.1:{self.cluster.port}/frontdesk"


@pytest.fixture
def archived() -> Iterator[Archived]:
    """pgBackRest has to know the version of PostgreSQL, so both are Debian's."""
    need("pgbackrest")
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not binaries:
        unavailable("needs PostgreSQL of Debian")
    with tempfile.TemporaryDirectory(prefix="fd-pitr-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "one"
        cluster = Cluster(folder, binaries[-1].parent)
        archived = Archived(cluster, Path(name) / "pgbackrest.conf")
        settings = configparser.ConfigParser()
        settings.read(FILES / "pgbackrest.conf")
        paths = {"repo1-path": "repository", "log-path": "log", "lock-path": "locks", "spool-path": "spool"}
        settings["global"].update({key: str(folder / each) for key, each in paths.items()})
        settings["frontdesk"].update(
            {"pg1-path": str(cluster.data), "pg1-port": str(cluster.port), "pg1-socket-path": str(folder)}
        )
        settings["frontdesk"]["pg1-user"] = "postgres"
        with archived.configuration.open("w") as file:
            settings.write(file)
        archiving = configparser.ConfigParser(interpolation=None)
        archiving.read_string("[postgresql]\n" + (FILES / "postgresql.conf").read_text())
        cluster.settings |= {name: value.strip("'") for name, value in archiving["postgresql"].items()}
        command = cluster.settings["archive_command"]
        cluster.settings |= {
            "archive_command": command.replace("pgbackrest ", f"pgbackrest --config={archived.configuration} "),
            "unix_socket_directories": str(folder),
        }
        try:
            cluster.create()
            cluster.start()
            cluster.script(PREPARING)
            yield archived
        finally:
            cluster.kill()


def test_a_database_is_restored_to_a_point_between_two_bookings(archived: Archived, tmp_path: Path) -> None:
    cluster, data, port = archived.cluster, tmp_path / "data", free_port()
    url = f"http://127.0.0.1:{port}"
    variables = environment(
        FRONTDESK_DATABASE_URL=archived.dsn("frontdesk_app"), FRONTDESK_BASE_URL=url, FRONTDESK_PORT=str(port),
        FRONTDESK_MIGRATION_DATABASE_URL=archived.dsn("frontdesk_owner"), FRONTDESK_LOG_LEVEL="error",
        FRONTDESK_DATA_DIR=str(data), **NO_DRAIN,
    )  # fmt: skip
    command = [COMMAND, "serve", "--demo"]
    archived.pgbackrest("stanza-create")
    archived.pgbackrest("check")
    with running(command, folder=tmp_path, variables=variables, url=url):
        agent = json.loads((data / "demo-credentials.json").read_text())["agent"]
        archived.pgbackrest("--type=full", "backup")
        ended = cluster.sql("SELECT clock_timestamp()")
        # pgBackRest counts in seconds, and the moment must be after that of the backup.
        wait_until(
            lambda: cluster.sql(f"SELECT clock_timestamp() > '{ended}'::timestamptz + interval '1 second'") == "t"
        )
        with calling(url, agent) as http:
            kept = book(http)
            point = cluster.sql("SELECT clock_timestamp()")
            lost = book(http)
    last_event = "SELECT max(event_id) FROM frontdesk.outbox"
    sent = int(cluster.run("psql", "-XAt", archived.dsn("postgres"), "-c", last_event))
    cluster.stop()

    shutil.rmtree(cluster.data)
    archived.pgbackrest("--delta", "--type=time", f"--target={point}", "--target-action=promote", "restore")
    cluster.start()
    wait_until(lambda: cluster.sql("SELECT pg_is_in_recovery()") == "f", 240)
    (advance,) = (line for line in GUIDE.read_text().splitlines() if line.startswith("SELECT setval("))
    cluster.run("psql", "-XAt", archived.dsn("frontdesk_owner"), "-c", advance)
    run(COMMAND, "audit", "verify", folder=tmp_path, variables=variables)
    with running(command, folder=tmp_path, variables=variables, url=url), calling(url, agent) as http:
        assert is_booked(http, kept)
        assert http.get(f"/api/appointments/{lost}").status_code == 404
        assert is_booked(http, book(http))
    assert int(cluster.run("psql", "-XAt", archived.dsn("postgres"), "-c", last_event)) > sent
