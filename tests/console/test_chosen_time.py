"""Booking and moving at a time chosen in the calendar: exactly there, after a read-back, or not at all."""

from datetime import UTC, datetime

import httpx
import pytest

from tests.console.desk import HIDDEN, Document, calendar, entries, form_in, records, words
from tests.console.signing_in import signed_in
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

TURNED_BACK = {"from": "2027-11-07", "to": "2027-11-07"}  # from 02:00 to 01:00
FIRST, SECOND = "2027-11-07T01:30:00-04:00", "2027-11-07T01:30:00-05:00"
NINE = {"provider": "10", "location": "1", "date": "2026-11-16", "time": "09:00"}


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


@pytest.fixture
async def night(world: World) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
    """Staff and an agent on the eve of the day that is an hour longer, of a practice that is open that night."""
    world.clock.now = datetime(2027, 11, 6, 16, tzinfo=UTC)
    hours = '{location: 1, days: [mon, tue, wed, thu, fri], from: "13:00", to: "17:00"}'
    assert hours in PRACTICE
    at_night = hours + '\n      - {location: 1, days: [sun], from: "00:00", to: "04:00"}'
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace(hours, at_night))
    return await signed_in(world), await world.client()


async def booked_at(agent: httpx.AsyncClient, start: str) -> str:
    [slot] = [each["id"] for each in await slots(agent, **TURNED_BACK) if each["start"] == start]
    body = {"patientId": await patient_id(agent), "slotId": slot}
    return str((await confirmed(agent, "POST", "/api/appointments", body)).json()["appointmentId"])


async def start_of(agent: httpx.AsyncClient, appointment: str) -> str:
    return str((await agent.get(f"/api/appointments/{appointment}")).json()["start"])


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


@pytest.mark.parametrize("path", ["/book/at", "/walk-in"])
async def test_a_patient_of_an_earlier_search_is_not_taken_and_a_missing_choice_is_asked_for(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient, path: str
) -> None:
    ask = "Choose the patient."
    form = {**NINE, "visit": "21-101", "reason": "Walk-in", "key": "k1"}
    found = await staff.post(f"/console{path}", data={**form, "search": "a"})
    ada, alan = await patient_id(agent, "Ada"), await patient_id(agent, "Alan")
    assert set(named(found.text, "patient")) == {ada, alan}
    assert (found.status_code, ask in found.text) == (200, False)
    form |= {"searched": named(found.text, "searched")[0]}
    nobody = await staff.post(f"/console{path}", data={**form, "search": "a"})
    assert (nobody.status_code, ask in nobody.text) == (422, True)
    other = await staff.post(f"/console{path}", data={**form, "patient": ada, "search": "alan"})
    assert (other.status_code, named(other.text, "patient"), ask in other.text) == (200, [alan], False)
    assert not entries(await calendar(staff))
    chosen = await staff.post(f"/console{path}", data={**form, "patient": ada, "search": "a"})
    assert ask not in chosen.text
    assert chosen.status_code == 303 or named(chosen.text, "sure")


@pytest.mark.parametrize(
    "odd",
    [{"provider": "77"}, {"location": "x"}, {"date": "2026-02-30"}, {"time": "25:00"}, {"time": "<b>"},
     {"time": "09:00+05:00"}, {"time": "09:00/3"}, {"time": "09:00/22"}, {"time": "/2"}],
)  # fmt: skip
async def test_a_time_that_no_calendar_has_is_not_found(staff: httpx.AsyncClient, odd: dict[str, str]) -> None:
    wanted = {**NINE, **odd}
    asked = await staff.get("/console/book/at", params=wanted)
    assert asked.status_code == (200 if odd == {"location": "x"} else 404)  # the provider's own location
    assert "<b>" not in asked.text


async def test_with_all_locations_a_time_is_at_the_location_where_the_provider_is_then(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    one_zone = PRACTICE.replace("SLUG", "harbor").replace(
        "name: Westside, timeZone: America/Los_Angeles", "name: Westside"
    )
    mornings = '{location: 2, days: [wed], from: "09:00", to: "12:00"}'
    assert mornings in one_zone
    afternoons = mornings + '\n      - {location: 1, days: [wed], from: "13:00", to: "15:00"}'
    await world.import_file(one_zone.replace(mornings, afternoons))
    await world.renew(agent)

    async def place(path: str, **asked: str) -> str:
        shown = await staff.get(f"/console{path}", params={"provider": "11", "location": "", **asked})
        [place] = {each for each in ("Downtown", "Westside") if each in shown.text}
        return place

    there = {"date": "2026-11-18"}
    for time, location in (("09:30", "Westside"), ("14:00", "Downtown"), ("18:00", "Downtown")):
        assert await place("/book/at", **there, time=time) == location
    friday = {"date": "2026-11-20", "time": "09:30"}
    assert await place("/book/at", **friday, provider="10") == "Downtown"

    booked = await book(agent)  # with another provider, at Downtown
    move = f"/appointments/{booked}/move/at"
    assert await place(move, **there, time="09:30") == "Westside"
    assert await place(move, **there, time="14:00") == "Downtown"
    shown = await staff.get(f"/console{move}", params={**there, "provider": "11", "location": "", "time": "09:30"})
    assert "Move appointment</button>" in shown.text
    assert await place(move, date="2026-11-19", time="09:30") == "Downtown", "its own, where the provider is nowhere"


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


async def test_either_occurrence_of_a_time_that_a_day_has_twice_is_booked(
    world: World, night: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    staff, agent = night
    place = {**NINE, "date": "2027-11-07", "visit": "21-101"}
    shown = (await staff.get("/console/book/at", params={**place, "time": "01:30/2"})).text
    assert "Downtown, EST" in words(shown)
    options = {each.text: each.attributes for each in Document(shown).tagged("option") if each.text in ("EDT", "EST")}
    assert [(zone, "selected" in each) for zone, each in options.items()] == [("EDT", False), ("EST", True)]
    assert "EST</option>" not in (await staff.get("/console/book/at", params={**place, "time": "02:30"})).text
    starts = []
    for name, zone in (("Ada", "EDT"), ("Alan", "EST")):
        typed = {"time": "01:30", "occurrence": options[zone]["value"], "patient": await patient_id(agent, name)}
        booked = await staff.post("/console/book/at", data={**place, **typed, "key": name})
        assert booked.status_code == 303, booked.text
        starts.append(await start_of(agent, booked.headers["Location"].split("/")[-1].split("?")[0]))
    assert starts == [FIRST, SECOND]

    jose = {**place, "time": "01:30/2", "patient": await patient_id(agent, "José"), "key": "José"}
    refused = await staff.post("/console/book/at", data=jose)
    assert refused.status_code == 409
    assert named(refused.text, "at") == ["01:45", "01:00/2", "01:15/2", "01:45/2", "02:00", "02:15"]
    assert "01:15 EST</button>" in words(refused.text)
    asked = form_in(refused.text)
    assert asked["time"] == ["01:30/2"]
    read_back = await staff.post("/console/override", data={**asked, "reason": "In pain"})
    over = await staff.post("/console/override", data=form_in(read_back.text))
    assert await start_of(agent, over.headers["Location"].split("/")[-1].split("?")[0]) == SECOND
    pressed = await staff.post("/console/book/at", data={**jose, "at": "01:00/2", "key": "k2"})
    assert pressed.status_code == 303, pressed.text
    shown = await calendar(staff, date="2027-11-07")
    clocks = Document(shown).having("data-clocks")[0].attributes["data-clocks"].split(",")
    assert clocks[clocks.index("01:55") :][:2] == ["01:55", "01:00/2"]
    assert "data-clocks" not in await calendar(staff, date="2027-11-08")


async def test_a_time_that_the_clocks_skip_is_refused(
    world: World, night: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    staff, agent = night
    booked = await booked_at(agent, FIRST)
    ada = await patient_id(agent)
    skipped = {**NINE, "date": "2028-03-12", "time": "02:30"}  # from 02:00 to 03:00
    form = {**skipped, "search": "lovel", "patient": ada, "visit": "21-101", "key": "k1"}
    refused = await staff.post("/console/book/at", data=form)
    moved = await staff.get(f"/console/appointments/{booked}/move/at", params=skipped)
    assert (refused.status_code, moved.status_code) == (422, 200)
    for page in (refused, moved):
        assert "The clocks skip this time on that day." in page.text
        assert named(page.text, "time") == ["02:30"]
        assert 'action="/console/override"' not in page.text
    assert 'name="slot"' not in moved.text
    assert named(refused.text, "patient") == [ada], "what was chosen is still there"
    for path in ("/override", "/walk-in"):
        refused = await staff.post(f"/console{path}", data={**form, "reason": "In pain", "sure": "yes"})
        assert refused.status_code == 422
        assert "The clocks skip this time on that day." in refused.text
    assert not entries(await calendar(staff, date="2028-03-12"))


async def test_an_appointment_is_moved_from_one_occurrence_of_its_time_to_the_other(
    night: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    staff, agent = night
    booked = await booked_at(agent, FIRST)
    address = f"/console/appointments/{booked}/move"
    for time, start, zone in (("01:30/2", SECOND, "EST"), ("01:30", FIRST, "EDT")):
        assert f'action="{address}"' not in (await staff.get(f"{address}/at")).text, "it stays"
        shown = await staff.get(f"{address}/at", params={"time": time})
        assert f"WhenSunday, 7 November 2027, 01:30–01:45 {zone}" in words(Document(shown.text).tagged("main")[0].text)
        fields = dict(HIDDEN.findall(shown.text.split(f'action="{address}"', 1)[1]))
        assert (await staff.post(address, data=fields)).status_code == 303
        assert await start_of(agent, booked) == start


async def test_an_override_of_a_slot_keeps_its_occurrence(
    night: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    staff, agent = night
    [slot] = [each["id"] for each in await slots(agent, **TURNED_BACK) if each["start"] == SECOND]
    await booked_at(agent, SECOND)
    alan = await patient_id(agent, "Alan")
    taken = await staff.get(f"/console/book/{alan}/confirm", params={"slot": slot})
    assert form_in(taken.text)["time"] == ["01:30/2"]


async def test_a_walk_in_in_the_second_occurrence_is_dated_now(
    world: World, night: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    _, agent = night
    world.clock.now = datetime(2027, 11, 7, 6, 32, tzinfo=UTC)  # 01:32 again
    staff = await signed_in(world)
    await world.renew(agent)
    shown = (await staff.get("/console/walk-in")).text
    assert named(shown, "time") == ["01:30"]
    [zone] = [each for each in Document(shown).tagged("option") if each.text == "EST"]
    assert "selected" in zone.attributes
    form = {**NINE, "date": "2027-11-07", "time": "01:30", "occurrence": zone.attributes["value"], "visit": "21-101"}
    form |= {"patient": await patient_id(agent), "reason": "Walk-in"}
    read_back = await staff.post("/console/walk-in", data=form)
    booked = await staff.post("/console/override", data=form_in(read_back.text))
    assert await start_of(agent, booked.headers["Location"].split("/")[-1].split("?")[0]) == SECOND
