"""Appointments that lose what they were booked for when the directory changes."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Closure, Directory, OpeningHours, TimeOff
from frontdesk.domain.stranded import find_stranded, may_strand
from frontdesk.practice_file import parse
from tests.support.world import PRACTICE

BEFORE = parse(PRACTICE.replace("SLUG", "harbor")).directory
START = datetime(2026, 11, 17, 15, 0, tzinfo=UTC)  # a Tuesday at ten in New York
APPOINTMENT = Appointment(
    id="appt_1", patient_id="pat_1", provider_id=10, location_id=1, visit_type_id=21, procedure_id=101,
    status="booked", starts_at=START, ends_at=START + timedelta(minutes=15), created_at=START, updated_at=START,
)  # fmt: skip


def changed(kind: str, key: int, **values: Any) -> Directory:
    records = dict(getattr(BEFORE, kind))
    records[key] = replace(records[key], **values)
    return replace(BEFORE, **{kind: records})


def hours(opens: int, closes: int, *days: int) -> tuple[OpeningHours, ...]:
    return (OpeningHours(1, frozenset(days), opens * 60, closes * 60),)


OFF = TimeOff(datetime.fromisoformat("2026-11-17T10:05"), datetime.fromisoformat("2026-11-17T11:00"))
FOLLOW_UP = BEFORE.visit_types[21]
LOSING = {
    "provider": changed("providers", 10, active=False, hours=()),
    "location": changed("locations", 1, active=False),
    "procedure": changed("providers", 10, procedure_ids=frozenset({100})),
    "hours": changed("providers", 10, hours=hours(11, 17, 1)),
}
CASES = [
    *LOSING.items(),
    ("procedure", changed("visit_types", 21, active=False)),
    ("procedure", changed("visit_types", 21, procedures=tuple(replace(p, active=False) for p in FOLLOW_UP.procedures))),
    ("hours", changed("providers", 10, hours=hours(9, 17, 0, 2, 3, 4))),
    ("hours", changed("providers", 10, time_off=(OFF,))),
    ("hours", changed("locations", 1, closures=(Closure(date(2026, 11, 17), date(2026, 11, 17)),))),
    ("hours", changed("locations", 1, time_zone="Asia/Tokyo")),
]


def at_server(directory: Directory, **settings: Any) -> Directory:
    system = {"kind": "fhir", "baseUrl": "https://ehr.example.com/fhir", "procedures": {"101": CODE}, **settings}
    return replace(directory, practice=replace(directory.practice, scheduling_system=system))


CODE = {"system": "https://ehr.example.com/visits", "code": "FU15"}
AT_SERVER = at_server(BEFORE)


@pytest.mark.parametrize(("loss", "after"), CASES)
def test_an_appointment_tells_what_it_loses(loss: str, after: Directory) -> None:
    (found,) = find_stranded(BEFORE, after, [APPOINTMENT])
    assert (found.appointment_id, found.starts_at, found.loses) == ("appt_1", START, (loss,))
    assert find_stranded(after, after, [APPOINTMENT]) == [], "what was lost before is not lost again"
    assert find_stranded(after, BEFORE, [APPOINTMENT]) == []


def test_appointments_at_a_fhir_server_lose_records_and_the_server_but_no_hours() -> None:
    for expected, after in (
        ((), at_server(BEFORE, baseUrl="https://ehr.example.com/fhir/", procedures={"101": {**CODE, "display": "15"}})),
        ((), at_server(LOSING["hours"])),
        (("provider",), at_server(changed("providers", 10, active=False))),
        (("location",), at_server(changed("providers", 10, hours=(OpeningHours(2, frozenset({1}), 0, 60),)))),
        (("procedure",), at_server(LOSING["procedure"])),
        (("procedure",), at_server(BEFORE, procedures={"101": "HealthcareService/shots"})),
        (("procedure",), at_server(BEFORE, procedures=None)),
        (("scheduling system",), at_server(BEFORE, baseUrl="https://other.example.com/fhir")),
        (("scheduling system",), BEFORE),
    ):
        assert [each.loses for each in find_stranded(AT_SERVER, after, [APPOINTMENT])] == (
            [expected] if expected else []
        )
        assert may_strand(AT_SERVER, after) == bool(expected)
    (lost,) = find_stranded(BEFORE, AT_SERVER, [APPOINTMENT])
    assert lost.loses == ("scheduling system",)


def test_changes_that_leave_an_appointment_alone_strand_nobody() -> None:
    for after in (
        BEFORE,
        changed("providers", 12, active=False),
        changed("providers", 10, name="Dr. Bob Chen", hours=hours(10, 11, 1)),
        changed("visit_types", 21, procedures=tuple(replace(p, duration_minutes=60) for p in FOLLOW_UP.procedures)),
    ):
        assert find_stranded(BEFORE, after, [APPOINTMENT]) == []


def test_an_appointment_past_midnight_is_open_while_both_days_are() -> None:
    night = changed("providers", 10, hours=hours(20, 24, 1) + hours(0, 2, 2))
    late = replace(
        APPOINTMENT,
        starts_at=datetime(2026, 11, 18, 4, 50, tzinfo=UTC),
        ends_at=datetime(2026, 11, 18, 5, 10, tzinfo=UTC),
    )
    assert find_stranded(night, night, [late]) == []
    (found,) = find_stranded(night, changed("providers", 10, hours=hours(20, 24, 1)), [late])
    assert found.loses == ("hours",)
