"""What every scheduling system must do, whoever keeps the calendar: one suite, run against each of them.

The FHIR system runs against a small server in memory, and in the heavier suite against one that nobody here wrote.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access.caller import Caller
from frontdesk.domain.appointments import CANCELLABLE, CONFIRMABLE, RESCHEDULABLE
from frontdesk.domain.ids import APPOINTMENT_ID, PATIENT_ID, new_appointment_id, new_patient_id
from frontdesk.domain.patients import Patient
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.operations._booking import slot_data
from frontdesk.store.database import Database
from frontdesk.store.practices import practice_id_of
from frontdesk.systems.port import (
    AppointmentFilter,
    Change,
    Intent,
    Outcome,
    SchedulingSystem,
    SlotQuery,
    WriteRecord,
    patient_data,
)
from tests.fhir.door import Door
from tests.fhir.fake import Fake
from tests.fhir.medplum import Medplum, running
from tests.fhir.practice import Upstream, fhir_world
from tests.world import MONDAY, NOW, World, build_world

FOLLOW_UP, LONG_FOLLOW_UP, FLU_SHOT, EXAM = (21, 101), (21, 102), (22, 103), (20, 100)
NINE = int(datetime(2026, 11, 16, 14, tzinfo=UTC).timestamp()) // 60  # nine o'clock on Monday at the location


@dataclass
class Desk:
    """A scheduling system as the engine uses it: a new object for every call."""

    world: World
    practice_id: int

    async def system(self) -> SchedulingSystem:
        version = await self.world.database.fetchval(
            "SELECT version FROM practice WHERE practice_id = $1", self.practice_id
        )
        caller = Caller("client", self.practice_id, "harbor", frozenset(), "agent", version)
        return await self.world.service.engine.systems(caller)

    @property
    def now(self) -> datetime:
        return self.world.clock.now

    async def open_starts(self, service: tuple[int, int] = FOLLOW_UP, **wanted: Any) -> list[int]:
        found = await (await self.system()).find_slots(query(service, **wanted), self.now, most=200, after=None)
        return [start for slots in found.by_provider for start in slots.starts]

    async def person(self, first: str = "Ada") -> Patient:
        last, phone, dob = {
            "Ada": ("Lovelace", "555 010 0199", date(1985, 12, 10)),
            "Grace": ("Hopper", "555 010 0142", date(1986, 12, 9)),
            "José": ("Nunez OBrien", "0177", date(1990, 2, 28)),
            "Alan": ("Turing", "0123", date(1990, 6, 23)),
        }[first]
        [found] = await (await self.system()).match_patients(first, last, phone, dob)
        return found

    def record(self, intent: Intent | None = None) -> WriteRecord:
        return WriteRecord("client", "an_operation", "request", self.now, self.now + timedelta(hours=24), intent)

    async def book(
        self, patient: Patient, start: int = NINE, service: tuple[int, int] = FOLLOW_UP, intent: Intent | None = None
    ) -> Outcome:
        """Judges and performs, as a call does."""
        system = await self.system()
        slot = ref(start, service)
        checked = await system.check_booking(slot, patient.id, self.now, None)
        assert checked is not None
        data = {"appointmentId": new_appointment_id(), "patientId": patient.id, **slot_data(slot, checked)}
        return await system.perform(Change("book", checked.version, data), self.record(intent))

    async def booked(self, patient: Patient, start: int = NINE, service: tuple[int, int] = FOLLOW_UP) -> str:
        outcome = await self.book(patient, start, service)
        assert outcome.kind == "executed", outcome
        assert outcome.result is not None
        found: str = outcome.result["appointmentId"]
        return found

    async def set_status(self, appointment_id: str, status: str, **data: Any) -> Outcome:
        system = await self.system()
        assert await system.get_appointment(appointment_id) is not None
        states = CANCELLABLE if status == "cancelled" else CONFIRMABLE
        change = {"appointmentId": appointment_id, "status": status, "fromStates": states, "onlyUpcoming": False}
        return await system.perform(Change("status", None, {**change, **data}), self.record())

    async def move(self, appointment_id: str, start: int, service: tuple[int, int] = FOLLOW_UP) -> Outcome:
        system = await self.system()
        moved = await system.get_appointment(appointment_id)
        assert moved is not None
        slot = ref(start, service)
        checked = await system.check_booking(slot, moved.patient_id, self.now, moved)
        assert checked is not None
        data = {
            "appointmentId": moved.id,
            "patientId": moved.patient_id,
            "fromProviderId": moved.provider_id,
            "fromStates": RESCHEDULABLE,
            **slot_data(slot, checked),
        }
        return await system.perform(Change("reschedule", checked.version, data), self.record())


def query(service: tuple[int, int] = FOLLOW_UP, **wanted: Any) -> SlotQuery:
    asked = SlotQuery(*service, provider_id=10, location_id=1, first=MONDAY, last=MONDAY)
    return replace(asked, **wanted)


def ref(start: int, service: tuple[int, int] = FOLLOW_UP, provider: int = 10, location: int = 1) -> SlotRef:
    minutes = {101: 15, 102: 45, 103: 15, 100: 30}[service[1]]
    return SlotRef(provider, location, *service, start, minutes)


def intent(name: str = "token", *, fingerprint: bytes = b"f") -> Intent:
    return Intent(name.encode(), fingerprint, is_key=True)


@pytest.fixture(scope="session")
def medplum() -> Iterator[Medplum]:
    with running() as server:
        yield server


@pytest.fixture(params=["native", "fhir", pytest.param("medplum", marks=pytest.mark.heavy)])
async def desk(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> AsyncIterator[Desk]:
    if request.param == "native":
        world = await build_world(database, tmp_path)
        yield await _desk(world)
        await world.close()
        return
    door = Door()
    await door.open()
    repository = None
    if request.param == "medplum":
        repository = request.getfixturevalue("medplum").repository(secrets.token_hex(8), door.address)
    door.backend = repository or Fake(door.address)
    await Upstream(door).seed()
    async with fhir_world(database, tmp_path, door, timeoutSeconds=20) as world:
        yield await _desk(world)
    if repository is not None:
        await repository.close()
    await door.close()


async def _desk(world: World) -> Desk:
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    return Desk(world, practice_id)


async def test_it_says_what_it_is_and_can_do(desk: Desk) -> None:
    system = await desk.system()
    assert system.kind in ("native", "fhir")
    assert {"get_capabilities", "search_slots", "book_appointment", "update_patient"} <= system.supports
    directory = await system.directory()
    assert [location.name for location in directory.locations.values()] == ["Downtown", "Westside"]


async def test_open_slots_come_in_order_of_start(desk: Desk) -> None:
    starts = await desk.open_starts()
    assert starts[0] == NINE
    assert starts == sorted(set(starts))
    assert len(starts) == 28  # three hours and four, a quarter each


async def test_a_procedure_takes_as_long_as_it_takes(desk: Desk) -> None:
    starts = await desk.open_starts(LONG_FOLLOW_UP)
    noon = NINE + 180
    assert max(start for start in starts if start < noon) == noon - 45
    assert noon + 60 in starts


async def test_search_goes_on_after_a_position(desk: Desk) -> None:
    system = await desk.system()
    starts = await desk.open_starts()
    found = await system.find_slots(query(), desk.now, most=3, after=(starts[4], 10, 1))
    assert [start for slots in found.by_provider for start in slots.starts] == starts[5:8]


async def test_search_over_everybody_is_ordered_by_start_provider_and_location(desk: Desk) -> None:
    system = await desk.system()
    asked = query(FLU_SHOT, provider_id=None, location_id=None, first=None, last=None)
    found = await system.find_slots(asked, desk.now, most=50, after=None)
    positions = [(start, each.provider_id, each.location_id) for each in found.by_provider for start in each.starts]
    assert positions == sorted(positions)
    assert len(positions) == 50
    assert positions[:2] == [(NINE, 10, 1), (NINE, 11, 1)]
    again = await system.find_slots(asked, desk.now, most=200, after=positions[-1])
    assert all(
        (start, each.provider_id, each.location_id) > positions[-1]
        for each in again.by_provider
        for start in each.starts
    )


async def test_slots_are_found_at_the_location_that_was_asked_for(desk: Desk) -> None:
    wednesday = MONDAY + timedelta(days=2)
    starts = await desk.open_starts(provider_id=11, location_id=2, first=wednesday, last=wednesday)
    nine_in_los_angeles = int(datetime(2026, 11, 18, 17, tzinfo=UTC).timestamp()) // 60
    assert starts[0] == nine_in_los_angeles
    assert await desk.open_starts(provider_id=11, location_id=1, first=wednesday, last=wednesday) == []


@pytest.mark.parametrize(
    "wanted",
    [
        {"provider_id": 99},
        {"location_id": 2},
        {"visit_type_id": 22},
        {"procedure_id": 999},
        {"provider_id": 12, "visit_type_id": 20, "procedure_id": 100},
        {"first": MONDAY - timedelta(days=9), "last": MONDAY - timedelta(days=8)},
        {"first": MONDAY + timedelta(days=200), "last": MONDAY + timedelta(days=201)},
    ],
)
async def test_what_does_not_fit_together_finds_nothing(desk: Desk, wanted: dict[str, Any]) -> None:
    assert await desk.open_starts(**wanted) == []


async def test_slots_that_have_begun_are_not_offered(desk: Desk) -> None:
    desk.world.clock.now = datetime(2026, 11, 16, 14, 15, tzinfo=UTC)
    assert (await desk.open_starts())[0] == NINE + 30


async def test_search_live_read_and_booking_agree(desk: Desk) -> None:
    system = await desk.system()
    patient = await desk.person()
    for start in (NINE - 15, NINE, NINE + 5, NINE + 165, NINE + 180):
        offered = start in await desk.open_starts()
        state = await system.slot_state(ref(start), desk.now)
        checked = await system.check_booking(ref(start), patient.id, desk.now, None)
        assert state is not None
        assert checked is not None
        assert state.available == checked.slot.available == offered


async def test_a_slot_of_something_that_does_not_exist_is_none(desk: Desk) -> None:
    system = await desk.system()
    for slot in (ref(NINE, provider=99), ref(NINE, location=9), replace(ref(NINE), procedure_id=100)):
        assert await system.slot_state(slot, desk.now) is None
        assert await system.check_booking(slot, "pat_x", desk.now, None) is None
    changed = replace(ref(NINE), duration_minutes=30)
    state = await system.slot_state(changed, desk.now)
    assert state is not None
    assert not state.available


async def test_people_are_matched_without_regard_to_spelling(desk: Desk) -> None:
    ada = await desk.person("Ada")
    assert PATIENT_ID.match(ada.id)
    assert (ada.first_name, ada.last_name, ada.dob, ada.seen) == ("Ada", "Lovelace", date(1985, 12, 10), True)
    jose = await desk.person("José")
    assert jose.last_name == "Núñez-O'Brien"
    grace = await desk.person("Grace")
    assert (grace.seen, grace.email) == (False, "grace@example.com")
    system = await desk.system()
    assert await system.match_patients("Ada", "Lovelace", "555 010 0100", date(1985, 12, 10)) == []
    assert await system.match_patients("Ada", "Lovelace", "555 010 0199", date(1985, 12, 11)) == []


async def test_a_patient_keeps_id_and_number(desk: Desk) -> None:
    ada, grace = await desk.person("Ada"), await desk.person("Grace")
    assert ada.number != grace.number
    system = await desk.system()
    assert await system.get_patient(ada.id) == ada
    assert await system.get_patient(ada.number) == ada
    assert await system.get_patient(new_patient_id()) is None
    assert await system.get_patient(99999) is None
    assert (await desk.person("Ada")).id == ada.id


async def test_a_booking_takes_the_slot_and_can_be_read(desk: Desk) -> None:
    ada = await desk.person()
    appointment_id = await desk.booked(ada)
    assert APPOINTMENT_ID.match(appointment_id)
    found = await (await desk.system()).get_appointment(appointment_id)
    assert found is not None
    assert (found.patient_id, found.status) == (ada.id, "booked")
    assert (found.provider_id, found.location_id, found.visit_type_id, found.procedure_id) == (10, 1, 21, 101)
    assert found.starts_at == datetime(2026, 11, 16, 14, tzinfo=UTC)
    assert found.ends_at - found.starts_at == timedelta(minutes=15)
    assert found.created_at == NOW
    assert NINE not in await desk.open_starts()
    assert await (await desk.system()).get_appointment(new_appointment_id()) is None


async def test_a_long_booking_takes_everything_that_it_covers(desk: Desk) -> None:
    await desk.booked(await desk.person(), NINE, LONG_FOLLOW_UP)
    assert (await desk.open_starts())[0] == NINE + 45


async def test_a_second_booking_of_a_slot_is_refused(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    await desk.booked(ada)
    system = await desk.system()
    checked = await system.check_booking(ref(NINE), alan.id, desk.now, None)
    assert checked is not None
    assert not checked.slot.available
    assert (await desk.book(alan)).kind == "slot_unavailable"


async def test_of_many_who_want_a_slot_one_gets_it(desk: Desk) -> None:
    people = [await desk.person(name) for name in ("Ada", "Alan", "José")]
    outcomes = await asyncio.gather(*(desk.book(patient) for patient in people))
    assert sorted(outcome.kind for outcome in outcomes) == ["executed", "slot_unavailable", "slot_unavailable"]


async def test_a_patient_is_never_in_two_places(desk: Desk) -> None:
    ada = await desk.person()
    await desk.booked(ada, NINE, LONG_FOLLOW_UP)
    system = await desk.system()
    slot = replace(ref(NINE + 15, FLU_SHOT), provider_id=11)
    checked = await system.check_booking(slot, ada.id, desk.now, None)
    assert checked is not None
    assert checked.patient_busy
    assert checked.slot.available
    data = {"appointmentId": new_appointment_id(), "patientId": ada.id, **slot_data(slot, checked)}
    outcome = await system.perform(Change("book", checked.version, data), desk.record())
    assert (outcome.kind, outcome.reason) == ("declined", "patient_overlap")


async def test_who_is_asked_about_an_unknown_patient_says_so(desk: Desk) -> None:
    system = await desk.system()
    checked = await system.check_booking(ref(NINE), new_patient_id(), desk.now, None)
    assert checked is not None
    assert checked.patient_seen is None


async def test_cancelling_frees_the_time_and_keeps_the_reason(desk: Desk) -> None:
    appointment_id = await desk.booked(await desk.person(), NINE, LONG_FOLLOW_UP)
    outcome = await desk.set_status(appointment_id, "cancelled", reason="Travelling")
    assert (outcome.kind, outcome.result) == ("executed", {"appointmentId": appointment_id, "status": "cancelled"})
    found = await (await desk.system()).get_appointment(appointment_id)
    assert found is not None
    assert (found.status, found.cancellation_reason, found.cancelled_at) == ("cancelled", "Travelling", desk.now)
    assert len(await desk.open_starts()) == 28


async def test_confirming_is_remembered_and_repeating_it_changes_nothing(desk: Desk) -> None:
    appointment_id = await desk.booked(await desk.person())
    assert (await desk.set_status(appointment_id, "confirmed")).kind == "executed"
    found = await (await desk.system()).get_appointment(appointment_id)
    assert found is not None
    assert (found.status, found.attendance_confirmed_at) == ("confirmed", desk.now)
    desk.world.clock.advance(minutes=5)
    assert (await desk.set_status(appointment_id, "confirmed")).kind == "unchanged"
    assert (await (await desk.system()).get_appointment(appointment_id)) == found


async def test_moving_takes_the_new_time_and_frees_the_old(desk: Desk) -> None:
    appointment_id = await desk.booked(await desk.person())
    await desk.set_status(appointment_id, "confirmed")
    outcome = await desk.move(appointment_id, NINE + 60)
    assert (outcome.kind, outcome.result) == ("executed", {"appointmentId": appointment_id, "status": "booked"})
    found = await (await desk.system()).get_appointment(appointment_id)
    assert found is not None
    assert (found.status, found.attendance_confirmed_at) == ("booked", None)
    assert found.starts_at == datetime(2026, 11, 16, 15, tzinfo=UTC)
    assert found.rescheduled_from == datetime(2026, 11, 16, 14, tzinfo=UTC)
    starts = await desk.open_starts()
    assert NINE in starts
    assert NINE + 60 not in starts


async def test_an_appointment_may_move_into_its_own_time(desk: Desk) -> None:
    appointment_id = await desk.booked(await desk.person(), NINE, LONG_FOLLOW_UP)
    assert (await desk.move(appointment_id, NINE + 15, LONG_FOLLOW_UP)).kind == "executed"
    starts = await desk.open_starts()
    assert [start for start in starts if start < NINE + 90] == [NINE, NINE + 60, NINE + 75]


async def test_a_move_into_a_taken_slot_keeps_the_old_time(desk: Desk) -> None:
    appointment_id = await desk.booked(await desk.person("Ada"))
    await desk.booked(await desk.person("Alan"), NINE + 60)
    assert (await desk.move(appointment_id, NINE + 60)).kind == "slot_unavailable"
    found = await (await desk.system()).get_appointment(appointment_id)
    assert found is not None
    assert found.starts_at == datetime(2026, 11, 16, 14, tzinfo=UTC)
    assert NINE not in await desk.open_starts()


async def test_appointments_are_listed_in_order_and_page_by_page(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    booked = [
        await desk.booked(ada, NINE + 120),
        await desk.booked(alan, NINE),
        await desk.booked(ada, NINE + 60),
        await desk.booked(alan, NINE + 60 + 24 * 60),
    ]
    system = await desk.system()
    everything = await system.list_appointments(AppointmentFilter(), most=50, after=None)
    assert [found.id for found in everything] == [booked[1], booked[2], booked[0], booked[3]]
    first = await system.list_appointments(AppointmentFilter(), most=2, after=None)
    rest = await system.list_appointments(AppointmentFilter(), most=50, after=(first[-1].starts_at, first[-1].id))
    assert [*first, *rest] == everything


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"provider_id": 10}, [0, 1, 2]),
        ({"provider_id": 12}, []),
        ({"location_id": 1, "visit_type_id": 21}, [0, 1]),
        ({"procedure_id": 103}, [2]),
        ({"first": MONDAY + timedelta(days=1)}, [2]),
        ({"first": MONDAY, "last": MONDAY}, [0, 1]),
        ({"last": MONDAY - timedelta(days=1)}, []),
    ],
)
async def test_appointments_are_filtered(desk: Desk, wanted: dict[str, Any], expected: list[int]) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    booked = [
        await desk.booked(ada, NINE),
        await desk.booked(alan, NINE + 15),
        await desk.booked(ada, NINE + 24 * 60, FLU_SHOT),
    ]
    system = await desk.system()
    found = await system.list_appointments(AppointmentFilter(**wanted), most=50, after=None)
    assert [each.id for each in found] == [booked[index] for index in expected]
    of_ada = await system.list_appointments(AppointmentFilter(patient_id=ada.id, **wanted), most=50, after=None)
    assert [each.id for each in of_ada] == [booked[index] for index in expected if index != 1]


async def test_a_new_patient_can_be_found_and_booked(desk: Desk) -> None:
    system = await desk.system()
    dob, phone = date(1978, 8, 26), "+1 555 010 0155"
    data = patient_data(new_patient_id(), "Katherine", "Johnson", dob, phone, "k@example.com")
    outcome = await system.perform(Change("create_patient", None, data), desk.record())
    assert outcome.kind == "executed"
    assert outcome.result is not None
    [found] = await system.match_patients("katherine", "JOHNSON", "0155", dob)
    assert found.id == outcome.result["patientId"]
    assert (found.phone, found.email, found.seen) == (phone, "k@example.com", False)
    assert await desk.booked(found, NINE, EXAM)


async def test_the_same_person_is_not_created_twice(desk: Desk) -> None:
    data = patient_data(new_patient_id(), "ADA", "Love-lace", date(1985, 12, 10), "5550100199", None)
    outcome = await (await desk.system()).perform(Change("create_patient", None, data), desk.record())
    assert (outcome.kind, outcome.reason) == ("conflict", "patient_exists")


async def test_a_patient_is_changed_and_nothing_else_of_them(desk: Desk) -> None:
    grace, system = await desk.person("Grace"), await desk.system()
    assert await system.get_patient(grace.id) == grace
    data = patient_data(grace.id, "Grace", "Murray", grace.dob, "+1 555 010 0143", grace.email)
    outcome = await system.perform(Change("update_patient", None, data), desk.record())
    assert (outcome.kind, outcome.result) == ("executed", {"patientId": grace.id})
    changed = await (await desk.system()).get_patient(grace.id)
    assert changed == replace(grace, last_name="Murray", phone="+1 555 010 0143")


async def test_a_patient_is_not_changed_into_another(desk: Desk) -> None:
    grace, system = await desk.person("Grace"), await desk.system()
    await system.get_patient(grace.id)
    data = patient_data(grace.id, "Ada", "Lovelace", date(1985, 12, 10), "+1 555 010 0199", None)
    outcome = await system.perform(Change("update_patient", None, data), desk.record())
    assert (outcome.kind, outcome.reason) == ("conflict", "patient_exists")


async def test_a_write_with_an_intent_executes_once(desk: Desk) -> None:
    ada = await desk.person()
    first = await desk.book(ada, intent=intent())
    assert first.kind == "executed"
    again = await desk.book(ada, intent=intent())
    assert (again.kind, again.result) == ("replayed", first.result)
    other = await desk.book(ada, NINE + 60, intent=intent(fingerprint=b"other"))
    assert other.kind == "mismatch"
    token = Intent(b"nobody's", b"f", is_key=False)
    assert (await desk.book(ada, NINE + 60, intent=token)).kind == "unrecognized"
    assert len(await (await desk.system()).list_appointments(AppointmentFilter(), most=9, after=None)) == 1


async def test_a_refused_write_leaves_its_intent_usable(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    await desk.booked(alan)
    refused = await desk.book(ada, intent=intent())
    assert refused.kind == "slot_unavailable"
    assert (await desk.book(ada, NINE + 15, intent=intent())).kind == "executed"


async def test_a_write_judged_by_an_old_directory_is_stale(desk: Desk) -> None:
    ada, system = await desk.person(), await desk.system()
    checked = await system.check_booking(ref(NINE), ada.id, desk.now, None)
    assert checked is not None
    data = {"appointmentId": new_appointment_id(), "patientId": ada.id, **slot_data(ref(NINE), checked)}
    outcome = await system.perform(Change("book", checked.version - 1, data), desk.record())
    assert outcome.kind == "stale"
    assert NINE in await desk.open_starts()


async def test_a_refused_write_is_on_record_under_those_who_exist(desk: Desk) -> None:
    ada, alan = await desk.person("Ada"), await desk.person("Alan")
    await desk.booked(ada)
    await desk.book(alan)
    data = patient_data(new_patient_id(), "Ada", "Lovelace", date(1985, 12, 10), "5550100199", None)
    await (await desk.system()).perform(Change("create_patient", None, data), desk.record())
    async with desk.world.database.transaction(desk.practice_id) as connection:
        records = await connection.fetch("SELECT outcome, subject_ids FROM audit_record ORDER BY record_id")
    assert [tuple(row) for row in records[1:]] == [("slot_unavailable", [alan.id]), ("conflict", [])]


Act = Callable[[Desk, str], Awaitable[Outcome]]


@pytest.mark.parametrize(
    ("act", "event"),
    [
        (lambda desk, booked: desk.set_status(booked, "cancelled"), "appointment.cancelled"),
        (lambda desk, booked: desk.set_status(booked, "confirmed"), "appointment.confirmed"),
        (lambda desk, booked: desk.move(booked, NINE + 60), "appointment.rescheduled"),
    ],
    ids=["cancel", "confirm", "move"],
)
async def test_every_write_is_on_record_and_announced_once(desk: Desk, act: Act, event: str) -> None:
    ada = await desk.person()
    appointment_id = await desk.booked(ada)
    assert (await act(desk, appointment_id)).kind == "executed"
    async with desk.world.database.transaction(desk.practice_id) as connection:
        events = await connection.fetch("SELECT type, subject::text FROM outbox ORDER BY event_id")
        records = await connection.fetch("SELECT outcome, subject_ids FROM audit_record ORDER BY record_id")
    assert [row["type"] for row in events] == ["appointment.booked", event]
    assert all(appointment_id in row["subject"] and ada.id in row["subject"] for row in events)
    assert [(row["outcome"], set(row["subject_ids"])) for row in records] == [
        ("executed", {appointment_id, ada.id}),
        ("executed", {appointment_id, ada.id}),
    ]
