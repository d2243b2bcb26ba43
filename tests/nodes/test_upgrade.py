"""Two nodes are upgraded one after the other under load, on one database: no request fails and nothing is lost."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from frontdesk import __version__
from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.server import OWNER_ROLE
from tests.crash.harness import Clinic, check_stored
from tests.nodes.load import booking_load
from tests.nodes.proxy import DRAIN_SECONDS, Proxy
from tests.support.previous_release import ROOT, build_wheel, unpack_previous_release

NEXT = "99.0.0"
EXPAND = "ALTER TABLE appointment ADD COLUMN added text NOT NULL DEFAULT '';\nCREATE TABLE leftover (id integer);\n"
CONTRACT = f"-- phase: after {NEXT}\nDROP TABLE leftover;\n"


@dataclass
class Releases:
    previous: Path
    next: Path


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    """The last release's wheel, unpacked (before the first one: this tree's), and this tree as the next release."""
    tree = unpack_previous_release(tmp_path / "tree") or ROOT
    previous = tmp_path / "previous"
    shutil.unpack_archive(build_wheel(tree, tmp_path / "packages"), previous, "zip")
    shutil.copytree(ROOT / "src", tmp_path / "next" / "src")
    package = tmp_path / "next" / "src" / "frontdesk"
    version = package / "__init__.py"
    version.write_text(version.read_text().replace(__version__, NEXT))
    (package / "store" / "migrations" / "9001_expand.sql").write_text(EXPAND)
    (package / "store" / "migrations" / "9002_contract.sql").write_text(CONTRACT)
    for folder in (tmp_path, tmp_path.parent):  # not /tmp, which others write to
        folder.chmod(0o755)
    return Releases(previous, tmp_path / "next" / "src")


@pytest.fixture
def nodes(tmp_path: Path, releases: Releases) -> Iterator[list[Clinic]]:
    """Two servers of the last release, on a database that the test keeps up."""
    built = [Clinic(tmp_path), Clinic(tmp_path)]
    postgres = built[0].postgres
    (tmp_path / "data").mkdir(mode=0o700)
    postgres.start()
    for node in built:
        node.environment |= {
            "FRONTDESK_DRAIN_SECONDS": DRAIN_SECONDS,
            "FRONTDESK_BASE_URL": "http://desk.example.org",
            "FRONTDESK_DATABASE_URL": postgres.dsn(SERVICE_ROLE),
            "FRONTDESK_MIGRATION_DATABASE_URL": postgres.dsn(OWNER_ROLE),
            "PYTHONPATH": str(releases.previous),
        }
    yield built
    for node in built:
        node.stop()
    postgres.stop()


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_a_rolling_upgrade_fails_no_request(nodes: list[Clinic], releases: Releases) -> None:
    first, second = nodes
    agent = first.prepare()

    async def restart(node: Clinic, source: Path) -> None:
        await asyncio.to_thread(node.stop)
        node.environment["PYTHONPATH"] = str(source)
        await asyncio.to_thread(node.start)
        await proxy.until_ready(node.port)

    for node in nodes:
        node.start()
    async with Proxy(first.port, second.port).running() as proxy:
        for node in nodes:
            await proxy.until_ready(node.port)
        async with booking_load(f"http://127.0.0.1:{proxy.port}", agent) as load:
            await restart(first, releases.next)
            assert httpx.get(f"{second.url}/readyz", timeout=30).json() == {"status": "ready"}, (
                "the schema is ahead, but fits"
            )
            await restart(second, releases.previous)
            before = len(load.ledger.booked)
            await restart(second, releases.next)
            assert len(load.ledger.booked) > before
            assert (await asyncio.to_thread(second.command, "db", "status"))["deferred"] == 1
            migrated = await asyncio.to_thread(second.command, "db", "migrate", "--phase", "after")
            assert migrated["applied"] == [{"feature": None, "number": 9002, "name": "contract"}]
        print(f"{load.requests} requests, {len(load.ledger.booked)} bookings")
        assert load.failed == []
        assert proxy.failed == []
    await check_stored(first.postgres.dsn(OWNER_ROLE), load.ledger)
    older = {**first.environment, "PYTHONPATH": str(releases.previous)}
    refused = first.attempt("db", "migrate", "--phase", "before", environment=older)
    assert (refused.returncode, "newer version" in refused.stderr) == (1, True)
