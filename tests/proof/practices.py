"""The practices of the proof: the same ids and other names, so that an answer of the wrong practice shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from tests.proof.recorder import Person

CELL_MINUTES = 15  # all times of these practices lie on this grid
DAY_CELLS = 24 * 60 // CELL_MINUTES
OPENS, CLOSES = 9 * 4, 17 * 4  # cells of a day
CAPACITY: Mapping[int, int] = {10: 1, 11: 2, 12: 3}  # by provider


@dataclass(frozen=True, slots=True)
class Procedure:
    cells: int  # that the patient is there
    busy: int  # that the provider is busy


PROCEDURES: Mapping[int, Procedure] = {100: Procedure(2, 3), 101: Procedure(1, 1)}
VISIT_TYPE = 20
NATIVE = ("north", "south")
UPSTREAM = "west"  # its calendar and its patients are in a FHIR server
SLUGS = (*NATIVE, UPSTREAM)


@cache
def cell_of(text: str) -> int:
    """The cell, since 1970, of a time that the service told."""
    return int(datetime.fromisoformat(text).timestamp()) // (CELL_MINUTES * 60)


def time_of(cell: int) -> str:
    return datetime.fromtimestamp(cell * CELL_MINUTES * 60, tz=UTC).isoformat()


def date_of(cell: int) -> str:
    return datetime.fromtimestamp(cell * CELL_MINUTES * 60, tz=UTC).date().isoformat()


def persons(slug: str) -> list[Person]:
    """The patients on file."""
    at = SLUGS.index(slug)
    return [Person(f"Person{n}", f"{slug} {n}", "1980-01-01", f"555{at}00{n:04}") for n in range(1, 16)]


def practice_file(slug: str, scheduling_system: str | None = None) -> str:
    """`scheduling_system`: where its calendar and patients are instead, as JSON."""
    providers = "\n".join(
        f'  - {{id: {number}, name: "Dr. {slug} {number}", capacity: {capacity}, hours: [{{location: 1, '
        f'days: [mon, tue, wed, thu, fri, sat, sun], from: "09:00", to: "17:00"}}]}}'
        for number, capacity in CAPACITY.items()
    )
    patients = "patients:\n" + "\n".join(
        f'  - {{number: {n}, firstName: {p.first}, lastName: "{p.last}", dob: {p.dob}, phone: "{p.phone}"}}'
        for n, p in enumerate(persons(slug), 1)
    )
    # Holds of a minute, so that they expire during a run.
    system = (
        ", features: {holds: {minutes: 1}}" if scheduling_system is None else f", schedulingSystem: {scheduling_system}"
    )
    return f"""
practice: {{slug: {slug}, name: Clinic {slug}, timeZone: UTC{system}}}
locations: [{{id: 1, name: House {slug}}}]
providers:
{providers}
visitTypes:
  - id: {VISIT_TYPE}
    name: Visit {slug}
    patientKind: any
    procedures:
      - {{id: 100, name: Exam, durationMinutes: 30, bufferAfterMinutes: 15}}
      - {{id: 101, name: Shot, durationMinutes: 15}}
{patients if scheduling_system is None else ""}
"""
