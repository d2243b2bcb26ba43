"""schemathesis reads the published OpenAPI document and attacks the running service with it, over real HTTP."""

import asyncio
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.access.clients import add_client
from frontdesk.operations import OPERATIONS
from frontdesk.practice_file import parse
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from tests.mcp.served import Served, booking_query, serving
from tests.world import PRACTICE, patient_id, slots

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
WRITES = [operation for operation in OPERATIONS if operation.kind == "write"]


@dataclass(frozen=True)
class Run:
    """What schemathesis did: its exit status, what it printed, and how many cases each operation got."""

    status: int
    output: str
    cases: Counter[str]


@pytest.fixture
async def served(database: Database, database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(database, database_dsn, tmp_path) as running:
        yield running


async def token(served: Served, grant: str) -> str:
    """A token whose client no cap stops."""
    record, secret = await add_client(
        served.service.database, served.service.ring, practice="harbor", name=grant, grant=grant, per_minute=1_000_000
    )
    form = {"grant_type": "client_credentials", "client_id": record.client_id, "client_secret": secret}
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{served.url}/oauth/token", data=form)
    found: str = answer.json()["access_token"]
    return found
