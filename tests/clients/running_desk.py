"""A service as an operator runs it, with the demo practice, and credentials for both grants."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from frontdesk_client import AsyncFrontdesk, Frontdesk

from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

COMMAND = str(Path(sys.executable).parent / "frontdesk")
START_SECONDS = 120.0
# Slots from then on: the very earliest may come too close to be booked while a test runs, and the quick start books it.
NEXT_WEEK = datetime.now(UTC).date() + timedelta(days=7)
ALL_PATIENTS = ("--patients-per-hour", "0", "--patients-per-day", "0", "--match-misses", "0")


@dataclass(frozen=True)
class Credentials:
    """Of a client. Certificates are not read: there are none on loopback, and reading them outlasts most tests."""

    client_id: str
    client_secret: str

    def client(self, url: str, **options: Any) -> Frontdesk:
        return Frontdesk(url, **self._known(), transport=httpx.HTTPTransport(verify=False), **options)

    def async_client(self, url: str, **options: Any) -> AsyncFrontdesk:
        return AsyncFrontdesk(url, **self._known(), transport=httpx.AsyncHTTPTransport(verify=False), **options)

    def _known(self) -> dict[str, Any]:
        return {"client_id": self.client_id, "client_secret": self.client_secret}


@dataclass(frozen=True)
class Desk:
    url: str
    agent: Credentials
    integration: Credentials
    environment: dict[str, str]

    def of(self, grant: str) -> Credentials:
        return self.agent if grant == "agent" else self.integration

    def add_client(self, grant: str, *options: str) -> Credentials:
        """Of the demo practice, by the command line."""
        return _add_client(self.environment, grant, *options)


def _add_client(environment: dict[str, str], grant: str, *options: str) -> Credentials:
    made = _command(
        environment,
        "client",
        "add",
        "--practice",
        "demo",
        "--name",
        grant,
        "--grant",
        grant,
        "--scope",
        "all",
        *options,
    )
    return Credentials(made["clientId"], made["clientSecret"])


def _command(environment: dict[str, str], *arguments: str) -> dict[str, str]:
    done = subprocess.run(
        [COMMAND, *arguments, "--json"], env=environment, capture_output=True, check=True, timeout=120
    )
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


@contextlib.contextmanager
def running_desk(folder: Path, host_name: str = "127.0.0.1", **settings: str) -> Iterator[Desk]:
    port = free_port()
    url = f"http://{host_name}:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")},
        **NO_DRAIN,
        "FRONTDESK_DATA_DIR": str(folder / "data"),
        "FRONTDESK_PORT": str(port),
        "FRONTDESK_BASE_URL": url,
        **{f"FRONTDESK_{name.upper()}": value for name, value in settings.items()},
    }
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen([COMMAND, "serve", "--demo"], env=environment, stdout=output, stderr=output)
    try:
        _wait_until_ready(url, process, log)
        agent, integration = (
            _add_client(environment, grant, "--per-minute", "1000000", *ALL_PATIENTS)
            for grant in ("agent", "integration")
        )
        yield Desk(url, agent, integration, environment)
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/readyz", timeout=2).status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{log.read_text()[-2000:]}")
