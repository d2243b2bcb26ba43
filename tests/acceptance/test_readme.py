"""The README's first screen, pasted: what it shows must work."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import Clinic
from tests.guides.newcomer import needs_curl, start_demo

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    clinic = start_demo(tmp_path_factory.mktemp("newcomer"))
    yield clinic
    clinic.stop()


def _block_after(heading: str) -> str:
    text = (ROOT / "README.md").read_text()
    found = re.search(rf"## {re.escape(heading)}\n.*?```bash\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found.group(1)


def _run(demo: Clinic, script: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=demo.folder,
        env={**os.environ, "FRONTDESK_BASE_URL": demo.url},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_curl
def test_the_booking_with_curl_works_when_pasted(demo: Clinic) -> None:
    script = _block_after("Book an appointment with curl").replace("http://127.0.0.1:8080", demo.url)
    for _ in range(2):  # it can be pasted again
        slot, challenge, booked = _run(demo, script).strip().splitlines()
        assert '"available":true' in slot
        assert '"code":"confirmation_required"' in challenge
        assert re.fullmatch(r'\{"appointmentId":"apt_[0-9A-Za-z]{22}"\}', booked)


def test_the_booking_over_mcp_works_when_pasted(demo: Clinic) -> None:
    script = _block_after("Book an appointment as an MCP client")
    for written, here in (("make setup-dev", "true"), (".venv/bin/python", sys.executable)):
        script = script.replace(written, here)
    script = script.replace("examples/", f"{ROOT}/examples/")
    assert re.search(r"^Booked: apt_[0-9A-Za-z]{22}$", _run(demo, script), re.MULTILINE)
