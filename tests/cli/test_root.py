"""Root may try the service out: its workers drop root privileges, and other processes cannot look into them."""

import json
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from frontdesk.privileges import UNPRIVILEGED
from tests.cli.command_line import CommandLine
from tests.cli.test_serve import answers, children
from tests.store.embedded_processes import parent_of, server_pid, temporary_home, wait_until
from tests.support.world import PRACTICE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="of what root starts")
READ_EVERYTHING = 1 << 2


@pytest.fixture
def own() -> Iterator[CommandLine]:
    with temporary_home() as home:
        home.parent.chmod(0o755)
        folder = home.parent / "data"
        folder.mkdir(mode=0o700)
        yield CommandLine(folder)


def status(pid: int, field: str) -> list[str]:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{field}:"))
    return line.split()[1:]


def account_of(pid: int) -> set[str]:
    """The real, effective, saved and file system accounts."""
    return {pwd.getpwuid(int(number)).pw_name for number in status(pid, "Uid")}


def tries_to_read(account: str, path: str) -> str:
    """What another process of the account is told."""
    user = pwd.getpwnam(account)
    done = subprocess.run(
        ["head", "-c", "1", path], capture_output=True, text=True, user=user.pw_uid, group=user.pw_gid, extra_groups=[]
    )
    return done.stderr


def test_workers_of_root_give_up_its_rights(own: CommandLine) -> None:
    own.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"))
    heads = own.data_dir.parent / "heads.jsonl"
    settings = {"FRONTDESK_METRICS_TOKEN": "m" * 16, "FRONTDESK_AUDIT_HEADS_FILE": str(heads)}
    with own.serving("--workers", "2", **settings) as served:
        assert "useradd --system frontdesk" in served.document["warnings"][0]
        for worker in children(served.process.pid):
            assert account_of(worker) == {UNPRIVILEGED}
            assert int(status(worker, "CapPrm")[0], 16) == READ_EVERYTHING
            for secret in ("environ", "mem", "maps"):
                assert "Permission denied" in tries_to_read(UNPRIVILEGED, f"/proc/{worker}/{secret}")
        assert "Permission denied" in tries_to_read(UNPRIVILEGED, str(own.data_dir / "secret.key"))
        database = server_pid(own.data_dir / "postgres")
        for process in (parent_of(database), database):  # the guard restarts a killed server, the supervisor a guard
            with suppress(ProcessLookupError):  # the server begins to end with its guard
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: not answers(served.url) or server_pid(own.data_dir / "postgres") != database, 60)
        wait_until(lambda: answers(served.url), 60)
    (head,) = heads.read_text().splitlines()  # two workers, and one of them signs
    assert json.loads(head)["practice"] == "harbor"
    assert (heads.owner(), heads.stat().st_mode & 0o777) == (UNPRIVILEGED, 0o600)
    found = own.run("doctor")
    assert (found.status, "useradd --system frontdesk" in found.out) == (1, True)


@pytest.mark.parametrize("command", ["serve", "doctor", "practice list", "keys list"])
def test_root_is_refused_the_data_directory_of_another_account(own: CommandLine, command: str) -> None:
    (own.data_dir / "postgres" / "data").mkdir(parents=True)
    owner = pwd.getpwnam("daemon")
    os.chown(own.data_dir, owner.pw_uid, owner.pw_gid)
    refused = own.run(*command.split())
    assert refused.status == 1
    assert "belongs to daemon: run runuser -u daemon -- frontdesk " + command in refused.out + refused.err
    assert [path.name for path in own.data_dir.rglob("*")] == ["postgres", "data"]
