"""A real service on a real database, a booking load, and somebody who kills them at random moments."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

COMMAND = str(Path(sys.executable).parent / "frontdesk")
BOOKERS = 6
WAIT_TIMEOUT = 120.0  # seconds, for whatever comes back by itself
_LOST = (httpx.TransportError,)


def practice_file() -> str:
    patients = "\n".join(
        f'  - {{number: {n}, firstName: Person{n}, lastName: Crash, dob: 1980-01-01, phone: "+1 555 030 {n:04}"}}'
        for n in range(1, 121)
    )
    return f"""
practice: {{slug: crash, name: Crash Test Clinic, timeZone: America/New_York}}
locations: [{{id: 1, name: Downtown}}]
providers:
  - id: 10
    name: Dr. One
    hours: [{{location: 1, days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00"}}]
  - id: 11
    name: Dr. Three
    capacity: 3
    hours: [{{location: 1, days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00"}}]
visitTypes:
  - {{id: 20, name: Visit, patientKind: any, procedures: [{{id: 100, name: Visit, durationMinutes: 30}}]}}
patients:
{patients}
"""


@dataclass
class Ledger:
    """What clients were told, and what they still wait to hear."""

    booked: dict[str, dict[str, str]] = field(default_factory=dict)  # appointment id -> the body that was confirmed
    unheard: list[dict[str, str]] = field(default_factory=list)  # confirmed, no answer yet
    answers: int = 0
    odd: list[str] = field(default_factory=list)  # answers that the contract does not allow

    def hear(self, body: dict[str, str], answer: httpx.Response) -> bool:
        """Whether the answer settles the matter."""
        self.answers += 1
        if answer.status_code == 201:
            appointment = answer.json()["appointmentId"]
            if self.booked.setdefault(appointment, body) != body:
                self.odd.append(f"{appointment} was given for two requests")
            return True
        code = answer.json().get("code")
        if code in ("slot_unavailable", "confirmation_required") or answer.status_code == 422:
            return True
        if code not in ("upstream_unavailable", "internal"):
            self.odd.append(f"{answer.status_code} {code}")
        return False


class Clinic:
    """The service under test: started, killed and started again on one data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("FRONTDESK_")},
            **NO_DRAIN,
            "FRONTDESK_DATA_DIR": str(folder / "data"),
            "FRONTDESK_PORT": str(self.port),
            "FRONTDESK_LOG_LEVEL": "error",
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.postgres = EmbeddedPostgres(folder / "data" / "postgres")

    def command(self, *arguments: str) -> Any:
        done = subprocess.run(
            [COMMAND, *arguments, "--json"], env=self.environment, capture_output=True, check=True, timeout=120
        )
        return json.loads(done.stdout)

    def attempt(self, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=120)

    def prepare(self) -> dict[str, str]:
        """The practice and an agent; returns its credentials."""
        path = self.folder / "practice.yaml"
        path.write_text(practice_file())
        self.command("practice", "import", str(path))
        agent: dict[str, str] = self.command(
            "client", "add", "--practice", "crash", "--name", "Booker", "--grant", "agent", "--scope", "all",
            "--per-minute", "1000000", "--quota", "100000000", "--patients-per-hour", "0", "--patients-per-day", "0",
            "--writes-per-hour", "0", "--upcoming-per-patient", "0",
        )  # fmt: skip
        return agent

    def start(self, *options: str) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [COMMAND, "serve", *options], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + WAIT_TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            if self.process.poll() is not None:
                raise AssertionError("the server did not start: " + (self.folder / "server.log").read_text()[-2000:])
            time.sleep(0.05)
        raise AssertionError("the server is not ready: " + (self.folder / "server.log").read_text()[-2000:])

    def kill_server(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT_TIMEOUT)

    def kill_postgres(self) -> None:
        pid_file = self.folder / "data" / "postgres" / "data" / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, IndexError):
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    def stop(self) -> None:
        if self.process is not None:
            stop_group(self.process)


def stop_group(process: subprocess.Popen[Any]) -> None:
    """Ends a process that leads a group, and then what is left of the group."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def get_token(client: httpx.AsyncClient, agent: dict[str, str]) -> None:
    data = {"grant_type": "client_credentials", "client_id": agent["clientId"], "client_secret": agent["clientSecret"]}
    answer = await client.post("/oauth/token", data=data)
    answer.raise_for_status()
    client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"


async def find_patients(client: httpx.AsyncClient) -> list[str]:
    found = []
    for number in range(1, 121):
        person = {"firstName": f"Person{number}", "lastName": "Crash", "dob": "1980-01-01", "phone": f"030 {number:04}"}
        found.append((await client.post("/api/patients/match", json=person)).json()["items"][0]["id"])
    return found


async def book_for_ever(client: httpx.AsyncClient, patients: list[str], ledger: Ledger, chance: random.Random) -> None:
    while True:
        try:
            day = (datetime.now(UTC) + timedelta(days=chance.randint(1, 60))).date().isoformat()
            query = {"providerId": chance.choice((10, 11)), "locationId": 1, "visitTypeId": 20, "procedureId": 100}
            found = await client.get("/api/slots", params={**query, "from": day, "to": day})
            if found.status_code != 200:
                await asyncio.sleep(0.05)
                continue
            slot = chance.choice(found.json()["items"])
            body = {"patientId": chance.choice(patients), "slotId": slot["id"]}
            challenge = await client.post("/api/appointments", json=body)
            if challenge.status_code != 428:
                continue
            body["confirmationToken"] = challenge.json()["confirmationToken"]
        except (*_LOST, IndexError):
            await asyncio.sleep(0.05)
            continue
        ledger.unheard.append(body)
        with contextlib.suppress(*_LOST):
            if ledger.hear(body, await client.post("/api/appointments", json=body)):
                ledger.unheard.remove(body)


async def resend(client: httpx.AsyncClient, ledger: Ledger) -> None:
    """Every unheard request is settled by sending it once more, identically."""
    deadline = time.monotonic() + WAIT_TIMEOUT  # the database may still be coming back
    for body in list(ledger.unheard):
        while time.monotonic() < deadline:
            with contextlib.suppress(*_LOST):
                if ledger.hear(body, await client.post("/api/appointments", json=body)):
                    ledger.unheard.remove(body)
                    break
            await asyncio.sleep(0.2)


async def _until_booked(ledger: Ledger, number: int) -> None:
    """Waits for so many bookings, on a slow machine too; the bookers go on meanwhile."""
    deadline = time.monotonic() + WAIT_TIMEOUT
    while len(ledger.booked) < number and time.monotonic() < deadline:
        await asyncio.sleep(0.05)


async def run_crashes(clinic: Clinic, agent: dict[str, str], kills: int, seed: int) -> Ledger:
    """Books under fire until so many kills have happened; then settles what is open."""
    chance, ledger = random.Random(seed), Ledger()
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=clinic.url, timeout=20, limits=limits) as client:
        await get_token(client, agent)
        patients = await find_patients(client)
        bookers = [asyncio.create_task(book_for_ever(client, patients, ledger, chance)) for _ in range(BOOKERS)]
        await _until_booked(ledger, 1)
        for kill in range(kills):
            await asyncio.sleep(chance.uniform(0.3, 1.2))
            if kill % 2:
                await asyncio.to_thread(clinic.kill_postgres)
            else:
                await asyncio.to_thread(clinic.kill_server)
                await asyncio.to_thread(clinic.start)
        await asyncio.sleep(1.0)
        await _until_booked(ledger, kills)
        for booker in bookers:
            booker.cancel()
        failures = [e for e in await asyncio.gather(*bookers, return_exceptions=True) if isinstance(e, Exception)]
        assert not failures, failures
        await resend(client, ledger)
    return ledger


async def check(clinic: Clinic, ledger: Ledger) -> None:
    clinic.postgres.start()
    try:
        await check_stored(clinic.postgres.dsn(OWNER_ROLE), ledger)
    finally:
        clinic.postgres.stop()


async def check_stored(dsn: str, ledger: Ledger) -> None:
    """What clients were told is what is stored."""
    assert ledger.odd == []
    assert ledger.unheard == []
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "frontdesk, public"})
    try:
        rows = await connection.fetch("SELECT appointment_id, patient_id FROM appointment")
        stored = {row["appointment_id"]: row["patient_id"] for row in rows}
        assert stored == {key: body["patientId"] for key, body in ledger.booked.items()}, "lost or unheard-of bookings"
        clashes = await connection.fetchval(
            """SELECT count(*) FROM appointment a JOIN appointment b ON a.appointment_id < b.appointment_id
               AND a.starts_at < b.busy_until AND b.starts_at < a.busy_until
               AND ((a.provider_id = b.provider_id AND a.lane = b.lane) OR a.patient_id = b.patient_id)"""
        )
        assert clashes == 0
        events = await connection.fetchval("SELECT count(*) FROM outbox WHERE type = 'appointment.booked'")
        executed = await connection.fetchval(
            "SELECT count(*) FROM audit_record WHERE operation = 'book_appointment' AND outcome = 'executed'"
        )
        assert events == executed == len(stored)
    finally:
        await connection.close()
