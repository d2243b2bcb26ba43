"""The demo practice lies around whatever day it is made for, and its calendar keeps the practice's own rules."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from frontdesk.demo import DemoBooking, demo_bookings, demo_practice
from frontdesk.domain.directory import OpeningHours, Procedure, Provider
from frontdesk.domain.names import digits, words
from frontdesk.practice_file import PatientRecord, PracticeFile, dump, parse

DAYS = [
    *(date(2026, 11, 9) + timedelta(days=offset) for offset in range(7)),  # each day of a week
    *(date(2027, 1, 20) + timedelta(days=37 * index) for index in range(10)),  # through a year
    date(2026, 3, 8),  # clocks go forward in the United States
    date(2026, 10, 25),  # clocks go back a week later
    date(2026, 12, 31),
    date(2027, 1, 1),
    date(2028, 2, 29),
]


@pytest.fixture(scope="module", params=DAYS, ids=str)
def today(request: pytest.FixtureRequest) -> date:
    day = request.param
    assert isinstance(day, date)
    return day


@pytest.fixture(scope="module")
def file(today: date) -> PracticeFile:
    return demo_practice(today)


@pytest.fixture(scope="module")
def bookings(file: PracticeFile, today: date) -> list[DemoBooking]:
    return demo_bookings(file, today)


def procedure_of(file: PracticeFile, booking: DemoBooking) -> Procedure:
    procedure = file.directory.visit_types[booking.visit_type_id].procedure(booking.procedure_id)
    assert procedure is not None
    return procedure


def occupied(file: PracticeFile, booking: DemoBooking) -> tuple[datetime, datetime]:
    """From the start to the end of the buffer, as instants."""
    procedure = procedure_of(file, booking)
    zone = ZoneInfo(file.directory.locations[booking.location_id].time_zone)
    start = booking.start.replace(tzinfo=zone).astimezone(UTC)
    return start, start + timedelta(minutes=procedure.duration_minutes + procedure.buffer_after_minutes)


def open_hours(file: PracticeFile, provider: Provider, day: date) -> list[OpeningHours]:
    return [
        hours
        for hours in provider.hours
        if day.weekday() in hours.days
        and not any(c.first <= day <= c.last for c in file.directory.locations[hours.location_id].closures)
    ]


def minute(moment: datetime) -> int:
    return moment.hour * 60 + moment.minute


def test_the_practice_is_a_valid_practice_file(file: PracticeFile, today: date) -> None:
    assert parse(dump(file), today=today) == file


def test_the_same_day_gives_the_same_practice_and_calendar(today: date) -> None:
    once, again = demo_practice(today), demo_practice(today)
    assert once == again
    assert demo_bookings(once, today) == demo_bookings(again, today)


def test_the_practice_shows_what_a_practice_can_be() -> None:
    directory = demo_practice(DAYS[0]).directory
    practice = directory.practice
    assert (practice.slug, practice.sandbox) == ("demo", True)
    assert (practice.minimum_notice_minutes, practice.booking_horizon_days) == (60, 90)
    assert len(directory.locations) >= 3
    assert len({location.time_zone for location in directory.locations.values()}) >= 2
    assert len(directory.providers) >= 8
    assert all(provider.aliases and provider.specialty for provider in directory.providers.values())
    assert [p.capacity for p in directory.providers.values() if p.capacity > 1] == [2]
    assert [p.id for p in directory.providers.values() if not p.accepts_new_patients] == [12]
    assert {kind.patient_kind for kind in directory.visit_types.values()} == {"new", "existing", "any"}
    procedures = [procedure for kind in directory.visit_types.values() for procedure in kind.procedures]
    assert len({procedure.duration_minutes for procedure in procedures}) >= 4
    assert any(procedure.buffer_after_minutes for procedure in procedures)
    for record_ids, least in ((directory.locations, 1), (directory.providers, 10), (directory.visit_types, 20)):
        assert list(record_ids) == list(range(least, least + len(record_ids)))


def test_every_provider_has_breaks_and_is_in_one_place_a_day() -> None:
    for provider in demo_practice(DAYS[0]).directory.providers.values():
        places = defaultdict(set)
        for hours in provider.hours:
            for day in hours.days:
                places[day].add(hours.location_id)
        assert all(len(locations) == 1 for locations in places.values())
        assert max(hours.closes - hours.opens for hours in provider.hours) <= 5 * 60


def test_every_procedure_can_be_booked_with_someone() -> None:
    directory = demo_practice(DAYS[0]).directory
    for kind in directory.visit_types.values():
        for procedure in kind.procedures:
            performers = [p for p in directory.providers.values() if p.performs(procedure.id)]
            assert any(p.accepts_new_patients or kind.patient_kind != "new" for p in performers)


def test_absences_and_closures_lie_around_the_day(file: PracticeFile, today: date) -> None:
    closures = [closure for location in file.directory.locations.values() for closure in location.closures]
    absences = [absence for provider in file.directory.providers.values() for absence in provider.time_off]
    assert len(closures) == 1
    assert today < closures[0].first <= today + timedelta(days=14)
    assert closures[0].first.weekday() < 5
    assert {absence.starts.date() < today for absence in absences} == {True, False}
    assert all(abs(absence.starts.date() - today) <= timedelta(days=7) for absence in absences)


def test_patients_are_plausible_and_distinct() -> None:
    patients = demo_practice(DAYS[0]).patients
    assert len(patients) == 300
    assert [patient.number for patient in patients] == list(range(1, 301))
    assert len({(*words(p.first_name), "|", *words(p.last_name), p.dob) for p in patients}) == 300
    assert len({digits(patient.phone) for patient in patients}) == 300
    assert all(digits(patient.phone)[4:9] == "55501" for patient in patients[1:])
    assert 30 < sum(not patient.seen for patient in patients) < 150
    assert any("-" in patient.last_name for patient in patients)
    assert any(not patient.first_name.isascii() for patient in patients)
    assert all(patient.email is None or patient.email.endswith("@example.com") for patient in patients)


def test_patients_do_not_change_with_the_day() -> None:
    assert demo_practice(DAYS[0]).patients == demo_practice(DAYS[-1]).patients


def test_ada_lovelace_is_known_and_free(file: PracticeFile, bookings: list[DemoBooking]) -> None:
    assert file.patients[0] == PatientRecord(
        1, "Ada", "Lovelace", date(1985, 12, 10), "+1 555 010 0199", email=None, seen=True
    )
    assert all(booking.patient_number != 1 for booking in bookings)


def test_the_calendar_is_alive_from_a_week_before_to_three_weeks_after(
    bookings: list[DemoBooking], today: date
) -> None:
    assert 120 <= len(bookings) <= 200
    days = {booking.start.date() for booking in bookings}
    assert today - timedelta(days=7) <= min(days) < today
    assert today + timedelta(days=14) < max(days) <= today + timedelta(days=21)
    assert [booking.start for booking in bookings] == sorted(booking.start for booking in bookings)


def test_past_visits_are_over_and_coming_ones_are_not(bookings: list[DemoBooking], today: date) -> None:
    past = {booking.status for booking in bookings if booking.start.date() < today}
    coming = {booking.status for booking in bookings if booking.start.date() >= today}
    assert "completed" in past
    assert past <= {"completed", "cancelled"}
    assert coming == {"booked", "confirmed", "cancelled"}


def test_bookings_lie_on_the_grid_inside_hours(file: PracticeFile, bookings: list[DemoBooking]) -> None:
    interval = file.directory.practice.slot_interval_minutes
    for booking in bookings:
        provider = file.directory.providers[booking.provider_id]
        procedure = procedure_of(file, booking)
        begins = minute(booking.start)
        ends = begins + procedure.duration_minutes + procedure.buffer_after_minutes
        assert any(
            hours.location_id == booking.location_id
            and hours.opens <= begins
            and ends <= hours.closes
            and (begins - hours.opens) % interval == 0
            for hours in open_hours(file, provider, booking.start.date())
        )


def test_nobody_is_booked_during_an_absence(file: PracticeFile, bookings: list[DemoBooking]) -> None:
    for booking in bookings:
        procedure = procedure_of(file, booking)
        ends = booking.start + timedelta(minutes=procedure.duration_minutes + procedure.buffer_after_minutes)
        absences = file.directory.providers[booking.provider_id].time_off
        assert not any(absence.starts < ends and booking.start < absence.ends for absence in absences)


def test_bookings_never_overlap_beyond_capacity(file: PracticeFile, bookings: list[DemoBooking]) -> None:
    for provider in file.directory.providers.values():
        spans = [occupied(file, booking) for booking in bookings if booking.provider_id == provider.id]
        for start, _ in spans:
            assert sum(begins <= start < ends for begins, ends in spans) <= provider.capacity


def test_no_patient_is_in_two_places(file: PracticeFile, bookings: list[DemoBooking]) -> None:
    spans = defaultdict(list)
    for booking in bookings:
        spans[booking.patient_number].append(occupied(file, booking))
    for taken in spans.values():
        taken.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(taken))


def test_kinds_of_patients_are_respected(file: PracticeFile, bookings: list[DemoBooking], today: date) -> None:
    patients = {patient.number: patient for patient in file.patients}
    for booking in bookings:
        seen = patients[booking.patient_number].seen
        provider = file.directory.providers[booking.provider_id]
        kind = file.directory.visit_types[booking.visit_type_id].patient_kind
        assert kind in ("any", "existing" if seen else "new")
        assert provider.performs(booking.procedure_id)
        assert seen or provider.accepts_new_patients
        assert seen or booking.start.date() >= today
    assert {file.directory.visit_types[b.visit_type_id].patient_kind for b in bookings} == {"new", "existing", "any"}


def test_most_of_every_day_is_free(file: PracticeFile, bookings: list[DemoBooking], today: date) -> None:
    taken: Counter[date] = Counter()
    for booking in bookings:
        start, end = occupied(file, booking)
        taken[booking.start.date()] += (end - start) // timedelta(minutes=1)
    for offset in range(22):
        day = today + timedelta(days=offset)
        offered = sum(
            (hours.closes - hours.opens) * provider.capacity
            for provider in file.directory.providers.values()
            for hours in open_hours(file, provider, day)
        )
        assert taken[day] <= offered / 3


def test_a_first_test_suite_does_not_meet_the_limits_of_the_demo() -> None:
    practice = demo_practice(date(2026, 11, 15)).directory.practice
    limits = (
        practice.patients_per_hour,
        practice.patients_per_day,
        practice.writes_per_hour,
        practice.upcoming_per_patient,
    )
    assert limits == (1000, 10_000, 1000, 200)
