"""`frontdesk serve`: from an empty folder to a service that answers, again and again, whatever ended it before."""

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.cli.command_line import COMMAND, CommandLine
from tests.guides.newcomer import needs_curl
from tests.store.embedded_processes import is_stopped, temporary_home, wait_until
from tests.support.ports import free_port


@pytest.fixture(scope="module")
def own() -> Iterator[CommandLine]:
    """A data directory whose database nobody keeps up but the servers themselves."""
    with temporary_home() as home:
        yield CommandLine(home.parent)


def match_ada(client: httpx.Client) -> str:
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    answer = client.post("/api/patients/match", json=person)
    assert answer.status_code == 200, answer.text
    found: str = answer.json()["items"][0]["id"]
    return found


def first_free_slot(client: httpx.Client) -> str:
    """Not of today: it could come too close before it is booked."""
    later = datetime.now(UTC).date() + timedelta(days=1)
    query: dict[str, int | str] = {"visitTypeId": 21, "procedureId": 102, "from": later.isoformat()}
    answer = client.get("/api/slots/first-available", params=query)
    found: str = answer.json()["items"][0]["id"]
    return found


@needs_curl
def test_a_newcomer_gets_a_service_and_a_first_request_that_works_as_it_is_pasted(own: CommandLine) -> None:
    process = subprocess.Popen(
        [COMMAND, "serve", "--demo", "--port", str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=own.environment(),
    )
    assert process.stdout is not None
    printed = ""
    for text in process.stdout:
        printed += text
        if "Ctrl-C" in text:
            break
    steps = ["Creating the database ...", "Starting PostgreSQL ...", "Importing the demo practice ..."]
    assert printed.splitlines()[:3] == steps
    (request,) = re.findall(r"^TOKEN=.*?(?=\n\n)", printed, re.DOTALL | re.MULTILINE)
    for shell in ("bash", "sh"):
        pasted = subprocess.run([shell], input=request + "\n", capture_output=True, text=True, timeout=30)
        capabilities, slots = pasted.stdout.splitlines()
        assert '"appointments:book"' in capabilities
        assert '"slt_' in slots
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out.strip()) == (0, "")
    assert all(re.fullmatch(r'\{"at":.*\}', logged) for logged in err.splitlines()), err
    assert is_stopped(own.data_dir / "postgres"), "its last user waits for it: a container ends with its first process"
    credentials = own.data_dir / "demo-credentials.json"
    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600


@pytest.mark.heavy
def test_data_and_credentials_survive_every_way_of_ending(own: CommandLine) -> None:
    with own.serving("--demo") as served, served.client("integration") as client:
        first = served.document["demo"]
        booking = {"patientId": match_ada(client), "slotId": first_free_slot(client)}
        booked = client.post("/api/appointments", json=booking)
        assert booked.status_code == 201, booked.text
        appointment = f"/api/appointments/{booked.json()['appointmentId']}"
        assert served.stop(signal.SIGTERM).status == 0
    for end, whom in ((signal.SIGKILL, os.kill), (signal.SIGKILL, os.killpg)):
        with own.serving("--demo", "--workers", "2") as served, served.client() as client:
            assert served.document["demo"] == first
            assert client.get(appointment).status_code == 200
            whom(served.process.pid, end)
            served.process.wait(10)
            wait_until(lambda url=served.url: not listening(url), 30)  # type: ignore[misc]
    with own.serving("--demo") as served, served.client() as client:
        assert client.get(appointment).status_code == 200


def listening(url: str) -> bool:
    with contextlib.suppress(ConnectionError), connected(url):
        return True
    return False


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10)


def test_commands_reach_a_running_server_within_seconds(own: CommandLine) -> None:
    with own.serving("--demo") as served, served.client() as client:
        assert client.get("/api/practice").status_code == 200
        own.json("practice", "suspend", "demo")
        wait_until(lambda: client.get("/api/practice").status_code == 403)
        own.json("practice", "resume", "demo")
        wait_until(lambda: client.get("/api/practice").status_code == 200)
        match_ada(client)
        (record, *_) = own.json("audit", "list", "--operation", "match_patient", "--limit", "1")
        assert record["actor"] == served.document["demo"]["agent"]["clientId"]
        assert own.json("audit", "verify")["whole"] is True


def test_a_busy_port_is_one_sentence_and_another_port_shares_the_database(own: CommandLine) -> None:
    with own.serving("--demo") as served:
        port = served.url.rpartition(":")[2]
        refused = own.run("serve", "--demo", FRONTDESK_PORT=port)
        assert (refused.status, refused.out) == (1, "")
        assert refused.err == (
            f"Port {port} is in use by another program: choose another with --port or FRONTDESK_PORT.\n"
        )
        with own.serving("--demo", "--host", "localhost") as second:
            assert second.document["demo"] == served.document["demo"]
            with second.client() as client:
                ada = match_ada(client)
        with served.client() as client:
            assert match_ada(client) == ada


def test_a_host_that_is_not_this_machine_is_one_sentence(own: CommandLine) -> None:
    refused = own.run("serve", "--host", "nowhere.invalid")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "nowhere.invalid is not an address of this machine: choose another with --host.\n"


@pytest.mark.heavy
def test_a_worker_that_is_killed_is_replaced(own: CommandLine) -> None:
    with own.serving() as served:
        (worker,) = children(served.process.pid)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: served.process.poll() is None and children(served.process.pid) not in ([], [worker]), 60)
        wait_until(lambda: answers(served.url), 60)
        assert "Unexpected exit" in served.stop(signal.SIGTERM).err


def test_ctrl_c_in_a_terminal_ends_the_server_and_its_workers_without_a_word(own: CommandLine) -> None:
    """It reaches them all at once."""
    with own.serving("--workers", "2") as served:
        workers = children(served.process.pid)
        os.killpg(served.process.pid, signal.SIGINT)
        out, err = served.process.communicate(timeout=30)
        assert (served.process.returncode, out) == (0, "")
        assert err.splitlines() == [] or all(FROM_ROOT in line for line in err.splitlines())
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_service_that_is_told_to_stop_while_it_starts_obeys(own: CommandLine) -> None:
    """Also as the first process of a container, where a signal that nobody handles is ignored."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        process = subprocess.Popen(
            [COMMAND, "serve", "--port", str(free_port())], env=own.environment(FRONTDESK_DATABASE_URL=url)
        )
        with silent.accept()[0]:
            process.terminate()
            assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.parametrize("factory", ["unimportable:create", "failing:create", "failing:closed"])
def test_a_worker_that_cannot_start_ends_the_service_and_says_where(tmp_path: Path, factory: str) -> None:
    (tmp_path / "failing.py").write_text(_FAILING)
    program = f"""
from frontdesk.serving import ServingError, serve
from frontdesk.settings import Settings
try:
    serve(Settings(port={free_port()}), lambda: lambda: print("ready"), "{factory}")
except ServingError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "The service could not be kept running; the lines above say why.\n"
    assert ("unimportable" if factory.startswith("unimportable") else "failing.py:") in done.stderr
    assert "4111" not in done.stderr


_FAILING = """
from starlette.applications import Starlette

def create(on_database_down):
    raise ValueError("the card number 4111")

def closed(on_database_down):
    return Starlette(lifespan=lambda app: create(on_database_down))
"""


FROM_ROOT = "root runs the service"


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz").status_code == 200
    return False


def test_a_client_that_never_finishes_its_request_does_not_hold_up_the_end(own: CommandLine) -> None:
    with own.serving(FRONTDESK_SHUTDOWN_SECONDS="1") as served, connected(served.url) as slow:
        slow.sendall(b"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        started = time.monotonic()
        assert served.stop(signal.SIGTERM).status == 0
        assert time.monotonic() - started < 30


@pytest.mark.heavy
def test_a_database_given_by_url_needs_no_embedded_server(line: CommandLine, tmp_path: Path) -> None:
    server = EmbeddedPostgres(line.data_dir / "postgres")
    urls = {
        "FRONTDESK_DATABASE_URL": server.dsn(SERVICE_ROLE),
        "FRONTDESK_MIGRATION_DATABASE_URL": server.dsn(OWNER_ROLE),
    }
    elsewhere = CommandLine(tmp_path / "data")
    with elsewhere.serving("--demo", **urls) as served, served.client() as client:
        match_ada(client)
    assert not (tmp_path / "data" / "postgres").exists()
    assert [practice["slug"] for practice in line.json("practice", "list")] == ["demo"]
