"""A FHIR client that nobody here wrote, against a service as an operator runs it."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.clients.running_desk import NEXT_WEEK, running_desk
from tests.fhir.medplum import beside_packages

pytestmark = pytest.mark.heavy


def test_a_third_party_client_searches_slots_and_reads_an_appointment(tmp_path: Path) -> None:
    script = beside_packages(Path(__file__).with_name("client.mjs"))
    with running_desk(tmp_path, fhir_server="true") as desk:
        known = desk.integration
        form = {"grant_type": "client_credentials", "client_id": known.client_id, "client_secret": known.client_secret}
        token = httpx.post(f"{desk.url}/oauth/token", data=form, timeout=30).json()["access_token"]
        command = ["node", str(script), f"{desk.url}/", token, NEXT_WEEK.isoformat()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {
        "version": "4.0.1",
        "slot": "free",
        "pages": [10, 10, 10],
        "appointment": "Appointment",
        "patient": "Patient",
        "refused": "validation",
    }
