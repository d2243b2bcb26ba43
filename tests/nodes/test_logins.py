"""A database that an administrator prepared as the guide says: logins with exactly these rights, and a pooler."""

import asyncio
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import frontdesk.doors.docs
from frontdesk.store.embedded.account import wheel_binaries
from tests.crash.harness import Clinic, Ledger, book_for_ever, check_stored, find_patients, get_token, resend
from tests.nodes.clusters import Cluster
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port

GUIDE = Path(frontdesk.doors.docs.__file__).parent / "guides" / "operating.md"
PREPARING, POOLED, BACKUP = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
PGBOUNCER = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/dev/shm") as name:
        Path(name).chmod(0o755)
        built = Cluster(Path(name) / "one")
        try:
            built.create()
            built.start()
            built.script(PREPARING)
            yield built
        finally:
            built.kill()


@pytest.fixture
def clinic(cluster: Cluster, tmp_path: Path) -> Iterator[Clinic]:
    built = Clinic(tmp_path)
    built.environment |= {
        "FRONTDESK_DATABASE_URL": f"postgresql://frontdesk_app@127.0.0.1:{cluster.port}/frontdesk",
        "FRONTDESK_MIGRATION_DATABASE_URL": f"postgresql://frontdesk_owner@127.0.0.1:{cluster.port}/frontdesk",
    }
    yield built
    built.stop()


async def book(clinic: Clinic, dsn: str, bookings: int) -> None:
    agent = clinic.prepare()
    clinic.start("--workers", "2")
    ledger = Ledger()
    async with httpx.AsyncClient(base_url=clinic.url, timeout=30) as client:
        await get_token(client, agent)
        patients = await find_patients(client)
        chance = random.Random(5)
        bookers = [asyncio.create_task(book_for_ever(client, patients, ledger, chance)) for _ in range(6)]
        async with asyncio.timeout(120):
            while len(ledger.booked) < bookings:
                await asyncio.sleep(0.02)
        for booker in bookers:
            booker.cancel()
        await asyncio.gather(*bookers, return_exceptions=True)
        await resend(client, ledger)
    await check_stored(dsn, ledger)


async def test_logins_with_exactly_the_rights_of_the_guide_serve(clinic: Clinic, cluster: Cluster) -> None:
    rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication"
    assert cluster.sql(f"SELECT count(*) FROM pg_roles WHERE rolname ~ '^frontdesk_' AND ({rights})") == "0"
    assert cluster.sql("SELECT has_database_privilege('frontdesk_owner', 'frontdesk', 'CREATE')") == "f"
    await book(clinic, f"{cluster.dsn.removesuffix('/postgres')}/frontdesk", 20)
    done = clinic.attempt("doctor", "--json", environment=clinic.environment)
    assert '"check": "migrations",\n      "state": "ok"' in done.stdout, done.stdout


def test_a_login_that_lacks_rights_is_told_what_an_administrator_has_to_run(clinic: Clinic, cluster: Cluster) -> None:
    cluster.sql("CREATE DATABASE bare")
    owner = clinic.environment["FRONTDESK_MIGRATION_DATABASE_URL"].removesuffix("frontdesk") + "bare"
    environment = {**clinic.environment, "FRONTDESK_MIGRATION_DATABASE_URL": owner}
    done = clinic.attempt("db", "migrate", environment=environment)
    assert (done.returncode, done.stderr) == (
        1,
        "This login may not prepare the database. Let an administrator run: CREATE EXTENSION btree_gist; CREATE SCHEMA "
        "frontdesk AUTHORIZATION frontdesk_owner;\n",
    )


def test_the_login_of_the_guide_for_backups_dumps_every_row(clinic: Clinic, cluster: Cluster) -> None:
    clinic.command("db", "migrate")
    cluster.script(BACKUP)

    def dump(login: str) -> subprocess.CompletedProcess[str]:
        address = f"postgresql://{login}@127.0.0.1:{cluster.port}/frontdesk"
        command = [wheel_binaries() / "pg_dump", "--data-only", "--table=frontdesk.patient", address]
        return subprocess.run(command, capture_output=True, text=True)

    try:
        assert "row-level security" in dump("frontdesk_owner").stderr
        done = dump("frontdesk_backup")
        assert done.returncode == 0, done.stderr
        assert "COPY frontdesk.patient" in done.stdout
    finally:
        cluster.sql("DROP ROLE frontdesk_backup")


@contextmanager
def pgbouncer(cluster: Cluster, **settings: str) -> Iterator[str]:
    """The address of the prepared database through a PgBouncer in transaction mode."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/dev/shm") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "users.txt").write_text('"frontdesk_app" ""\n"superuser" ""\n')
        lines = {
            "listen_addr": "127.0.0.1", "listen_port": str(port), "unix_socket_dir": "", "auth_type": "trust",
            "auth_file": str(folder / "users.txt"), "pool_mode": "transaction", "default_pool_size": "10", **settings,
        }  # fmt: skip
        text = "\n".join(f"{name} = {value}" for name, value in lines.items())
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\nfrontdesk = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\n{text}\n"
        )
        with cluster.running(PGBOUNCER, "-q", str(folder / "pgbouncer.ini")) as process:
            wait_until(lambda: process.poll() is not None or _listens(port))
            yield f"postgresql://frontdesk_app@127.0.0.1:{port}/frontdesk"


def _listens(port: int) -> bool:
    command = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def version() -> tuple[int, ...]:
    if not Path(PGBOUNCER).exists():
        return ()
    output = subprocess.run([PGBOUNCER, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", output)
    assert found is not None, output
    return tuple(map(int, found.groups()))


@pytest.mark.skipif(not version(), reason="there is no pgbouncer")
def test_a_pooler_that_would_lose_the_role_or_the_settings_is_refused(clinic: Clinic, cluster: Cluster) -> None:
    clinic.command("db", "migrate")
    direct = clinic.environment["FRONTDESK_DATABASE_URL"]

    def refusal(pooler: str, **settings: str) -> str:
        done = clinic.attempt("serve", environment={**clinic.environment, "FRONTDESK_DATABASE_URL": pooler, **settings})
        assert done.returncode == 1, done.stdout
        return done.stderr

    dropping = "role,search_path,statement_timeout,lock_timeout,idle_in_transaction_session_timeout,jit,timezone"
    with pgbouncer(cluster) as pooler:
        assert "set FRONTDESK_DIRECT_DATABASE_URL" in refusal(pooler)
        assert "ALTER ROLE frontdesk_app SET role" in refusal(pooler, FRONTDESK_DIRECT_DATABASE_URL=direct)
    with pgbouncer(cluster, ignore_startup_parameters=dropping) as pooler:
        assert "ALTER ROLE frontdesk_app SET role" in refusal(pooler)
    cluster.script("CREATE ROLE superuser SUPERUSER LOGIN;" + POOLED.replace("frontdesk_app", "superuser"))
    with pgbouncer(cluster) as pooler:
        powerful = pooler.replace("frontdesk_app", "superuser")
        assert "too powerful" in refusal(powerful, FRONTDESK_DIRECT_DATABASE_URL=direct)
    if version() < (1, 21):
        cluster.script(POOLED)
        with pgbouncer(cluster) as pooler:
            assert "does not support prepared statements" in refusal(pooler, FRONTDESK_DIRECT_DATABASE_URL=direct)
        cluster.sql("ALTER ROLE frontdesk_app RESET ALL")


@pytest.mark.skipif(version() < (1, 21), reason="needs PgBouncer 1.21; name one with PGBOUNCER")
async def test_the_service_runs_through_a_pooler_in_transaction_mode(clinic: Clinic, cluster: Cluster) -> None:
    clinic.command("db", "migrate")
    cluster.script(POOLED)
    clinic.environment["FRONTDESK_DIRECT_DATABASE_URL"] = clinic.environment["FRONTDESK_DATABASE_URL"]
    with pgbouncer(cluster, max_prepared_statements="200") as pooler:
        clinic.environment["FRONTDESK_DATABASE_URL"] = pooler
        cluster.script("\\connect frontdesk\nTRUNCATE frontdesk.practice CASCADE")
        await book(clinic, f"{cluster.dsn.removesuffix('/postgres')}/frontdesk", 100)
        errors = [line for line in (clinic.folder / "server.log").read_text().splitlines() if '"level":"error"' in line]
        assert errors == []
