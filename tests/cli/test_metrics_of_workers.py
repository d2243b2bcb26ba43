"""/metrics of a server with several workers: the one that answers a scrape reports what all of them counted."""

import mmap
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import httpx
import pytest

from tests.cli.command_line import CommandLine, Served
from tests.cli.test_serve import children
from tests.store.embedded_processes import wait_until
from tests.support.ports import free_port

TOKEN = "a token for the scraper"
INCOMPLETE = "metrics are incomplete, their folder cannot be written to: No space left on device"


def call_without_token(served: Served) -> int:
    return httpx.get(f"{served.url}/api/practice", timeout=30).status_code


def scrape(served: Served) -> dict[str, float]:
    """On a connection of its own, which any worker may get."""
    answer = httpx.get(f"{served.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def total(series: dict[str, float], start: str) -> float:
    return sum(value for name, value in series.items() if name.startswith(start))


@pytest.mark.heavy
def test_totals_cover_all_workers_and_survive_one_that_was_killed(line: CommandLine) -> None:
    refused, pools = 'frontdesk_requests_total{code="401"', "frontdesk_database_connections{"
    with line.serving("--workers", "2", FRONTDESK_METRICS_TOKEN=TOKEN) as served:
        (folder,) = (line.data_dir / "metrics").iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        for _ in range(12):
            assert call_without_token(served) == 401
        wait_until(lambda: all(total(scrape(served), refused) == 12 for _ in range(4)), 30)
        wait_until(lambda: total(scrape(served), pools) == 2 * 16, 60)  # the second worker may still be starting
        series = scrape(served)
        assert total(series, "frontdesk_request_seconds_count{") == total(series, "frontdesk_requests_total{")
        assert not any("pid=" in name for name in series)

        first, second = children(served.process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: first not in children(served.process.pid), 30)
        wait_until(lambda: len(children(served.process.pid)) == 2 and total(scrape(served), pools) == 2 * 16, 60)
        assert second in children(served.process.pid)
        assert total(scrape(served), refused) == 12


@pytest.mark.heavy
def test_a_new_server_counts_from_zero(line: CommandLine) -> None:
    port, refused = str(free_port()), 'frontdesk_requests_total{code="401"'
    for _ in range(2):
        with line.serving("--workers", "2", FRONTDESK_METRICS_TOKEN=TOKEN, FRONTDESK_PORT=port) as served:
            call_without_token(served)
            wait_until(lambda: all(total(scrape(served), refused) == 1 for _ in range(4)), 30)


@pytest.fixture
def full_disk(line: CommandLine) -> Iterator[Path]:
    """The folder of the metrics has no room, until the file in it is removed."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = line.data_dir / "metrics"
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        folder.chmod(0o755)
        with suppress(OSError), (folder / "filling").open("wb", buffering=0) as file:
            while file.write(bytes(mmap.PAGESIZE)):
                pass
        yield folder / "filling"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_keeps_metrics_in_the_workers_and_ends_none(line: CommandLine, full_disk: Path) -> None:
    refused = 'frontdesk_requests_total{code="401"'
    with line.serving("--workers", "2", FRONTDESK_METRICS_TOKEN=TOKEN) as served:
        workers = children(served.process.pid)
        for _ in range(3):
            assert call_without_token(served) == 401
        assert served.process.stderr is not None
        reports = (text for text in served.process.stderr if INCOMPLETE in text)
        assert len(list(islice(reports, 2))) == 2, "one of each worker"
        assert total(scrape(served), "frontdesk_workers{") == 1
        full_disk.unlink()
        assert call_without_token(served) == 401
        wait_until(lambda: all(total(scrape(served), refused) == 4 for _ in range(4)), 30)
        assert children(served.process.pid) == workers
        assert INCOMPLETE not in served.stop(signal.SIGTERM).err


def test_a_folder_that_cannot_be_used_is_one_sentence(line: CommandLine) -> None:
    port = str(free_port())
    in_the_way = line.data_dir / "metrics" / f"127.0.0.1-{port}"
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("")
    refused = line.run("serve", "--workers", "2", FRONTDESK_METRICS_TOKEN=TOKEN, FRONTDESK_PORT=port)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == f"The folder {in_the_way} for metrics cannot be used: Not a directory.\n"
