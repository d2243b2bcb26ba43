"""schemathesis reads the published OpenAPI document and attacks the running service with it, over real HTTP.

Every check is on. Two practices take part, so that it also tries to read one practice's records as the other.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.access.clients.records import AccessLimits, add_client
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.mcp.served import Served, coming_days, serving
from tests.support.world import PRACTICE, patient_id

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
PEOPLE = ("Ada", "José", "Alan")
APPOINTMENTS = 9


@pytest.fixture
async def served(database: Database, database_dsn: str, owner_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(database, database_dsn, owner_dsn, tmp_path) as running:
        await import_practice(database, parse(PRACTICE.replace("SLUG", "other")), datetime.now(UTC))
        yield running


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_an_integration_finds_the_service_as_its_document_says(served: Served, tmp_path: Path) -> None:
    answers = await attack(served, tmp_path, "integration", "--max-examples", "8", "--seed", "1")
    for operation in OPERATIONS:
        assert reached(operation, answers) >= {401, operation.success}, operation.name


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_an_agent_finds_the_service_as_its_document_says(served: Served, tmp_path: Path) -> None:
    writes = [operation for operation in OPERATIONS if operation.kind == "write"]
    only = [option for operation in writes for option in ("--include-operation-id", operation.operation_id)]
    answers = await attack(served, tmp_path, "agent", "--max-examples", "15", "--seed", "1", *only)
    for operation in writes:
        assert 428 in reached(operation, answers), operation.name


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("grant", ["integration", "agent"])
async def test_a_long_attack_finds_nothing_either(served: Served, tmp_path: Path, grant: str) -> None:
    seed = ["--seed", os.environ["SEED"]] if "SEED" in os.environ else []
    await attack(served, tmp_path, grant, "--max-examples", os.environ.get("ATTACK_EXAMPLES", "80"), *seed)


def reached(operation: Operation, answers: Sequence[str]) -> set[int]:
    """The statuses that the operation answered with."""
    call = f"{operation.method} {operation.path} "
    return {int(answer.removeprefix(call)) for answer in answers if answer.startswith(call)}


async def attack(served: Served, folder: Path, grant: str, *options: str) -> list[str]:
    """Runs schemathesis to its end, which finds nothing; every call that it made, with the status it got."""
    tokens = [await token(served, practice, grant) for practice in ("harbor", "other")]
    await write_ids(served, folder, await token(served, "harbor", "integration"))
    (folder / "identities.json").write_text(json.dumps({"auth": [identity(*pair) for pair in enumerate(tokens)]}))
    shutil.copy(HERE / "schemathesis.toml", folder)
    answers, report = folder / "answers.txt", folder / "report.json"
    process = await asyncio.create_subprocess_exec(
        SCHEMATHESIS, "--no-color", "--config-file", folder / "schemathesis.toml", "run",
        f"{served.url}/openapi/v1.json", "--report-json-path", report, *options,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FRONTDESK_TEST_ANSWERS": str(answers)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    summary = json.loads(report.read_bytes())
    assert summary["complete"], output.decode()
    assert summary["operations"]["tested"] == summary["operations"]["selected"]
    assert summary["failures"] == summary["errors"] == []
    return answers.read_text().splitlines()


def identity(number: int, bearer: str) -> dict[str, Any]:
    return {"name": f"practice{number}", "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {bearer}"}]}


async def token(served: Served, practice: str, grant: str) -> str:
    """A token whose client no cap stops."""
    record, secret = await add_client(
        served.service.database,
        served.service.ring,
        practice=practice,
        name=grant,
        grant=grant,
        scopes=SCOPES,
        per_minute=1_000_000,
        access_limits=AccessLimits(0, 0, 0, writes_per_hour=0, upcoming_per_patient=0),
    )
    form = {"grant_type": "client_credentials", "client_id": record.client_id, "client_secret": secret}
    async with httpx.AsyncClient(timeout=30) as http:
        answer = await http.post(f"{served.url}/oauth/token", data=form)
    found: str = answer.json()["access_token"]
    return found


async def write_ids(served: Served, folder: Path, bearer: str) -> None:
    """Ids that exist, so that an attack gets past not_found: people, open slots, and appointments that stand."""
    async with httpx.AsyncClient(
        base_url=served.url, headers={"Authorization": f"Bearer {bearer}"}, timeout=30
    ) as http:
        people = [await patient_id(http, first) for first in PEOPLE]
        # Not today's: those would begin while they are being booked.
        query: dict[str, Any] = {"visitTypeId": 22, "procedureId": 103, "limit": 50, "from": coming_days()["from"]}
        slots = (await http.get("/api/slots/first-available", params=query)).json()["items"]
        booked = []
        for number in range(APPOINTMENTS):
            body = {"patientId": people[number % len(people)], "slotId": slots.pop(number)["id"]}
            answer = await http.post("/api/appointments", json=body)
            assert answer.status_code == 201, answer.text
            booked.append(answer.json()["appointmentId"])
    for name, ids in (("patients", people), ("slots", [slot["id"] for slot in slots]), ("appointments", booked)):
        (folder / f"{name}.txt").write_text("".join(f'"{each}"\n' for each in ids))
