"""Measures everything that frontdesk promises about speed, in one run, against floors taken in the same run.

    make bench          everything, in about 45 minutes; writes bench/results/latest.json, and from it
                        docs/performance.md and its curves
    make bench-quick    smaller and shorter, in a few minutes; writes bench/results/quick.json only

Needs Linux, and nothing but the development environment: the service, PostgreSQL and the load generator are started in
a temporary folder and stopped again. The case "upstream" needs a FHIR server, and is left out without one.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import busy
import calendar_page
import day
import growth
import large_practice
import neighbours
import reads
import report
import resources
import upstream
import webhooks
import wide
import workers
import writes
import young
from measuring import FULL, QUICK, Generators, Progress, Row, Sizes
from service import Service, busy_seconds, running

CASES = (
    "reads",
    "busy",
    "first-available",
    "neighbours",
    "workers",
    "bookings",
    "contention",
    "calendar",
    "soak",
    "start-up",
    "young",
    "day",
    "webhooks",
    "upstream",
    "large-practice",
    "growth",
)


class Run:
    """The cases in their order, on one service where they can share it."""

    def __init__(self, sizes: Sizes, only: Sequence[str], folder: Path, generators: Generators) -> None:
        self._sizes, self._only, self._folder, self._generators = sizes, only, folder, generators
        self._progress = Progress(len(only), sizes.max_seconds)
        self.rows: list[Row] = []
        self.points: list[growth.Point] = []
        self.database = ""
        self.database_cpu = 0.0

    def everything(self) -> None:
        home = self._folder / "main"
        with running(home) as service:
            self.database = "PostgreSQL " + service.query("SHOW server_version")[0][0]
            self._on(service)
            self.database_cpu += service.database_cpu_seconds()
        self._case("start-up", lambda *rest: [resources.start_up(home, *rest)], self._sizes, self._progress)
        self._case("young", young.bookings, self._folder / "young", self._sizes, self._generators, self._progress)
        self._case("day", day.mixed_day, self._folder / "day", self._sizes, self._generators, self._progress)
        self._case("webhooks", webhooks.backlog, self._folder / "webhooks", self._sizes, self._progress)
        self._case("upstream", upstream.bookings, self._folder / "upstream", self._sizes, self._progress)
        large = self._folder / "large-practice"
        self._case("large-practice", large_practice.beside_small, large, self._sizes, self._generators, self._progress)
        if "growth" in self._only:
            self._progress.begin("growth")
            rows, self.points, cpu = growth.grow(self._folder, self._sizes, self._generators, self._progress)
            self.rows += rows
            self.database_cpu += cpu
        self._progress.end()

    def _on(self, service: Service) -> None:
        common = (self._sizes, self._generators, self._progress)
        requests = reads.prepare(service)
        booker = writes.Booker(service, "bookings", writes.SLOTS, self._generators)
        self._case("reads", reads.throughput, service, requests, self._folder, *common)
        self._case("busy", busy.busy_day, service, self._folder, *common)
        self._case("first-available", wide.first_available, service, requests, *common)
        self._case("neighbours", neighbours.noisy_neighbour, service, requests, *common)
        self._case("workers", workers.two_workers, service, requests, *common)
        self._case("bookings", writes.bookings, service, requests, booker, self._folder, *common)
        self._case("contention", writes.contention, service, booker, *common)
        self._case("calendar", calendar_page.full_day, service, self._sizes, self._progress)
        self._case("soak", resources.soak, service, requests, booker, *common)

    def _case(self, name: str, measure: Callable[..., list[Row]], *arguments: Any) -> None:
        if name in self._only:
            self._progress.begin(name)
            self.rows += measure(*arguments)


def _machine(run: Run, name: str, seconds: float, busy: float) -> dict[str, Any]:
    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time() + run.database_cpu + ended.ru_utime + ended.ru_stime
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "database": run.database,
        "run": name,
        "minutes": seconds / 60,
        "others": max(0.0, busy - own) / seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller and shorter")
    parser.add_argument("--soak", type=int, metavar="SECONDS", help="of load for the memory of a worker")
    parser.add_argument("--only", action="append", choices=CASES, help="this case only; may be given several times")
    parser.add_argument("--practices", type=int, help="the largest database, in practices of 1,000 appointments")
    parser.add_argument(
        "--report", action="store_true", help="measure nothing: print latest.json, and write the documents from it"
    )
    options = parser.parse_args()
    if options.report:
        found = json.loads((report.RESULTS / "latest.json").read_text())
        print(report.table(found))
        report.write_documents(found)
        return 0
    sizes = QUICK if options.quick else FULL
    if options.soak:
        sizes = replace(sizes, soak_seconds=options.soak)
    if options.practices:
        smaller = tuple(practices for practices in FULL.growth if practices < options.practices)
        sizes = replace(sizes, growth=(*smaller, options.practices))
    only = options.only or CASES
    whole = not (options.quick or options.only or options.practices or options.soak)
    name = "full" if whole else "quick" if options.quick and not options.only else "partial"
    began, busy = time.monotonic(), busy_seconds()
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder, Generators() as generators:
        run = Run(sizes, only, Path(folder), generators)
        try:
            run.everything()
        except BaseException:
            whole, name = False, "partial"  # what was measured before is kept
            raise
        finally:
            machine = _machine(run, name, time.monotonic() - began, busy_seconds() - busy)
            found = report.document(machine, run.rows, run.points)
            path = report.write_json(found, "latest" if whole else name)
            print(report.table(found))
            print(f"Written to {path.relative_to(report.ROOT)}.")
    if whole:
        report.write_documents(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
