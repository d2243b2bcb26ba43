"""The cards in Chromium, inside the host that the extension's authors wrote: a person presses their buttons."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, FrameLocator, Page, Route, expect

from tests.doors.elicitation_hosts import CARDS, modern
from tests.doors.mcp_speech import MODERN, result
from tests.doors.test_elicitation import booked, booking
from tests.engine.test_consent import demand, recorded
from tests.mcp.consenting import chromium
from tests.mcp.node_clients import NodeClients
from tests.support.world import MONDAY, World

pytestmark = pytest.mark.heavy

HOST = Path(__file__).with_name("app_host.html")
WAIT_MS = 30_000
SEARCH = {
    "providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101,
    "from": MONDAY.isoformat(), "to": MONDAY.isoformat(),
}  # fmt: skip


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as launched:
        yield launched


@pytest.fixture
async def agent(world: World) -> httpx.AsyncClient:
    await demand(world, bookAppointment="card")
    return await world.client(trusted_to_ask=True)


class Host:
    """A host with a card on its page. `requested` are the addresses that the card, or the page, asked for."""

    def __init__(self, page: Page, client: httpx.AsyncClient, modules: Path) -> None:
        self._client = client
        self._modules = modules
        self.page = page
        self.requested: list[str] = []
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    @property
    def card(self) -> FrameLocator:
        return self.page.frame_locator("#app")

    async def open(self) -> None:
        await self.page.route("**/*", self._serve)
        await self.page.expose_function("callTool", self._call_tool)
        await self.page.goto("http://host.test/")
        await self.page.wait_for_function("window.ready === true", timeout=WAIT_MS)
        self.requested.clear()

    async def show(self, tool: str, arguments: dict[str, Any], theme: str = "light") -> None:
        tools = (await result(self._client, "tools/list", version=MODERN))["tools"]
        [uri] = [each["_meta"]["ui"]["resourceUri"] for each in tools if each["name"] == tool]
        [document] = (await result(self._client, "resources/read", {"uri": uri}, MODERN))["contents"]
        answer = await modern(self._client, tool, arguments, CARDS)
        given = [document["text"], theme, arguments, answer]
        await self.page.evaluate("(given) => window.show(...given)", given)

    async def messages(self) -> list[str]:
        found: list[str] = await self.page.evaluate("window.messages")
        return found

    async def _call_tool(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await modern(self._client, tool, arguments, CARDS)

    async def _serve(self, route: Route) -> None:
        url = route.request.url
        self.requested.append(url)
        path = url.removeprefix("http://host.test/")
        if path == "":
            await route.fulfill(body=HOST.read_text(), content_type="text/html")
        elif path.startswith("modules/"):
            script = (self._modules / path.removeprefix("modules/")).read_text()
            await route.fulfill(body=script, content_type="text/javascript")
        else:
            await route.abort()


@pytest.fixture
async def host(browser: Browser, agent: httpx.AsyncClient, node: NodeClients) -> AsyncIterator[Host]:
    opened = Host(await browser.new_page(), agent, node.modules)
    await opened.open()
    yield opened
    assert opened.errors == []
    assert opened.requested == [], "a card asks the network for nothing"


async def test_a_person_confirms_a_booking_by_keyboard_and_the_model_never_sees_the_token(
    world: World, host: Host, agent: httpx.AsyncClient
) -> None:
    wanted = await booking(agent)
    await host.show("book_appointment", wanted, "dark")
    yes = host.card.get_by_role("button", name="Yes: Book an appointment")
    await expect(yes).to_be_visible(timeout=WAIT_MS)
    await expect(host.card.get_by_text("Monday, 16 November 2026, 09:00-09:15 (America/New_York)")).to_be_visible()
    ground = await host.card.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
    assert ground == "rgb(22, 25, 29)", "the dark theme of the host"
    assert await booked(world) == 0
    await yes.focus()
    await host.page.keyboard.press("Enter")
    await expect(host.card.get_by_role("heading", name="Done")).to_be_visible(timeout=WAIT_MS)
    await host.page.wait_for_function("window.messages.length === 1", timeout=WAIT_MS)
    [message] = await host.messages()
    assert "it has been executed" in message
    assert "card-" not in message
    appointment = message.partition('"appointmentId":"')[2].partition('"')[0]
    assert (await recorded(world, appointment))[-1] == ("book_appointment", "executed", "card")


async def test_a_no_on_the_card_changes_nothing(world: World, host: Host, agent: httpx.AsyncClient) -> None:
    await host.show("book_appointment", await booking(agent))
    no = host.card.get_by_role("button", name="No", exact=True)
    await no.click(timeout=WAIT_MS)
    await expect(host.card.get_by_text("Nothing has been changed.")).to_be_visible(timeout=WAIT_MS)
    await host.page.wait_for_function("window.messages.length === 1", timeout=WAIT_MS)
    assert "said no" in (await host.messages())[0]
    assert await booked(world) == 0


async def test_a_person_chooses_a_slot_in_the_time_of_the_location(world: World, host: Host) -> None:
    await host.show("search_slots", SEARCH)
    await host.card.get_by_role("button", name="Monday, 16 November 2026, 09:15").click(timeout=WAIT_MS)
    await expect(host.card.get_by_text("Dr. Robert Chen")).to_be_visible(timeout=WAIT_MS)
    await expect(host.card.get_by_text("09:15 (America/New_York)")).to_be_visible()
    await host.card.get_by_role("button", name="Choose this time").click()
    await host.page.wait_for_function("window.messages.length === 2", timeout=WAIT_MS)
    context, message = await host.messages()
    assert "slotId: slt_" in context
    assert message.startswith("I choose Monday")
    assert await booked(world) == 0
