"""make proof: clients work at two nodes on a replicated database while faults happen; then everything is checked.

python -m tests.proof.proof --minutes 10 --seed 1
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from frontdesk.app import build_service
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.migrate import migrate
from tests.proof.facts import Findings
from tests.proof.nemeses import Nemeses
from tests.proof.nodes import SECRET_KEY, WORKERS, Node, clock_library
from tests.proof.postgres import Pair, small_disk
from tests.proof.run import Proof
from tests.proof.upstream import FhirPractice
from tests.proof.workload import Capped
from tests.support.previous_release import NO_RELEASE, unpack_previous_release
from tests.webhooks.receiver import receiving

NODES = 2
DAYS = 3
WEBHOOK_TIMEOUT = 120.0
PAUSE_BESIDE_OTHERS = 1.0  # seconds


async def prove(
    folder: Path, postgres: Pair, minutes: float, seed: int, *, has_small_disk: bool, beside_others: bool
) -> int:
    """Returns the number of anomalies."""
    await migrate(postgres.owner_dsn)
    database = Database(postgres.service_dsn, pool_size=4)
    await database.open()
    service = build_service(
        Settings(data_dir=folder, base_url="http://proof", secret_key=SECRET_KEY, webhook_allow_private=True), database
    )
    nodes = [Node(folder, f"node{n}", postgres.service_dsn, postgres.owner_dsn) for n in range(NODES)]
    async with receiving() as receiver:
        fhir = FhirPractice()
        proof = Proof(service, postgres.owner_dsn, [node.client for node in nodes], receiver, fhir=fhir)
        proof.webhook_timeout = WEBHOOK_TIMEOUT
        previous = unpack_previous_release(folder / "previous")
        sources = None if previous is None else previous / "src"
        nemeses = Nemeses(nodes, postgres, proof.history, random.Random(seed), fhir, has_small_disk, sources)
        try:
            await proof.set_up(DAYS)
            for actor in proof.actors:
                actor.pause_seconds = PAUSE_BESIDE_OTHERS if beside_others else 0.0
            await database.close()
            for node in nodes:
                node.start()
            await nemeses.heal()
            await proof.begin()
            await proof.work(nemeses.run(minutes * 60))
            await nemeses.heal()
            await nemeses.settle()
            for actor in {each.desk.practice: each for each in proof.actors if not isinstance(each, Capped)}.values():
                await actor.look_back()
            await database.open()
            began = time.monotonic()
            findings = await proof.verdict(reads_may_be_lost=nemeses.lost_memory)
            report(findings, nemeses, proof, time.monotonic() - began, seed)
        finally:
            for node in nodes:
                await node.client.aclose()
                await asyncio.to_thread(node.stop)
            await fhir.door.close()
            await database.close()
    return len(findings.anomalies)


def report(findings: Findings, nemeses: Nemeses, proof: Proof, seconds: float, seed: int) -> None:
    ops = proof.history.ops
    rows = [
        ("seed", seed),
        ("nodes and workers", f"{NODES} with {WORKERS} workers each"),
        ("operations", len(ops)),
        ("  over REST", sum(op.door == "rest" for op in ops)),
        ("  over MCP", sum(op.door == "mcp" for op in ops)),
        ("  over FHIR", sum(op.door == "fhir" for op in ops)),
        ("  kinds", len({op.name for op in ops})),
        ("  of the practice in a FHIR server", sum(op.practice in proof.history.upstream for op in ops)),
        ("  writes executed", sum(effect.body is not None for effect in findings.effects)),
        ("faults", sum(nemeses.faults.values())),
        *((f"  {kind}", count) for kind, count in sorted(nemeses.faults.items())),
        ("answers 502", sum(op.status == 502 for op in ops)),
        ("answers 500", sum(op.status == 500 for op in ops)),
        ("lost answers of writes", findings.lost_answers),
        (
            "writes with a lost answer",
            findings.resolved_by_resend + findings.resolved_by_reads + findings.resolved_by_audit,
        ),
        ("  resolved by a resend", findings.resolved_by_resend),
        ("  resolved by later reads", findings.resolved_by_reads),
        ("  resolved by the audit trail", findings.resolved_by_audit),
        ("webhooks received", len(proof.receiver.received)),
        ("seconds to check", f"{seconds:.1f}"),
        ("anomalies", len(findings.anomalies)),
    ]
    for name, value in rows:
        print(f"{name:36}{value:>24}")
    if clock_library() is None:
        print("The clock was not moved: install libfaketime.")
    if not nemeses.has_small_disk:
        print("The disk was not filled: only root can mount a small one.")
    if nemeses.previous_release is None:
        print(f"The previous release was not run: {NO_RELEASE}.")
    for anomaly in findings.anomalies[:20]:
        print(f"\n{anomaly}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--beside-others", action="store_true", help="leave time of the processors to other suites")
    given = parser.parse_args()
    random.seed(given.seed)
    for variable in [name for name in os.environ if name.startswith("FRONTDESK_")]:
        del os.environ[variable]
    with tempfile.TemporaryDirectory(prefix="frontdesk-proof-", ignore_cleanup_errors=True) as name:
        folder, disk = Path(name), Path(name, "postgres")
        folder.chmod(0o755)
        disk.mkdir(mode=0o755)
        with small_disk(disk) as has_small_disk:
            postgres = Pair(disk)
            try:
                postgres.start()
                options = {"has_small_disk": has_small_disk, "beside_others": given.beside_others}
                anomalies = asyncio.run(prove(folder, postgres, given.minutes, given.seed, **options))
            finally:
                postgres.stop()
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
