"""The image: built without a registry on a base of Debian packages, and run as the guide says."""

import json

import pytest

from tests.deploy.containers import Engine
from tests.deploy.service import book, calling, is_booked, wait_until_ready
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port

pytestmark = pytest.mark.heavy
CONTAINER = "frontdesk-test"
LOCKED_DOWN = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", "no-new-privileges")


def is_healthy(engine: Engine) -> bool:
    """By the check of the image, which gives up after a few seconds."""
    try:
        engine.podman("healthcheck", "run", CONTAINER)
    except AssertionError:
        return False
    return True


def test_a_container_keeps_its_bookings(engine: Engine, image: str) -> None:
    shell = ("--rm", *LOCKED_DOWN, "--entrypoint=sh", image, "-c")
    assert engine.run(*shell, "id -u; touch /x 2>/dev/null || echo read-only").split() == ["10001", "read-only"]
    tools = "for tool in gcc make pip hatchling; do command -v $tool; done; ls /opt/frontdesk/bin | grep -c pip; true"
    assert engine.run(*shell, tools).strip() == "0"

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = (f"--env=FRONTDESK_PORT={port}", "--env=FRONTDESK_HOST=127.0.0.1")
    volume = f"--volume={CONTAINER}:/var/lib/frontdesk"
    service = (*LOCKED_DOWN, volume, *settings, image, "serve", "--demo")
    with engine.running(CONTAINER, *service):
        wait_until_ready(url)
        wait_until(lambda: is_healthy(engine), 120)
        credentials = json.loads(engine.podman("exec", CONTAINER, "cat", "demo-credentials.json"))["agent"]
        with calling(url, credentials) as http:
            appointment = book(http)
        engine.podman("stop", "--time", "60", CONTAINER)
        assert engine.podman("inspect", "--format={{.State.ExitCode}}", CONTAINER).strip() == "0"

        engine.podman("start", CONTAINER)
        wait_until_ready(url)
        with calling(url, credentials) as http:
            assert is_booked(http, appointment)
        engine.podman("stop", "--time", "60", CONTAINER)
        log = engine.podman("logs", CONTAINER)
        assert "recovery" not in log
