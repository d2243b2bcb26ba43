"""Nodes of a service as an operator runs them: supervisors and workers of their own, on one database."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import httpx

import frontdesk
from tests.crash.harness import stop_group
from tests.support.ports import free_port

COMMAND = str(Path(sys.executable).parent / "frontdesk")
SOURCES = Path(frontdesk.__file__).parents[1]
SECRET_KEY = "a secret key of the proof that is long enough"
WORKERS = 2
POOL_SIZE = 5
OPEN_FILES = 160  # of a process, so that they can be exhausted
_WAIT_TIMEOUT = 120.0
_LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")


def clock_library() -> str | None:
    """libfaketime, which moves the clock of the processes it is loaded into; None if it is not installed."""
    return next((str(path) for pattern in _LIBRARIES for path in Path("/").glob(pattern[1:])), None)


class Node:
    def __init__(self, folder: Path, name: str, dsn: str, owner_dsn: str) -> None:
        self.folder, self.name = folder, name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.AsyncClient(
            base_url=self.url, headers={"Host": "proof"}, timeout=8, limits=httpx.Limits(max_connections=40)
        )
        self.clock_file = folder / "clock"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("FRONTDESK_")},
            "PYTHONPATH": str(SOURCES),
            "FRONTDESK_DATABASE_URL": dsn,
            "FRONTDESK_MIGRATION_DATABASE_URL": owner_dsn,
            "FRONTDESK_DATA_DIR": str(folder / name),
            "FRONTDESK_SECRET_KEY": SECRET_KEY,
            "FRONTDESK_PORT": str(self.port),
            "FRONTDESK_BASE_URL": "http://proof",  # of all nodes, so that tokens are valid at each
            "FRONTDESK_WORKERS": str(WORKERS),
            "FRONTDESK_DATABASE_POOL_SIZE": str(POOL_SIZE),
            "FRONTDESK_WEBHOOK_ALLOW_PRIVATE": "true",
            "FRONTDESK_FHIR_SERVER": "true",
            "FRONTDESK_LOG_LEVEL": "error",
        }
        if (library := clock_library()) is not None:
            self.set_clock(0)
            self.environment |= {
                "LD_PRELOAD": library,
                "FAKETIME_TIMESTAMP_FILE": str(self.clock_file),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "NO_FAKE_STAT": "1",
            }
        self.process: subprocess.Popen[bytes] | None = None

    def set_clock(self, seconds: int) -> None:
        new = self.clock_file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.chmod(0o644)
        new.rename(self.clock_file)

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [COMMAND, "serve"],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES)),
            )

    def restart(self, sources: Path) -> None:
        """With the release of these sources."""
        self.stop()
        self.environment["PYTHONPATH"] = str(sources)
        self.start()
        self.until_ready()

    def until_ready(self) -> None:
        deadline = time.monotonic() + _WAIT_TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            if self.process is not None and self.process.poll() is not None:  # it gave up, as without a database
                self.start()
            time.sleep(0.2)
        raise RuntimeError(f"{self.name} is not ready: " + (self.folder / f"{self.name}.log").read_text()[-2000:])

    def workers(self) -> list[int]:
        assert self.process is not None
        with contextlib.suppress(OSError):
            return [
                int(pid)
                for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            ]
        return []

    def signal(self, pids: list[int], number: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kills the supervisor; its workers notice and end."""
        assert self.process is not None
        left = self.workers()
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + _WAIT_TIMEOUT
        while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            stop_group(self.process)
