"""Live updates of an open calendar page: everything that changes on it arrives, and nothing else is read again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import jinja2
import pytest
from starlette.requests import Request

from frontdesk.console import rendering
from frontdesk.console.times import TimeFormats
from frontdesk.systems.native.system import NativeSystem
from tests.console.desk import Document, calendar, hold_first_slot, overbooked, words
from tests.support.world import PRACTICE, World, book, confirmed, patient_id, slots

DENTIST = {"who": "provider-10", "from": "2026-11-16", "from_time": "09:00", "to_time": "12:00", "reason": "Dentist"}
CHRISTMAS = "closures: [{from: 2026-12-25, to: 2026-12-25, reason: Christmas Day}]"


@dataclass
class OpenPage:
    """A page that takes updates as the script does."""

    browser: httpx.AsyncClient
    tag: str = ""
    columns: dict[str, str] = field(default_factory=dict)  # what each says, by its tag
    proposals: str = ""

    async def open(self) -> "OpenPage":
        html = await calendar(self.browser)
        self.tag = Document(html).having("data-tag")[0].attributes["data-tag"]
        self._take(html)
        return self

    async def look(self, **headers: str) -> httpx.Response:
        known = {"If-None-Match": f'"{self.tag}"', "X-Calendar-Columns": ",".join(self.columns)}
        answer = await self.browser.get("/console/calendar/grid?date=2026-11-16", headers={**known, **headers})
        assert answer.status_code in (200, 304), answer.text
        self.tag = answer.headers["ETag"].strip('"')
        if answer.status_code == 200:
            self._take(answer.text)
        return answer

    def _take(self, html: str) -> None:
        document = Document(html)
        [waiting] = document.having("data-waiting")
        self.proposals = words(waiting.text)
        if document.having("data-cal"):
            found = [(each.attributes["data-column"], each) for each in document.having("data-column")]
            self.columns = {
                tag: self.columns[tag] if "data-unchanged" in each.attributes else words(each.text)
                for tag, each in found
            }


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    return await world.client()


@pytest.fixture
async def page(staff: httpx.AsyncClient) -> OpenPage:
    return await OpenPage(staff).open()


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, appointments can no longer be read."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the appointments were read")

    return lambda: monkeypatch.setattr(NativeSystem, "list_appointments", refuse)


async def test_every_change_of_what_the_page_shows_arrives(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient, page: OpenPage
) -> None:
    ada, booked = await patient_id(agent), ""

    async def book_it() -> None:
        nonlocal booked
        booked = await book(agent)

    async def move() -> None:
        [slot, *_] = await slots(agent, providerId=11)
        await confirmed(agent, "POST", f"/api/appointments/{booked}/reschedule", {"slotId": slot["id"]})

    async def let_it_expire() -> None:
        world.clock.advance(minutes=6)

    def change_patient(**fields: str) -> Callable[[], Awaitable[Any]]:
        return lambda: confirmed(agent, "PATCH", f"/api/patients/{ada}", fields)

    changes: dict[str, Callable[[], Awaitable[Any]]] = {
        "booked": book_it,
        "attendance confirmed": lambda: confirmed(agent, "POST", f"/api/appointments/{booked}/confirm", {}),
        "last name changed": change_patient(lastName="King"),
        "moved to another provider": move,
        "time held": lambda: hold_first_slot(world),
        "hold expired": let_it_expire,
        "time blocked": lambda: staff.post("/console/blocks", data=DENTIST),
        "closed": lambda: world.import_file(
            PRACTICE.replace("SLUG", "harbor").replace(CHRISTMAS, CHRISTMAS.replace("12-25", "11-16"))
        ),
        "booked against the rules": lambda: overbooked(staff, agent, "Alan"),
        "cancelled": lambda: staff.post(f"/console/appointments/{booked}/cancel", data={"key": "k"}),
    }
    for what, change in changes.items():
        before = dict(page.columns)
        await change()
        answer = await page.look()
        fresh = await OpenPage(staff).open()
        assert (answer.status_code, page.columns) == (200, fresh.columns), what
        assert page.columns != before, what
        assert (await page.look()).status_code == 304, what


async def test_a_phone_number_that_only_the_card_shows_arrives(agent: httpx.AsyncClient, page: OpenPage) -> None:
    await book(agent)
    await page.look()
    await confirmed(agent, "PATCH", f"/api/patients/{await patient_id(agent)}", {"phone": "555 010 0777"})
    assert "0777" in (await page.look()).text


async def test_the_checksum_does_not_return_to_an_earlier_value_when_what_it_describes_does(
    world: World, agent: httpx.AsyncClient, page: OpenPage
) -> None:
    """Otherwise a page that read its day during the change, and its checksum before, would keep what it read."""
    ada = await patient_id(agent)
    await book(agent)
    await page.look()

    async def hold_until_it_expires() -> None:
        await hold_first_slot(world)
        world.clock.advance(minutes=6)

    async def rename_and_back() -> None:
        for name in ("King", "Lovelace"):
            world.clock.advance(seconds=1)
            await confirmed(agent, "PATCH", f"/api/patients/{ada}", {"lastName": name})

    for change in (hold_until_it_expires, rename_and_back):
        columns, (checksum, *_) = page.columns, page.tag.split(".")
        await change()
        await page.look()
        assert page.columns == columns
        assert page.tag.split(".")[0] != checksum, change.__name__


async def test_appointments_of_other_days_are_not_read(
    agent: httpx.AsyncClient, page: OpenPage, no_reading: Callable[[], None]
) -> None:
    no_reading()
    assert (await page.look()).status_code == 304
    await book(agent, **{"from": "2026-11-17", "to": "2026-11-17"})
    assert (await page.look()).status_code == 304


async def test_of_a_page_on_which_only_proposals_have_changed_the_grid_is_neither_read_nor_sent(
    agent: httpx.AsyncClient, page: OpenPage, no_reading: Callable[[], None]
) -> None:
    no_reading()
    body = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    assert (await agent.post("/api/appointments", json=body)).status_code == 428
    answer = await page.look()
    assert answer.status_code == 200
    assert Document(answer.text).having("data-cal") == []
    assert page.proposals.startswith("1 proposal waits for confirmation")
    assert (await page.look()).status_code == 304


async def test_an_appointment_that_a_filter_hides_is_read_once(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient, no_reading: Callable[[], None]
) -> None:
    address = "/console/calendar/grid?date=2026-11-16&provider=11&provider=12"
    tag = (await staff.get(address)).headers["ETag"]
    await book(agent)  # with provider 10
    same = await staff.get(address, headers={"If-None-Match": tag})
    assert same.status_code == 304
    assert same.headers["ETag"] != tag
    no_reading()
    assert (await staff.get(address, headers={"If-None-Match": same.headers["ETag"]})).status_code == 304


async def test_other_calls_go_on_while_a_long_page_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% for number in range(5000) %}{{ number }} {% endfor %}"
    environment = jinja2.Environment(loader=jinja2.DictLoader({"long": template}), autoescape=True)
    monkeypatch.setattr(rendering, "_templates", lambda _formats: environment)
    turns = 0

    async def other_calls() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(other_calls())
    request = Request({"type": "http", "headers": []})
    response = await rendering.render_in_steps(request, "long", TimeFormats())
    others.cancel()
    assert bytes(response.body).decode() == environment.get_template("long").render()
    assert turns > 10
