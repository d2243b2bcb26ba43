"""Started by root, the service drops root privileges, and other processes cannot look into it."""

import json
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.test_serve import answers, children
from tests.store.embedded_processes import parent_of, server_pid, temporary_home, wait_until
from tests.support.world import PRACTICE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run the service as another account")
DEDICATED, SHARED = "daemon", "nobody"
READ_EVERYTHING, BIND_LOW_PORTS = 1 << 2, 1 << 10


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


def owners(folder: Path) -> set[str]:
    found = set()
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # PostgreSQL is running, and puts files away
            found.add(path.lstat().st_uid)
    return {pwd.getpwuid(number).pw_name for number in found}


def low_port() -> str:
    """Nobody else who looks for one here gets it, as long as this process runs; see `free_port`."""
    for port in range(1023, 1, -1):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", port))
        except OSError:
            holder.close()
            continue
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # from now on a server may listen on it
        holder.detach()
        return str(port)
    raise AssertionError("every low port is in use")


def test_a_dedicated_account_takes_over_what_root_owned_and_runs_everything(own: CommandLine, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    own.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"), FRONTDESK_RUN_AS=SHARED)
    assert owners(own.data_dir) >= {"root", SHARED}
    settings = {"FRONTDESK_RUN_AS": DEDICATED, "FRONTDESK_METRICS_TOKEN": "m" * 16}
    with own.serving("--workers", "2", **settings, FRONTDESK_PORT=low_port()) as served:
        workers = children(served.process.pid)
        database = server_pid(own.data_dir / "postgres")
        for process in (served.process.pid, *workers, database, parent_of(database)):
            assert account_of(process) == {DEDICATED}
            assert int(status(process, "CapPrm")[0], 16) & ~(READ_EVERYTHING | BIND_LOW_PORTS) == 0
            assert "Permission denied" in tries_to_read(SHARED, f"/proc/{process}/environ")
        for process in (served.process.pid, *workers):
            assert status(process, "NoNewPrivs") == ["1"]
            for secret in ("environ", "mem", "maps"):
                assert "Permission denied" in tries_to_read(DEDICATED, f"/proc/{process}/{secret}")
        assert owners(own.data_dir) == {DEDICATED}

        # Commands of root work while the service runs, with files that only root can read.
        file = tmp_path / "practice.yaml"
        file.write_text(PRACTICE.replace("SLUG", "other"))
        file.chmod(0o600)
        own.json("practice", "import", str(file), **settings)
        assert {practice["slug"] for practice in own.json("practice", "list", **settings)} == {"harbor", "other"}
        own.json("practice", "export", "other", "--output", str(tmp_path / "out.yaml"), **settings)
        assert (tmp_path / "out.yaml").stat().st_uid == 0
        own.json("backup", str(tmp_path / "backup"), **settings)
        assert (tmp_path / "backup").stat().st_uid == 0
        restored = own.data_dir.parent / "restored"
        key = {"FRONTDESK_SECRET_KEY": (own.data_dir / "secret.key").read_text().strip()}
        own.json("restore", str(tmp_path / "backup"), **settings, **key, FRONTDESK_DATA_DIR=str(restored))
        assert owners(restored) == {DEDICATED}
        own.json("keys", "rotate", **settings)
        checks = {each["check"]: each for each in own.json("doctor", **settings, FRONTDESK_PORT="1")["checks"]}
        assert checks["account"]["state"] in ("ok", "warning")  # the installation may be in root's home
        wait_until(lambda: answers(served.url))
    assert owners(own.data_dir) == {DEDICATED}


def test_data_in_use_by_root_and_other_files_are_not_taken_over(own: CommandLine) -> None:
    with own.serving(FRONTDESK_RUN_AS=SHARED):
        refused = own.run("serve", FRONTDESK_RUN_AS=DEDICATED)
        assert (refused.status, "in use by root" in refused.err) == (1, True)
    (own.data_dir / "letters").mkdir()
    refused = own.run("serve", FRONTDESK_RUN_AS=DEDICATED)
    assert (refused.status, f"chown -R {DEDICATED}:" in refused.err) == (1, True)
    (own.data_dir / "letters").rmdir()
    outside = own.data_dir.parent / "of-root"
    outside.write_text("")
    os.link(outside, own.data_dir / "demo-credentials.json")
    refused = own.run("serve", FRONTDESK_RUN_AS=DEDICATED)
    assert (refused.status, outside.stat().st_uid) == (1, 0), refused


def test_without_a_dedicated_account_the_workers_still_give_up_roots_rights(own: CommandLine) -> None:
    own.json("practice", "import", "-", stdin=PRACTICE.replace("SLUG", "harbor"), FRONTDESK_RUN_AS=SHARED)
    heads = own.data_dir.parent / "heads.jsonl"
    settings = {"FRONTDESK_METRICS_TOKEN": "m" * 16, "FRONTDESK_AUDIT_HEADS_FILE": str(heads)}
    with own.serving("--workers", "2", FRONTDESK_RUN_AS=SHARED, **settings) as served:
        assert "useradd --system frontdesk" in served.document["warnings"][0]
        for worker in children(served.process.pid):
            assert account_of(worker) == {SHARED}
            assert int(status(worker, "CapPrm")[0], 16) == READ_EVERYTHING
            for secret in ("environ", "mem", "maps"):
                assert "Permission denied" in tries_to_read(SHARED, f"/proc/{worker}/{secret}")
        assert "Permission denied" in tries_to_read(SHARED, str(own.data_dir / "secret.key"))
        database = server_pid(own.data_dir / "postgres")
        for process in (parent_of(database), database):  # the guard restarts a killed server, the supervisor a guard
            with suppress(ProcessLookupError):  # the server begins to end with its guard
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: not answers(served.url) or server_pid(own.data_dir / "postgres") != database, 60)
        wait_until(lambda: answers(served.url), 60)
    (head,) = heads.read_text().splitlines()  # two workers, and one of them signs
    assert json.loads(head)["practice"] == "harbor"
    assert (heads.owner(), heads.stat().st_mode & 0o777) == (SHARED, 0o600)
    found = own.run("doctor", FRONTDESK_RUN_AS=SHARED)
    assert (found.status, "useradd --system frontdesk" in found.out) == (1, True)


@pytest.mark.parametrize(
    ("name", "says"), [("root", "names root"), ("no-such-account", "useradd --system no-such-account")]
)
def test_an_account_that_cannot_be_used_is_one_sentence(own: CommandLine, name: str, says: str) -> None:
    refused = own.run("serve", FRONTDESK_RUN_AS=name)
    assert (refused.status, says in refused.err, len(refused.err.splitlines())) == (1, True, 1), refused
