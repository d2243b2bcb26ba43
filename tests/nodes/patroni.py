"""etcd, two Patroni nodes and HAProxy on this machine, with the files of `deploy/patroni`."""

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from frontdesk.store.embedded.account import account_for
from tests.support.ports import free_port

FILES = Path(__file__).parents[2] / "deploy" / "patroni"
PASSWORD = "CHANGE-ME-1"
_WAIT_SECONDS = 120.0
_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAMS = {name: shutil.which(name, path=_PATH) for name in ("patroni", "patronictl", "haproxy", "etcd")}


def missing() -> list[str]:
    """The programs that have to be installed first."""
    found = {**_PROGRAMS, "postgres": _POSTGRES}
    return [name for name, program in found.items() if not program]


@dataclass(eq=False)
class Member:
    """One Patroni with its PostgreSQL."""

    name: str
    configuration: Path
    data: Path
    port: int
    rest_port: int
    process: subprocess.Popen[bytes]

    def is_primary(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.rest_port}/primary", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def signal(self, number: signal.Signals) -> None:
        """To Patroni, to the postmaster and to its processes."""
        pids = [self.process.pid]
        with contextlib.suppress(FileNotFoundError, IndexError):  # it does not run, or only begins to
            postmaster = (self.data / "postmaster.pid").read_text().split()[0]
            pids += [int(postmaster), *map(int, _children(postmaster))]
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def _children(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


@dataclass
class Patroni:
    folder: Path
    members: list[Member] = field(default_factory=list)
    database_port: int = field(default_factory=free_port)
    service_port: int = field(default_factory=free_port)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.database_port}/postgres"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.service_port}"

    @property
    def primary(self) -> Member:
        return next(member for member in self.members if member.is_primary())

    def start(self, node_port: int) -> None:
        self._account = asdict(account_for(self.folder / "pg1"))
        if self._account["user"] is not None:
            os.chown(self.folder, self._account["user"], self._account["group"] or -1)
        etcd, peer = free_port(), free_port()
        self._run(
            "etcd", "--data-dir", str(self.folder / "etcd"),
            "--listen-client-urls", f"http://127.0.0.1:{etcd}", "--advertise-client-urls", f"http://127.0.0.1:{etcd}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync",
        )  # fmt: skip
        self._add("pg1", etcd)
        _wait_until(lambda: self.members[0].is_primary())
        self._add("pg2", etcd)
        self.wait_for_standby()
        self._balance(node_port)

    def wait_for_standby(self) -> None:
        """Until a synchronous standby could take over."""
        _wait_until(self._is_synchronous)

    def wait_for_service(self) -> None:
        """Until HAProxy has noticed that the node is ready."""
        _wait_until(lambda: httpx.get(f"{self.url}/readyz", timeout=30).status_code == 200)

    def switch_over(self) -> None:
        command = [str(_PROGRAMS["patronictl"]), "-c", str(self.members[0].configuration), "switchover", "--force"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", env=_environment())
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self) -> None:
        for member in self.members:
            member.signal(signal.SIGKILL)
        for process in self._processes:
            process.kill()
            process.wait(30)

    def _add(self, name: str, etcd: int) -> None:
        configuration: dict[str, Any] = yaml.safe_load((FILES / "patroni.yml").read_text())
        port, rest_port = free_port(), free_port()
        postgres = configuration["postgresql"]
        configuration["name"] = name
        configuration["etcd3"]["hosts"] = [f"127.0.0.1:{etcd}"]
        for address in ("listen", "connect_address"):
            configuration["restapi"][address] = f"127.0.0.1:{rest_port}"
            postgres[address] = f"127.0.0.1:{port}"
        postgres |= {"data_dir": str(self.folder / name), "bin_dir": str(_POSTGRES[-1].parent)}
        postgres["pgpass"] = str(self.folder / f"{name}.pgpass")
        postgres["pg_hba"] = [line.replace("10.0.0.0/24", "127.0.0.1/32") for line in postgres["pg_hba"]]
        postgres["parameters"] = {"unix_socket_directories": str(self.folder), "fsync": "off"}
        configuration["watchdog"]["mode"] = "off"  # the machine is not to be reset
        path = self.folder / f"{name}.yml"
        path.write_text(yaml.safe_dump(configuration))
        process = self._run("patroni", str(path))
        self.members.append(Member(name, path, self.folder / name, port, rest_port, process))

    def _is_synchronous(self) -> bool:
        answer = httpx.get(f"http://127.0.0.1:{self.members[0].rest_port}/cluster", timeout=5).json()
        return any(member.get("role") == "sync_standby" for member in answer["members"])

    def _balance(self, node_port: int) -> None:
        text = (FILES / "haproxy.cfg").read_text()
        first, second = self.members
        for old, new in {
            "10.0.0.11:5432 check port 8008": f"127.0.0.1:{first.port} check port {first.rest_port}",
            "10.0.0.12:5432 check port 8008": f"127.0.0.1:{second.port} check port {second.rest_port}",
            "10.0.0.10:5000": f"127.0.0.1:{self.database_port}",
            "10.0.0.10:8080": f"127.0.0.1:{self.service_port}",
            "10.0.0.21:8080": f"127.0.0.1:{node_port}",
            "10.0.0.22:8080": "127.0.0.1:1",
        }.items():
            assert old in text
            text = text.replace(old, new)
        assert not re.search(r"10\.0\.0\.", text)
        path = self.folder / "haproxy.cfg"
        path.write_text(text)
        self._run("haproxy", "-db", "-f", str(path))

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(_PROGRAMS[program]), *arguments],
                stdout=log, stderr=log, cwd="/", env=_environment(), start_new_session=True, **self._account,
            )  # fmt: skip
        self._processes.append(process)
        return process


def _environment() -> dict[str, str]:
    """Without our virtual environment: Patroni runs on Debian's Python."""
    return {
        "PATH": _PATH,
        "LC_ALL": "C.UTF-8",
        "ETCD_UNSUPPORTED_ARCH": {"aarch64": "arm64"}.get(platform.machine(), ""),
    }


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if condition():
                return
        time.sleep(0.2)
    raise AssertionError("a part did not start: see the logs")
