"""The unit of systemd, started by a systemd that is the first process of a container."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.containers import Engine
from tests.deploy.installing import ROOT
from tests.deploy.service import WAIT_TIMEOUT, book, calling, is_booked, wait_until_ready
from tests.nodes.clusters import Cluster
from tests.support.ports import free_port

pytestmark = pytest.mark.heavy
CONTAINER = "frontdesk-test-systemd"
UNIT = "frontdesk.service"
SETTINGS = "/etc/frontdesk/frontdesk.toml"
COMMAND = f"/opt/frontdesk/bin/frontdesk serve --demo --config {SETTINGS}"
SANDBOX_STATUSES = range(200, 256)  # of a process that systemd could not set up


@pytest.fixture(params=["embedded", "external"])
def machine(request: pytest.FixtureRequest, engine: Engine, image: str, tmp_path: Path) -> Iterator[tuple[Engine, str]]:
    """A running systemd with the unit and its settings for each kind of database, and the address of the service."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    settings, demo, masked = tmp_path / "frontdesk.toml", tmp_path / "demo.conf", tmp_path / "masked"
    settings.write_text(f'data_dir = "/var/lib/frontdesk"\nbase_url = "{url}"\nport = {port}\ndrain_seconds = 0\n')
    if request.param == "external":
        cluster: Cluster = request.getfixturevalue("cluster")
        with settings.open("a") as file:
            file.write(f'database_url = "{cluster.dsn}"\nsecret_key = "{"k" * 64}"\n')
    demo.write_text(f"[Service]\nExecStart=\nExecStart={COMMAND}\n")
    masked.touch()
    units = Path("/etc/systemd/system")
    mounted = {
        settings: Path(SETTINGS),
        demo: units / f"{UNIT}.d" / "demo.conf",
        ROOT / "deploy" / "systemd" / UNIT: units / UNIT,
        masked: units / "systemd-sysctl.service",  # would change the kernel's settings outside the container, too
    }
    volumes = [f"--volume={source}:{target}:ro" for source, target in mounted.items()]
    first = ("--privileged", "--systemd=always", "--user=0", "--entrypoint=/lib/systemd/systemd")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(engine.running(CONTAINER, *first, *volumes, image, "--unit=basic.target"))
        except AssertionError as error:
            pytest.skip(f"a privileged container does not start here: {error}")
        if not _is_up(engine):
            pytest.skip("systemd does not run in a container here")
        # As in the guide's own useradd, and as accounts are made by others: ProtectHome closes this home.
        engine.podman("exec", CONTAINER, "usermod", "--home", "/home/frontdesk", "frontdesk")
        yield engine, url


def _is_up(engine: Engine) -> bool:
    deadline = time.monotonic() + WAIT_TIMEOUT
    while time.monotonic() < deadline:
        with contextlib.suppress(AssertionError):
            return engine.podman("exec", CONTAINER, "systemctl", "show", "-P", "Version").strip() != ""
        time.sleep(0.5)
    return False


def test_the_unit_serves_without_rights_and_keeps_its_bookings(machine: tuple[Engine, str]) -> None:
    engine, url = machine

    def inside(*command: str) -> str:
        return engine.podman("exec", CONTAINER, *command)

    def shown(name: str) -> str:
        return inside("systemctl", "show", "-P", name, UNIT).strip()

    inside("systemctl", "start", UNIT)
    try:
        wait_until_ready(url)
    except AssertionError as error:
        if int(shown("ExecMainStatus")) in SANDBOX_STATUSES:
            pytest.skip("a container cannot set up the unit here")
        error.add_note(inside("journalctl", "--no-pager", "-u", UNIT))
        raise
    status = dict(line.split(":\t") for line in inside("cat", f"/proc/{shown('MainPID')}/status").splitlines())
    assert (status["CapBnd"], status["NoNewPrivs"], status["Seccomp"]) == ("0" * 16, "1", "2")
    assert set(status["Uid"].split()) == {"10001"}
    credentials = json.loads(inside("cat", "/var/lib/frontdesk/demo-credentials.json"))["agent"]
    with calling(url, credentials) as http:
        appointment = book(http)
    # As the guide has it: with root's home, which the account may not look into.
    doctor = f"frontdesk doctor --json --config {SETTINGS} || true"  # it warns of plain HTTP
    told = inside("env", "HOME=/root", "runuser", "-u", "frontdesk", "--", "sh", "-c", doctor)
    states = {check["check"]: check["state"] for check in json.loads(told)["checks"]}
    assert states["database"] == "ok", told
    inside("systemctl", "restart", UNIT)
    wait_until_ready(url)
    with calling(url, credentials) as http:
        assert is_booked(http, appointment)
    inside("systemctl", "stop", UNIT)
    assert (shown("Result"), shown("ExecMainStatus")) == ("success", "0")
    if "postgres" in inside("ls", "/var/lib/frontdesk"):
        assert "recovery" not in inside("cat", "/var/lib/frontdesk/postgres/postgres.log")
