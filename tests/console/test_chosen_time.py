"""Booking and moving at a time chosen in the calendar: exactly there, after a read-back, or not at all."""

import httpx
import pytest

from tests.console.desk import HIDDEN, Document, calendar, entries, records, words
from tests.world import World, book, patient_id

NINE = {"provider": "10", "location": "1", "date": "2026-11-16", "time": "09:00"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


def named(html: str, name: str) -> list[str]:
    return [each.attributes["value"] for each in Document(html).having("name", name)]


async def test_a_free_time_is_booked_for_a_known_patient_in_three_steps(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    asked = await staff.get("/console/book/at", params={**NINE, "time": "09:30"})
    assert "Monday, 16 November 2026" in asked.text
    found = await staff.post("/console/book/at", data={**NINE, "time": "09:30", "search": "lovel"})
    assert found.status_code == 200
    [ada] = named(found.text, "patient")
    assert 'data-kind="existing" checked' in found.text, "the only one is chosen"
    form = {**NINE, "time": "09:30", "search": "lovel", "patient": ada, "visit": "21-101", "key": "once"}
    for _ in range(2):
        booked = await staff.post("/console/book/at", data=form)
        assert booked.status_code == 303, booked.text
        assert booked.headers["Location"].endswith("?notice=appointment_booked")
    [entry] = entries(await calendar(staff)).values()
    assert words(entry.text).startswith("09:30–09:45 Ada Lovelace")
    assert "at-7" in entry.classes
    [executed] = await records(world, operation="book_appointment", outcome="executed")
    assert ada in executed["subject_ids"]


async def test_a_time_that_is_not_open_is_refused_with_open_ones_beside_it(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    await book(agent, "Alan")  # at nine
    form = {**NINE, "search": "lovel", "patient": await patient_id(agent, "Ada"), "visit": "21-101", "key": "k1"}
    refused = await staff.post("/console/book/at", data=form)
    assert refused.status_code == 409
    times = named(refused.text, "at")
    assert times == sorted(times)
    assert "09:15" in times
    assert "09:00" not in times
    assert len(entries(await calendar(staff))) == 1
    again = await staff.post("/console/book/at", data={**form, "at": "09:15", "key": "k2"})
    assert again.status_code == 303
    assert "notice" not in (await staff.get("/console/book/at", params=NINE)).text
    shown = (await staff.get("/console/book/at", params={**NINE, "time": "03:00"})).text
    assert "This is outside the hours of Dr. Robert Chen at Downtown. You can still book it" in shown
    night = await staff.post("/console/book/at", data={**form, "time": "03:00", "key": "k3"})
    assert night.status_code == 409, "closed at night"
    stranger = await staff.post("/console/book/at", data={**form, "at": "10:00", "visit": "20-100", "key": "k4"})
    assert stranger.status_code == 422, "Ada is known, and this visit is for new patients"


@pytest.mark.parametrize(
    "odd",
    [{"provider": "77"}, {"location": "x"}, {"date": "2026-02-30"}, {"time": "25:00"}, {"time": "<b>"},
     {"time": "09:00+05:00"}],
)  # fmt: skip
async def test_a_time_that_no_calendar_has_is_not_found(staff: httpx.AsyncClient, odd: dict[str, str]) -> None:
    wanted = {**NINE, **odd}
    asked = await staff.get("/console/book/at", params=wanted)
    assert asked.status_code == (200 if odd == {"location": "x"} else 404)  # the provider's own location
    assert "<b>" not in asked.text


async def test_a_move_is_read_back_and_happens_once_it_is_confirmed(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent)
    other = await book(agent, "Alan")  # a quarter past
    address = f"/console/appointments/{booked}/move/at"
    own = await staff.get(address)
    assert named(own.text, "date") == ["2026-11-16"], "it starts at its own day"
    assert named(own.text, "time") == ["09:00"]
    assert "Move appointment</button>" not in own.text
    taken = await staff.get(address, params={"time": "09:15"})
    assert "is not open for this visit" in words(taken.text)
    assert "09:30" in named(taken.text, "time")
    shown = await staff.get(address, params={"time": "10:00", "provider": "11"})
    text = words(Document(shown.text).having("id", "chosen-time")[0].text)
    assert "Until nowMonday, 16 November 2026, 09:00–09:15, Dr. Robert Chen" in text
    assert "WhenMonday, 16 November 2026, 10:00–10:15" in text
    fields = dict(HIDDEN.findall(shown.text.split(f'action="/console/appointments/{booked}/move"', 1)[1]))
    assert set(entries(await calendar(staff, provider=10))) == {booked, other}, "nothing has moved yet"
    moved = await staff.post(f"/console/appointments/{booked}/move", data=fields)
    assert moved.status_code == 303
    assert set(entries(await calendar(staff, provider=11))) == {booked}


async def test_an_appointment_may_move_into_a_part_of_its_own_time(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent, procedureId=102)  # three quarters of an hour from nine
    shown = await staff.get(f"/console/appointments/{booked}/move/at", params={"time": "09:15"})
    fields = dict(HIDDEN.findall(shown.text.split(f'action="/console/appointments/{booked}/move"', 1)[1]))
    assert (await staff.post(f"/console/appointments/{booked}/move", data=fields)).status_code == 303
    [entry] = entries(await calendar(staff)).values()
    assert words(entry.text).startswith("09:15–10:00")


async def test_the_list_of_open_times_for_a_move_starts_at_the_appointments_own_day(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    booked = await book(agent, **{"from": "2026-11-23", "to": "2026-11-23"})
    assert 'value="2026-11-23"' in (await staff.get(f"/console/appointments/{booked}/move")).text
