"""A provider is away: the time is blocked, appointments get new times, patients are called, and all can be undone."""

import asyncio
import re
from dataclasses import dataclass

import httpx
import pytest

from frontdesk.features.absences import absences
from frontdesk.features.absences.store import AbsenceStore
from frontdesk.store.database import DatabaseUnavailable
from tests.console.desk import Document, calendar, records, words
from tests.console.signing_in import signed_in
from tests.support.world import World, book, confirmed, patient_id, slots

MONDAY = {"who": "provider-10", "from": "2026-11-16", "reason": "Flu", "do": "start"}


@dataclass
class Row:
    state: str
    text: str
    options: dict[str, str]  # texts by value, in order
    chosen: str | None


@dataclass
class Booked:
    """Ada and José in the morning, Alan in the afternoon; all of them with the provider who falls ill."""

    agent: httpx.AsyncClient
    ada: str
    jose: str
    alan: str


@pytest.fixture
async def booked(world: World) -> Booked:
    agent = await world.client()
    ada, jose = await book(agent), await book(agent, "José")
    for slot in await slots(agent, visitTypeId=22, procedureId=103):
        if slot["start"].startswith("2026-11-16T13:00"):
            body = {"patientId": await patient_id(agent, "Alan"), "slotId": slot["id"]}
            alan = (await confirmed(agent, "POST", "/api/appointments", body)).json()["appointmentId"]
    return Booked(agent, ada, jose, alan)


def rows(html: str) -> dict[str, Row]:
    """The appointments of an absence by id."""
    found: dict[str, Row] = {}
    for part in html.split('<li class="away-row"')[1:]:
        document = Document('<li class="away-row"' + part.split("</li>", 1)[0] + "</li>")
        item, options = document.elements[0], document.tagged("option")
        found[item.attributes["data-row"]] = Row(
            item.attributes["data-state"],
            words(item.text),
            {each.attributes["value"]: words(each.text) for each in options},
            next((each.attributes["value"] for each in options if "selected" in each.attributes), None),
        )
    return found


async def start(desk: httpx.AsyncClient, **form: str) -> str:
    """The path of the page with the appointments."""
    answer = await desk.post("/console/away", data={**MONDAY, **form})
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def as_proposed(html: str) -> dict[str, str]:
    return {f"choice-{each}": row.chosen for each, row in rows(html).items() if row.chosen is not None}


async def apply(desk: httpx.AsyncClient, path: str, form: dict[str, str] | None = None) -> str:
    answer = await desk.post(f"{path}/apply", data=as_proposed((await desk.get(path)).text) if form is None else form)
    assert answer.status_code == 303, answer.text
    return (await desk.get(path)).text


async def continued(desk: httpx.AsyncClient, path: str) -> str:
    """The page after its script has gone on as long as there is something to do."""
    while "data-continue" in (html := (await desk.get(path)).text):
        assert (await desk.post(f"{path}/apply")).status_code == 303
    return html


def notices(html: str) -> list[str]:
    return [words(each.text) for each in Document(html).of_class("notice")]


async def open_times(agent: httpx.AsyncClient) -> list[str]:
    return [each["start"][11:16] for each in await slots(agent, visitTypeId=22, procedureId=103)]


async def place(agent: httpx.AsyncClient, appointment: str) -> tuple[int, str, str]:
    found = (await agent.get(f"/api/appointments/{appointment}")).json()
    return found["providerId"], found["start"][:16], found["status"]


async def undo(desk: httpx.AsyncClient, path: str, **form: str) -> str:
    answer = await desk.post(f"{path}/undo", data=form)
    assert answer.status_code == 303, answer.text
    return (await desk.get(path)).text


async def test_every_appointment_gets_a_time_and_each_change_is_an_ordinary_write(
    world: World, staff: httpx.AsyncClient, booked: Booked
) -> None:
    assert "/console/away?date=2026-11-16" in await calendar(staff)
    shown = (await staff.get("/console/away?provider=10&date=2026-11-16")).text
    assert "3 appointments are booked in this time" in shown
    path = await start(staff)
    assert await start(staff) == path, "the same form again finds the absence"
    assert await slots(booked.agent) == []
    made = [each["operation"] for each in await records(world) if each["operation"].startswith("console.")]
    assert made.index("console.block_time") < made.index("console.start_absence"), "blocked first"

    html = (await staff.get(path)).text
    assert "nobody can book into it" in html
    found = rows(html)
    assert [found[each].options[found[each].chosen or ""] for each in (booked.ada, booked.jose, booked.alan)] == [
        "Move to 09:00, Dr. María Núñez",
        "Move to 09:15, Dr. María Núñez",
        "Move to 11:45, Dr. María Núñez",
    ]
    assert "Move to Tue 17 Nov 09:00, Dr. Robert Chen" in found[booked.ada].options.values()
    form = {**as_proposed(html), f"choice-{booked.alan}": "cancel"}
    answer = await staff.post(f"{path}/apply", data=form)
    html = (await staff.get(path)).text
    assert {each: row.state for each, row in rows(html).items()} == {
        booked.ada: "moved", booked.jose: "moved", booked.alan: "cancelled",
    }  # fmt: skip
    assert "3 of 3 done" in words(Document(html).of_class("away-progress")[0].text)
    assert await place(booked.agent, booked.jose) == (11, "2026-11-16T09:15", "booked")
    assert await place(booked.agent, booked.alan) == (10, "2026-11-16T13:00", "cancelled")
    act = await records(world, request_id=answer.headers["X-SVC-TRACE-ID"])
    assert [each["operation"] for each in act] == [
        "console.reassign_appointments", "reschedule_appointment", "reschedule_appointment", "cancel_appointment",
    ]  # fmt: skip
    assert {each["outcome"] for each in act} == {"executed"}

    trail = await (await signed_in(world, role="admin")).get("/console/audit")
    text = words(Document(trail.text).tagged("main")[0].text)
    assert "Ana blocked time of Dr. Robert Chen" in text
    assert "Ana recorded an absence of Dr. Robert Chen" in text
    assert "Ana reassigned the appointments of Dr. Robert Chen" in text

    await staff.post(f"{path}/apply", data=form)
    assert len(await records(world, operation="reschedule_appointment", outcome="executed")) == 2, "sent again"
    assert f"{path}/calls" in await calendar(staff)


async def test_patients_are_called_and_all_is_taken_back(
    world: World, staff: httpx.AsyncClient, booked: Booked
) -> None:
    path = await start(staff)
    html = (await staff.get(path)).text
    await apply(staff, path, {**as_proposed(html), f"choice-{booked.alan}": "cancel"})
    listed = Document((await staff.get(f"{path}/calls")).text).of_class("call")
    assert [words(each.text) for each in listed] == [
        "Ada Lovelace +1 555 010 0199 Was Mon 16 Nov 09:00, Dr. Robert Chen."
        " Now Mon 16 Nov 09:00, Dr. María Núñez. Called",
        "José Núñez-O'Brien +1 555 010 0177 Was Mon 16 Nov 09:15, Dr. Robert Chen."
        " Now Mon 16 Nov 09:15, Dr. María Núñez. Called",
        "Alan Turing +1 555 010 0123 Was Mon 16 Nov 13:00, Dr. Robert Chen. Cancelled. Called",
    ]

    async def tick(appointment: str, called: str = "yes") -> str:
        page = (await staff.get(f"{path}/calls")).text
        [place_shown] = re.findall(rf'value="{appointment}"><input type="hidden" name="place" value="([^"]+)"', page)
        form = {"appointment": appointment, "place": place_shown, "called": called}
        assert (await staff.post(f"{path}/calls", data=form)).status_code == 303
        return words(Document((await staff.get(f"{path}/calls")).text).having("data-call", appointment)[0].text)

    for appointment in (booked.ada, booked.alan):
        assert "Called by Ana, Sun 15 Nov 2026, 03:00" in await tick(appointment)
    assert "Called by" not in await tick(booked.alan, "no")
    assert "Whom to call (2)" in (await staff.get(path)).text
    [made] = [
        each for each in await records(world, operation="console.record_call") if booked.ada in each["subject_ids"]
    ]
    assert made["outcome"] == "executed"

    html = await undo(staff, path, appointment=booked.ada)
    assert (rows(html)[booked.ada].state, rows(html)[booked.ada].chosen) == ("left", "leave")
    assert await place(booked.agent, booked.ada) == (10, "2026-11-16T09:00", "booked")
    assert await slots(booked.agent) == [], "the time stays blocked"
    assert "call again" in (await staff.get(f"{path}/calls")).text

    html = await undo(staff, path, all="yes")
    assert {row.state for row in rows(html).values()} == {"left"}
    assert "This absence was undone. The time is open for booking again." in html
    assert not Document(html).of_class("away-progress"), "there is nothing left to do"
    assert await place(booked.agent, booked.jose) == (10, "2026-11-16T09:15", "booked")
    assert await place(booked.agent, booked.alan) == (10, "2026-11-16T13:00", "booked")
    assert (await slots(booked.agent))[0]["start"].startswith("2026-11-16T09:30")
    assert path not in await calendar(staff)
    again = await staff.post(f"{path}/apply", data={f"choice-{booked.ada}": "cancel"})
    assert again.status_code == 409
    assert await start(staff) != path, "another absence can follow"


async def test_a_time_that_was_taken_meanwhile_is_proposed_anew(
    world: World, staff: httpx.AsyncClient, booked: Booked
) -> None:
    path = await start(staff)
    html = (await staff.get(path)).text
    wanted = next(each for each, text in rows(html)[booked.ada].options.items() if "Amara Okafor" in text)
    taken = await book(booked.agent, "Alan", providerId=12)
    form = {f"choice-{booked.ada}": wanted, f"choice-{booked.jose}": "leave"}
    html = await apply(staff, path, form)
    lost = rows(html)[booked.ada]
    assert lost.state == "open"
    assert "has been taken by somebody else" in lost.text
    assert wanted not in lost.options
    assert "1 failed" in html.replace('<strong class="bad">1</strong>', "1")
    assert await place(booked.agent, taken) == (12, "2026-11-16T09:00", "booked")
    assert rows(html)[booked.jose].chosen == "leave"

    both = next(iter(lost.options))
    html = await apply(staff, path, {f"choice-{each}": both for each in (booked.ada, booked.jose)})
    assert (rows(html)[booked.ada].state, rows(html)[booked.jose].state) == ("moved", "moved"), "it has two lanes"
    own_time = next(each for each, text in rows(html)[booked.alan].options.items() if "11:30" in text)
    await apply(staff, path, {f"choice-{booked.alan}": own_time})
    assert (await place(booked.agent, booked.alan))[:2] == (11, "2026-11-16T11:30")


async def test_a_bulk_change_that_was_cut_off_is_finished_exactly_once(
    world: World, staff: httpx.AsyncClient, booked: Booked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await start(staff)
    form = as_proposed((await staff.get(path)).text)

    async def cut_off(*_: object) -> None:
        raise DatabaseUnavailable

    with monkeypatch.context() as patched:  # after the first write, before what became of it is stored
        patched.setattr(AbsenceStore, "finish", cut_off)
        answer = await staff.post(f"{path}/apply", data=form)
        assert answer.status_code == 502
    html = (await staff.get(path)).text
    assert [row.state for row in rows(html).values()] == ["moved", "pending", "pending"]
    assert "data-continue" in html
    monkeypatch.setattr(absences, "BATCH_SIZE", 1)
    colleague = await signed_in(world, name="Ben")
    await asyncio.gather(*(each.post(f"{path}/apply", data={}) for each in (staff, colleague, staff)))
    await apply(colleague, path, form)
    html = await continued(staff, path)
    assert [row.state for row in rows(html).values()] == ["moved"] * 3
    assert "data-continue" not in html
    for each in (booked.ada, booked.jose, booked.alan):
        moves = await records(world, operation="reschedule_appointment", outcome="executed")
        assert sum(each in made["subject_ids"] for made in moves) == 1
        assert len({made["request_id"] for made in moves}) == 1
    html = await undo(staff, path, appointment=booked.ada)
    assert rows(html)[booked.ada].state == "left", "also what was cut off can be taken back"
    html = await undo(staff, path, all="yes")
    assert [row.state for row in rows(html).values()] == ["left", "left", "pending"]
    assert await slots(booked.agent) == [], "the time is opened last"
    html = await continued(staff, path)
    assert {row.state for row in rows(html).values()} == {"left"}
    assert await slots(booked.agent) != []


async def test_what_cannot_be_taken_back_is_told(world: World, staff: httpx.AsyncClient, booked: Booked) -> None:
    path = await start(staff)
    html = (await staff.get(path)).text
    await apply(staff, path, {**as_proposed(html), f"choice-{booked.alan}": "cancel"})
    opened = {"who": "provider-10", "starts": "2026-11-16T00:00", "ends": "2026-11-17T00:00"}
    await staff.post("/console/blocks/remove", data=opened)
    assert "Block it again" in (await staff.get(path)).text
    assert (await slots(booked.agent))[0]["start"].startswith("2026-11-16T09:00")
    await book(booked.agent, "Alan")  # at Ada's time before
    later = (await slots(booked.agent, providerId=11))[-1]["id"]
    await confirmed(booked.agent, "POST", f"/api/appointments/{booked.jose}/reschedule", {"slotId": later})
    found = rows(await undo(staff, path, all="yes"))
    assert "the earlier time is no longer free" in found[booked.ada].text
    assert "has been changed since" in found[booked.jose].text
    assert found[booked.alan].state == "left"
    assert await place(booked.agent, booked.ada) == (11, "2026-11-16T09:00", "booked")

    world.clock.advance(hours=30)  # nine o'clock on Monday
    staff = await signed_in(world)
    found = rows((await staff.get(path)).text)
    assert "Undo" not in found[booked.ada].text
    await undo(staff, path, appointment=booked.ada)
    assert "the earlier time has passed" in (await staff.get(path)).text


async def test_what_the_patient_has_cancelled_stays_so(staff: httpx.AsyncClient, booked: Booked) -> None:
    path = await start(staff)
    await confirmed(booked.agent, "POST", f"/api/appointments/{booked.alan}/cancel", {"reason": "Feeling better"})
    await apply(staff, path, {f"choice-{booked.alan}": "cancel"})
    found = rows(await undo(staff, path, all="yes"))
    assert "has been changed since" in found[booked.alan].text
    assert (await booked.agent.get(f"/api/appointments/{booked.alan}")).json()["status"] == "cancelled"


async def test_an_absence_inside_another_is_that_one_and_opens_with_it(
    staff: httpx.AsyncClient, booked: Booked
) -> None:
    path = await start(staff)
    assert await start(staff, from_time="09:30") == path
    await undo(staff, path, all="yes")
    await continued(staff, path)
    assert len(await slots(booked.agent, visitTypeId=22, procedureId=103)) > 10, "nothing else is left blocked"


async def test_an_absence_beside_another_keeps_nothing_blocked(staff: httpx.AsyncClient, booked: Booked) -> None:
    monday = await start(staff)
    await start(staff, **{"from": "2026-11-17"})
    await undo(staff, monday, all="yes")
    await continued(staff, monday)
    assert await slots(booked.agent) != []
    tuesday = {"from": "2026-11-17", "to": "2026-11-17"}
    assert await slots(booked.agent, **tuesday) == []


async def test_overlapping_absences_open_their_own_time(staff: httpx.AsyncClient, booked: Booked) -> None:
    morning = await start(staff, from_time="08:00", to_time="12:00")
    later = await start(staff, from_time="11:00", to_time="14:00", reason="Away")
    await undo(staff, morning, all="yes")
    html = await continued(staff, morning)
    assert notices(html) == [
        "This absence was undone.",
        "Still blocked by another absence: Mon 16 Nov 2026, 11:00–12:00 · Away",
    ]
    assert f'href="{later}"' in html
    found = await open_times(booked.agent)
    assert found[0] < "11:00"
    assert not [each for each in found if "11:00" <= each < "14:00"]
    await undo(staff, later, all="yes")
    html = await continued(staff, later)
    assert notices(html) == ["This absence was undone. The time is open for booking again."]
    assert notices(await continued(staff, morning)) == notices(html)
    assert "11:00" in await open_times(booked.agent)


async def test_a_short_absence_stays_blocked_when_the_whole_day_is_undone(
    staff: httpx.AsyncClient, booked: Booked
) -> None:
    short = await start(staff, from_time="11:00", to_time="11:30")
    day = await start(staff)
    assert day != short
    await undo(staff, day, all="yes")
    html = await continued(staff, day)
    assert "Still blocked by another absence: Mon 16 Nov 2026, 11:00–11:30 · Flu" in notices(html)
    assert "open for booking again" not in html
    without_short = await open_times(booked.agent)
    assert without_short
    assert not {"11:00", "11:15"} & set(without_short)
    await undo(staff, short, all="yes")
    await continued(staff, short)
    assert {"11:00", "11:15"} < set(await open_times(booked.agent))


async def test_an_absence_that_is_recorded_again_meanwhile_keeps_its_block(
    staff: httpx.AsyncClient, booked: Booked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absences, "BATCH_SIZE", 1)
    first = await start(staff)
    await apply(staff, first)
    await continued(staff, first)
    assert "data-continue" in await undo(staff, first, all="yes")
    again = await start(staff)
    assert again != first
    html = await continued(staff, first)
    assert "Still blocked by another absence: Mon 16 Nov 2026 · Flu" in notices(html)
    assert f'href="{again}"' in html
    assert await slots(booked.agent) == []


async def test_time_that_was_blocked_without_an_absence_stays_so(staff: httpx.AsyncClient, booked: Booked) -> None:
    block = {"who": "provider-10", "from": "2026-11-16", "from_time": "11:00", "to": "2026-11-16", "to_time": "12:00"}
    assert (await staff.post("/console/blocks", data={**block, "anyway": "yes"})).status_code == 303
    path = await start(staff)
    await undo(staff, path, all="yes")
    html = await continued(staff, path)
    assert "Still blocked, see Blocked time: Mon 16 Nov 2026, 11:00–12:00" in notices(html)
    assert await slots(booked.agent) != []


async def test_only_times_that_the_patient_may_have_are_proposed_first(
    world: World, staff: httpx.AsyncClient, booked: Booked
) -> None:
    last = (await slots(booked.agent, providerId=12))[-1]
    body = {"patientId": await patient_id(booked.agent, "Alan"), "slotId": last["id"]}
    assert (await confirmed(booked.agent, "POST", "/api/appointments", body)).status_code == 201  # at 11:45
    world.clock.advance(hours=30)  # nine o'clock on Monday
    staff = await signed_in(world)
    await staff.post(f"/console/appointments/{booked.jose}/record", data={"status": "arrived", "key": "here"})
    path = await start(staff, from_time="08:00")
    found = rows((await staff.get(path)).text)
    assert found[booked.alan].options[found[booked.alan].chosen or ""] == "Move to 11:30, Dr. María Núñez"
    assert list(found[booked.ada].options) == ["cancel", "leave"], "it has begun"
    assert found[booked.ada].chosen == "leave"
    assert (found[booked.jose].state, found[booked.jose].chosen) == ("seen", None)
    assert (await staff.post("/console/away", data={**MONDAY, "who": "provider-99"})).status_code == 404
    long = await staff.post("/console/away", data={**MONDAY, "to": "2026-12-31"})
    assert long.status_code == 422
    assert "at most 31 days" in long.text
    assert (await staff.post(f"{path}/apply", data={f"choice-{booked.ada}": "slt_forged"})).status_code == 404
    assert (await staff.post(f"{path}/undo", data={"appointment": booked.ada})).status_code == 409
    stranger = await signed_in(world, practice="other")
    assert (await stranger.get(path)).status_code == 404
