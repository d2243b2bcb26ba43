"""A run without faults on two nodes in one process, until something is found or so many operations are done.

python -m tests.proof.trial DSN FOLDER OPERATIONS SEED [KIND ...] prints the findings as JSON. With kinds of anomaly, it
goes on until one of them is found.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from frontdesk.app import Service, build_app, build_background, build_service
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.migrate import migrate
from tests.proof.facts import Findings
from tests.proof.recorder import Offset
from tests.proof.run import Proof
from tests.support.shared_database import as_owner
from tests.webhooks.receiver import receiving

_RECEIVER_SECONDS = 0.02
_ROUND = 300  # operations between two checks
_AHEAD = timedelta(seconds=150)  # that the clock goes forward after each of them: holds expire


@contextlib.asynccontextmanager
async def node(
    dsn: str, folder: Path, clock: Callable[[], datetime]
) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    database = Database(dsn, pool_size=8)
    await database.open()
    settings = Settings(
        data_dir=folder,
        base_url="http://proof",
        webhook_allow_private=True,
        database_pool_size=8,
        fhir_server=True,
        token_lifetime_seconds=24 * 3600,  # the clock goes forward by hours until a rare bug has shown
    )
    service = build_service(settings, database, clock)
    await service.ring.load()
    background = build_background(service)
    background.start()
    transport = httpx.ASGITransport(app=build_app(service, background=background), raise_app_exceptions=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://proof", timeout=20) as client:
            yield service, client
    finally:
        await background.stop()
        await database.close()


async def trial(dsn: str, folder: Path, operations: int, seed: int, kinds: Collection[str]) -> Findings:
    random.seed(seed)
    owner_dsn = as_owner(dsn)
    await migrate(owner_dsn)
    ahead = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + ahead

    async with (
        receiving() as receiver,
        node(dsn, folder, clock) as (service, one),
        node(dsn, folder, clock) as (_, other),
    ):
        receiver.delay = _RECEIVER_SECONDS
        proof = Proof(service, owner_dsn, [one, other], receiver)
        await proof.set_up()
        await proof.begin()
        while True:
            await proof.work(proof.until(len(proof.history.ops) + _ROUND))
            findings = await proof.verdict()
            found = [each for each in findings.anomalies if not kinds or str(each).partition(":")[0] in kinds]
            if found or findings.operations >= operations:
                return findings
            ahead += _AHEAD
            proof.history.offsets.append(Offset(time.monotonic_ns(), ahead.total_seconds(), ahead.total_seconds()))


if __name__ == "__main__":
    dsn, folder, operations, seed, *kinds = sys.argv[1:]
    findings = asyncio.run(trial(dsn, Path(folder), int(operations), int(seed), kinds))
    print(json.dumps({"operations": findings.operations, "anomalies": [str(each) for each in findings.anomalies]}))
