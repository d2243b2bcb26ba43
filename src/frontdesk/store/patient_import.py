"""Adds many patients at once: compared with those on file as create_patient does, all of them or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from frontdesk.domain.names import digits
from frontdesk.domain.patients import name_key, same_phone, spelling_key
from frontdesk.practice_file import PatientRecord
from frontdesk.store.connection import Connection
from frontdesk.store.practices import save_patients

UNNUMBERED = 0  # the number of a patient that gets the next free one

_LOCK = """
INSERT INTO patient_counter (practice_id, last_number) VALUES ($1, 0)
ON CONFLICT (practice_id) DO UPDATE SET last_number = patient_counter.last_number RETURNING last_number
"""
_MATCH = """
SELECT given.place, found.patient_id, found.first_name, found.last_name
FROM unnest($2::text[], $3::date[], $4::text[]) WITH ORDINALITY AS given (name_key, dob, phone_digits, place)
CROSS JOIN LATERAL match_patients($1, given.name_key, given.dob, given.phone_digits, false) AS found
"""
_NUMBERS = "SELECT number, patient_id FROM patient WHERE practice_id = $1 AND number = ANY ($2::integer[])"
_MATCH_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """Patients compared with those on file; places are indexes of the given ones."""

    on_file: Mapping[int, str]  # the id of the patient that is the same person
    repeated: Mapping[int, int]  # the earlier place of the same person
    taken_numbers: Sequence[int]  # places whose number another patient has
    last_number: int

    def new(self, patients: Sequence[PatientRecord]) -> list[PatientRecord]:
        """The patients to add, each with a number."""
        known = self.on_file.keys() | self.repeated.keys()
        added = [patient for place, patient in enumerate(patients) if place not in known]
        free = count(max([self.last_number, *(patient.number for patient in added)]) + 1)
        return [replace(each, number=next(free)) if each.number == UNNUMBERED else each for each in added]


async def compare_patients(connection: Connection, practice_id: int, patients: Sequence[PatientRecord]) -> Comparison:
    """Holds off other new patients until the transaction ends."""
    last_number: int = await connection.fetchval(_LOCK, practice_id)
    on_file: dict[int, str] = {}
    for start in range(0, len(patients), _MATCH_BATCH):
        part = patients[start : start + _MATCH_BATCH]
        rows = await connection.fetch(
            _MATCH,
            practice_id,
            [name_key(each.first_name, each.last_name) for each in part],
            [each.dob for each in part],
            [digits(each.phone) for each in part],
        )
        for row in rows:
            place = start + row["place"] - 1
            given = patients[place]
            if spelling_key(row["first_name"], row["last_name"]) == spelling_key(given.first_name, given.last_name):
                on_file.setdefault(place, row["patient_id"])
    numbers = await connection.fetch(_NUMBERS, practice_id, [each.number for each in patients])
    owners = {row["number"]: row["patient_id"] for row in numbers}
    taken = [
        place
        for place, each in enumerate(patients)
        if each.number in owners and owners[each.number] != on_file.get(place)
    ]
    return Comparison(on_file, _repeated(patients), taken, last_number)


def _repeated(patients: Sequence[PatientRecord]) -> dict[int, int]:
    """The same comparison among the given patients."""
    seen: dict[tuple[object, ...], list[int]] = {}
    found = {}
    for place, each in enumerate(patients):
        namesakes = seen.setdefault((spelling_key(each.first_name, each.last_name), each.dob), [])
        same = (other for other in namesakes if same_phone(each.phone, patients[other].phone))
        if (first := next(same, None)) is not None:
            found[place] = first
        namesakes.append(place)
    return found


async def add_patients(
    connection: Connection, practice_id: int, patients: Sequence[PatientRecord], now: datetime
) -> list[str]:
    """Their ids."""
    await save_patients(connection, practice_id, patients, now)
    rows = await connection.fetch(_NUMBERS, practice_id, [each.number for each in patients])
    return [row["patient_id"] for row in rows]
