"""The files beside compose.yaml, against a PostgreSQL of this machine: logins, secrets and backups."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from tests.crash.harness import COMMAND
from tests.deploy.installing import ROOT
from tests.deploy.programs import PATH, environment, run
from tests.deploy.service import book, calling, running
from tests.nodes.clusters import Cluster
from tests.store.embedded_processes import wheel_binaries
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

pytestmark = pytest.mark.heavy
PAUSES = [60, 120, 240, 480, 960, 1920, 3600, 3600]  # of a backup that fails, in seconds


def variables_of(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_the_service_runs_with_the_prepared_logins_and_its_backup_is_whole(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "compose"
    shutil.copytree(ROOT / "deploy" / "compose", folder, ignore=shutil.ignore_patterns("secrets*", "backups"))
    run(folder / "prepare", "desk.example.org")
    secrets = {path.stem: variables_of(path) for path in (folder / "secrets").iterdir()}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (folder / "secrets").iterdir())
    with pytest.raises(AssertionError, match="not replaced"):
        run(folder / "prepare", "desk.example.org")

    here = {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port), "PATH": f"{wheel_binaries()}:{PATH}"}
    run(folder / "logins.sh", variables=environment(**secrets["database"], **here))

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        name: value.replace("@database/", f"@127.0.0.1:{cluster.port}/") for name, value in secrets["frontdesk"].items()
    }
    data = tmp_path / "data"
    variables = environment(
        **settings | {"FRONTDESK_BASE_URL": url}, **NO_DRAIN, FRONTDESK_DATA_DIR=str(data),
        FRONTDESK_PORT=str(port), FRONTDESK_LOG_LEVEL="error",
    )  # fmt: skip
    with running([COMMAND, "serve", "--demo"], folder=tmp_path, variables=variables, url=url):
        credentials = json.loads((data / "demo-credentials.json").read_text())
        with calling(url, credentials["agent"]) as http:
            appointment = book(http)

    backups = tmp_path / "backups"
    backups.mkdir()
    run(folder / "backup.sh", "once", variables=environment(**{**secrets["backup"], **here}, BACKUPS=str(backups)))
    (dump,) = backups.glob("*.dump")
    cluster.sql("CREATE DATABASE restored")
    restored = cluster.dsn.removesuffix("/postgres") + "/restored"
    run(wheel_binaries() / "pg_restore", "--exit-on-error", f"--dbname={restored}", dump)
    query = "SELECT appointment_id FROM frontdesk.appointment"
    assert appointment in run(wheel_binaries() / "psql", "-XAt", restored, "-c", query).split()


def test_a_backup_that_fails_leaves_no_dump_and_is_tried_again_soon(tmp_path: Path) -> None:
    """With a `pg_dump` that fails a few times, and a `sleep` that notes how long, and ends the script in time."""
    programs, backups, slept = tmp_path / "bin", tmp_path / "backups", tmp_path / "slept"
    for folder in (programs, backups):
        folder.mkdir()
    attempt = (
        f'echo . >> {tmp_path}/attempts; [ "$(wc -l < {tmp_path}/attempts)" -gt {len(PAUSES)} ] && : > "${{2#--file=}}"'
    )
    note = f'echo "$1" >> {slept}; cp {backups}/frontdesk-dump.prom {tmp_path}/"$1".prom; [ "$1" -lt 86400 ]'
    for name, text in {"pg_dump": attempt, "pg_restore": "true", "sleep": note}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    with pytest.raises(AssertionError, match="the backup failed"):  # ends by the last sleep
        run(
            ROOT / "deploy" / "compose" / "backup.sh",
            variables=environment(BACKUPS=str(backups), PATH=f"{programs}:{PATH}"),
        )
    assert [int(line) for line in slept.read_text().splitlines()] == [*PAUSES, 86400]
    assert metrics_in(tmp_path / "240.prom") == {"last_success_timestamp_seconds": 0, "failures": 3}
    done = metrics_in(tmp_path / "86400.prom")
    (dump,) = backups.glob("*.dump*")
    assert done == {"last_success_timestamp_seconds": pytest.approx(dump.stat().st_mtime, abs=60), "failures": 0}
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600
    assert stat.S_IMODE((backups / "frontdesk-dump.prom").stat().st_mode) == 0o644
    assert len(list(backups.iterdir())) == 2


def metrics_in(path: Path) -> dict[str, float]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {name.removeprefix("frontdesk_dump_"): float(value) for name, value in (line.split() for line in lines)}
