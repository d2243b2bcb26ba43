"""A service as it was deployed, and the booking that shows that it works."""

import contextlib
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.crash.harness import stop_group

WAIT_TIMEOUT = 120.0


def wait_until_ready(
    url: str, *, trust: ssl.SSLContext | bool = True, process: subprocess.Popen[bytes] | None = None
) -> None:
    deadline = time.monotonic() + WAIT_TIMEOUT
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/readyz", timeout=5, verify=trust).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"{url} is not ready")


@contextlib.contextmanager
def running(
    command: list[str], *, folder: Path, variables: Mapping[str, str], url: str, trust: ssl.SSLContext | bool = True
) -> Iterator[None]:
    """A server that answers at the URL runs in the folder during the block."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(variables), stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until_ready(url, trust=trust, process=process)
        yield
    except AssertionError as error:
        error.add_note(log.read_text()[-3000:])
        raise
    finally:
        stop_group(process)


@contextlib.contextmanager
def calling(url: str, client: dict[str, str], *, trust: ssl.SSLContext | bool = True) -> Iterator[httpx.Client]:
    """A client of the API, with a token."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client["clientId"],
        "client_secret": client["clientSecret"],
    }
    with httpx.Client(base_url=url, timeout=30, verify=trust) as http:
        token = http.post("/oauth/token", data=form)
        assert token.status_code == 200, token.text
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        yield http


def book(http: httpx.Client) -> str:
    """Books the first open time from tomorrow on for a patient of the demo practice, as an agent does."""
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "555 010 0199"}
    patient = http.post("/api/patients/match", json=person).json()["items"][0]["id"]
    provider = http.get("/api/providers", params={"name": "bob chen"}).json()["items"][0]["id"]
    visit = http.get("/api/visit-types", params={"name": "follow-up"}).json()["items"][0]["id"]
    procedure = http.get(f"/api/visit-types/{visit}/procedures").json()["items"][0]["id"]
    query: dict[str, Any] = {"visitTypeId": visit, "procedureId": procedure, "providerId": provider}
    tomorrow = str((datetime.now(UTC) + timedelta(days=1)).date())  # today's next slot could begin before it is booked
    slots = http.get("/api/slots/first-available", params={**query, "from": tomorrow}).json()["items"]
    for slot in slots:  # the patient may have another appointment then
        body = {"patientId": patient, "slotId": slot["id"]}
        challenge = http.post("/api/appointments", json=body)
        if challenge.status_code == 428:
            break
    body["confirmationToken"] = challenge.json()["confirmationToken"]
    booked = http.post("/api/appointments", json=body)
    assert booked.status_code == 201, booked.text
    return str(booked.json()["appointmentId"])


def is_booked(http: httpx.Client, appointment: str) -> bool:
    found = http.get(f"/api/appointments/{appointment}")
    return found.status_code == 200 and found.json()["status"] in ("booked", "confirmed", "scheduled")
