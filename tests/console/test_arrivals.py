"""The arrivals board: where each patient is, the steps between, undo, and what looking at it leaves behind."""

import httpx
import pytest

from tests.console.desk import Document, records, stored, words
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import World, book

BOARD = "/console/arrivals"


@pytest.fixture
async def booked(world: World) -> str:
    """Ada's appointment at nine on Monday; the clock stands at five to nine."""
    booked = await book(await world.client())
    world.clock.advance(hours=29, minutes=55)
    return booked


@pytest.fixture
async def desk(world: World, booked: str) -> httpx.AsyncClient:
    return await signed_in(world)


def places(html: str) -> dict[str, str]:
    """The list that each appointment is in."""
    found, current = {}, ""
    for element in Document(html).elements:
        if "board-place" in element.classes:
            current = element.attributes["aria-labelledby"]
        if "data-visit" in element.attributes:
            found[element.attributes["data-visit"]] = current
    return found


async def place(desk: httpx.AsyncClient, appointment: str) -> str:
    return places((await desk.get(BOARD)).text)[appointment]


async def step(desk: httpx.AsyncClient, appointment: str, name: str, key: str = "") -> httpx.Response:
    return await desk.post(f"{BOARD}/{appointment}", data={"step": name, "key": key or f"key of {name}"})


def shown_steps(html: str) -> list[str]:
    return [
        each.attributes["value"] for each in Document(html).tagged("input") if each.attributes.get("name") == "step"
    ]


async def test_a_patient_goes_from_expected_to_done_and_every_step_is_recorded_once(
    world: World, desk: httpx.AsyncClient, booked: str
) -> None:
    assert await place(desk, booked) == "expected"
    world.clock.advance(minutes=6)
    late = (await desk.get(BOARD)).text
    assert places(late) == {booked: "late"}
    assert shown_steps(late) == ["arrived", "noShow"]
    for name, there, notice in (
        ("arrived", "waiting", "arrival_recorded"),
        ("call_in", "with_provider", "called_in"),
        ("completed", "done", "visit_completed"),
    ):
        world.clock.advance(minutes=2)
        for _ in range(2):  # the same form, sent twice
            answer = await step(desk, booked, name)
            assert answer.headers["Location"] == f"{BOARD}?done={booked}&notice={notice}"
        after = (await desk.get(answer.headers["Location"])).text
        assert places(after) == {booked: there}
        assert Document(after).having("data-undo"), "the step can be undone from here"
    for operation in ("console.record_arrived", "console.call_in", "console.record_completed"):
        [made] = await records(world, operation=operation)
        assert (made["outcome"], made["actor"]) == ("executed", desk.headers[TEST_STAFF])
        assert booked in made["subject_ids"]
    page = words(Document((await desk.get(f"/console/appointments/{booked}")).text).having("id", "appointment")[0].text)
    assert "With the provider by Ana" in page


async def test_each_step_is_undone_to_the_place_before_it(world: World, desk: httpx.AsyncClient, booked: str) -> None:
    world.clock.advance(minutes=6)
    for name in ("arrived", "call_in", "completed"):
        await step(desk, booked, name)
    world.clock.advance(minutes=2)
    undone = []
    for _ in range(2):
        undo = shown_steps((await desk.get(BOARD)).text)[-1]
        await step(desk, booked, undo, key=f"undo {undo}")
        undone.append((undo, await place(desk, booked)))
    assert undone == [("arrived", "with_provider"), ("return_to_waiting", "waiting")]
    html = (await desk.get(BOARD)).text
    assert "waiting since 09:01" in words(Document(html).of_class("visit-since")[0].text), "not since the undo"
    world.clock.advance(minutes=2)
    refused = await step(desk, booked, "restore", key="late undo")
    assert refused.headers["Location"] == f"/console/appointments/{booked}?notice=undo_needs_reason"
    await desk.post(f"/console/appointments/{booked}/undo", data={"reason": "Wrong Ada", "key": "why"})
    assert await place(desk, booked) == "late"
    assert await stored(world, "SELECT FROM appointment_attendance WHERE practice_id = $1") == []
    world.clock.advance(minutes=1)
    await step(desk, booked, "noShow")
    assert await place(desk, booked) == "no_show"
    await step(desk, booked, "restore", key="at once")
    assert await place(desk, booked) == "late"


async def test_only_somebody_who_has_arrived_is_called_in(desk: httpx.AsyncClient, booked: str) -> None:
    refused = await step(desk, booked, "call_in")
    assert refused.status_code == 409
    assert places(refused.text) == {booked: "expected"}
    assert Document(refused.text).having("role", "alert")
    assert (await step(desk, booked, "noShow")).status_code == 409, "the appointment has not begun"
    assert (await step(desk, booked, "dance")).status_code == 404
    assert (await step(desk, "apt_" + "0" * 22, "call_in")).status_code == 404


async def test_the_board_of_another_practice_and_location_is_empty(
    world: World, desk: httpx.AsyncClient, booked: str
) -> None:
    stranger = await signed_in(world, practice="other")
    assert places((await stranger.get(BOARD)).text) == {}
    assert (await step(stranger, booked, "arrived")).status_code == 404
    assert places((await desk.get(BOARD, params={"location": 2})).text) == {}
    assert places((await desk.get(BOARD, params={"provider": 11})).text) == {}
    assert places((await desk.get(BOARD, params={"provider": 10, "location": 1})).text) == {booked: "expected"}


async def test_an_unchanged_board_is_not_sent_and_leaves_no_record(
    world: World, desk: httpx.AsyncClient, booked: str
) -> None:
    first = await desk.get(f"{BOARD}/board")
    known = {"If-None-Match": first.headers["ETag"]}
    world.clock.advance(minutes=3)
    assert (await desk.get(f"{BOARD}/board", headers=known)).status_code == 304
    [look] = await records(world, operation="console.arrivals")
    assert len(look["subject_ids"]) == 1
    assert look["subject_ids"][0].startswith("pat_")
    world.clock.advance(minutes=3)
    now_late = await desk.get(f"{BOARD}/board", headers=known)
    assert now_late.status_code == 200
    assert places(now_late.text) == {booked: "late"}
    await step(desk, booked, "arrived")
    assert (await desk.get(f"{BOARD}/board", headers={"If-None-Match": now_late.headers["ETag"]})).status_code == 200


async def test_the_board_is_sent_compressed_and_repeats_nothing_that_a_link_can_choose_freely(
    desk: httpx.AsyncClient, booked: str
) -> None:
    for path in (BOARD, f"{BOARD}/board"):
        query = dict.fromkeys(("x", "done", "notice", "step"), "Lovelace7531902")
        answer = await desk.get(path, params={**query, "provider": "753190246"})
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "Ada" in answer.text
        assert "7531902" not in answer.text
