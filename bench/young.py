"""A young installation: bookings right after a fresh import, against those on analyzed tables and new connections."""

from pathlib import Path

from measuring import Generators, Progress, Row, Sizes, median
from practices import always_open, people
from service import running
from writes import SLOTS, Booker


def bookings(folder: Path, sizes: Sizes, generators: Generators, progress: Progress) -> list[Row]:
    seconds, rounds = float(sizes.pgbench_seconds), max(2, sizes.rounds // 5)
    with running(folder) as service:
        practice = service.import_practice(always_open("young", SLOTS.providers) | {"patients": people(SLOTS.patients)})
        # The ids of an import are random, and the bookings of a run name theirs beforehand.
        service.execute("UPDATE patient SET patient_id = 'pat_' || lpad(number::text, 22, '0')")
        booker = Booker(service, "young", SLOTS, generators, practice=practice)

        def cost(when: str) -> list[float]:
            found = []
            for number in range(rounds):
                progress.at(f"{when}, round {number + 1} of {rounds}")
                found.append(2 * sum(booker.run(seconds).costs.values()))
            return found

        young = cost("young")
        service.settle()
        service.restart()
        old = cost("old")
    return [
        Row(
            "young",
            "two-phase booking right after a fresh import: CPU against that on analyzed tables",
            median(young) / median(old),
            low=min(young) / max(old),
            high=max(young) / min(old),
            figures=f"{median(young):,.0f} of {median(old):,.0f} µs of service and database",
            details={"young": young, "old": old},
        )
    ]
