"""Schedules and slots, without a server: what is open, for what, and where."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.systems.fhir.resources.appointments import PracticeMap
from frontdesk.systems.fhir.resources.slots import Slot, calendars, fits, open_runs, slot
from frontdesk.systems.fhir.settings import Coding
from tests.fhir.practice import VISITS
from tests.support.properties import examples

Resource = dict[str, Any]


def at(
    start: int, end: int, schedule: str = "Schedule/1", *, free: bool = True, codes: frozenset[str] = frozenset()
) -> Slot:
    return Slot(f"Slot/{schedule[-1]}-{start}-{end}", schedule, start, end, free, codes, {})


def starts(slots: list[Slot], duration: int, held: frozenset[str] = frozenset()) -> list[int]:
    return sorted(start for _, start in open_runs(slots, [Coding("s", "c")], duration, held))


def test_a_run_covers_the_procedure_without_a_gap() -> None:
    slots = [at(0, 15), at(15, 30), at(45, 60), at(60, 75), at(75, 90)]
    assert starts(slots, 15) == [0, 15, 45, 60, 75]
    assert starts(slots, 30) == [0, 45, 60]
    assert starts(slots, 45) == [45]
    assert starts([at(0, 60)], 45) == [0]


def test_a_run_stays_on_one_schedule_and_on_free_slots() -> None:
    assert starts([at(0, 15), at(15, 30, "Schedule/2")], 30) == []
    busy = at(15, 30, free=False)
    assert starts([at(0, 15), busy], 30) == []
    assert starts([at(0, 15), busy], 30, frozenset({busy.reference})) == [0]


def test_a_slot_for_other_services_does_not_count() -> None:
    assert starts([at(0, 15, codes=frozenset({"s|other"}))], 15) == []
    assert starts([at(0, 15, codes=frozenset({"s|other", "s|c"}))], 15) == [0]


def test_a_slot_that_somebody_holds_is_not_free() -> None:
    resource: Resource = {
        "resourceType": "Slot",
        "id": "1",
        "schedule": {"reference": "Schedule/1"},
        "status": "free",
        "start": "2026-11-16T14:00:00Z",
        "end": "2026-11-16T14:15:00Z",
    }
    free = slot(resource)
    assert free is not None
    assert free.free
    held = slot({**resource, "identifier": [{"system": "urn:frontdesk:claim", "value": "x"}]})
    assert held is not None
    assert not held.free
    assert slot({**resource, "start": "2026-11-16T14:00:30Z"}) is None
    assert slot({**resource, "end": resource["start"]}) is None


@examples()
@given(st.sets(st.integers(0, 40), max_size=30), st.integers(1, 5))
def test_what_is_open_is_exactly_what_is_covered(quarters: set[int], length: int) -> None:
    slots = [at(15 * quarter, 15 * quarter + 15) for quarter in quarters]
    expected = [15 * q for q in sorted(quarters) if all(q + more in quarters for more in range(length))]
    assert starts(slots, 15 * length) == expected
    assert starts(slots, 15 * length - 7) == expected


def test_schedules_belong_to_a_provider_at_a_location(practice: PracticeMap) -> None:
    role = {
        "resourceType": "PractitionerRole",
        "id": "r",
        "practitioner": {"reference": "Practitioner/nunez"},
        "location": [{"reference": "Location/westside"}],
    }

    def of(number: int, *actors: str, **members: Any) -> Resource:
        return {
            "resourceType": "Schedule",
            "id": str(number),
            "actor": [{"reference": each} for each in actors],
            **members,
        }

    found = [
        of(1, "Practitioner/chen"),
        of(2, "Practitioner/nunez"),  # who works at two: nobody knows where this is
        of(3, "Practitioner/nunez", "Location/downtown", "HealthcareService/shots"),
        of(4, "PractitionerRole/r"),
        of(5, "Practitioner/chen", "Location/unknown"),
        of(6, "Practitioner/stranger", "Location/downtown"),
        of(7, "Practitioner/chen", "Location/downtown", active=False),
        of(8, "Practitioner/chen", serviceType=[{"coding": [{"system": VISITS, "code": "NEW"}]}]),
    ]
    known = calendars(found, [role], practice).offered
    assert [(each.reference, each.provider_id, each.location_id) for each in known] == [
        ("Schedule/1", 10, 1),
        ("Schedule/8", 10, 1),
        ("Schedule/3", 11, 1),
        ("Schedule/4", 11, 2),
    ]
    shots, new = practice.services(22, 103), practice.services(20, 100)
    assert [each.reference for each in known if fits(each, shots)] == ["Schedule/1", "Schedule/3", "Schedule/4"]
    assert [each.reference for each in known if fits(each, new)] == ["Schedule/1", "Schedule/8", "Schedule/4"]
