"""The set-up leads from an empty practice to its first booking, and knows from what is stored how far it is."""

import re

import httpx
import pytest

from frontdesk.practice_file import parse
from frontdesk.store.practices import import_practice
from tests.console.admin_pages import text_of
from tests.console.filled_forms import send
from tests.console.signing_in import signed_in
from tests.console.test_practice_forms import apply
from tests.support.world import PRACTICE, World, book, slots

EMPTY = "practice: {slug: empty, name: Empty Practice, timeZone: America/New_York}"
HARBOR = PRACTICE.replace("SLUG", "empty")


def steps(page: httpx.Response) -> list[bool]:
    """Which are done."""
    assert page.status_code == 200, page.text
    return ["step-done" in found for found in re.findall(r'<li class="(step[^"]*)"', page.text)]


@pytest.fixture
async def admin(world: World) -> httpx.AsyncClient:
    """Somebody who runs a practice that has nothing yet."""
    await import_practice(world.database, parse(EMPTY), world.clock.now)
    return await signed_in(world, role="admin", practice="empty")


async def test_each_step_is_done_when_it_has_happened(world: World, admin: httpx.AsyncClient) -> None:
    async def done() -> int:
        await world.service.usage.flush()
        await world.service.limiter.return_leases()
        found = steps(await admin.get("/console/setup"))
        assert found == sorted(found, reverse=True), "one after the other"
        return sum(found)

    assert await done() == 0
    without_hours = re.sub(r"    hours:.*?(?=\n  - id: 1\d|\nvisitTypes)", "", HARBOR, flags=re.DOTALL)
    await world.import_file(without_hours)
    assert await done() == 1
    await world.import_file(HARBOR)
    assert await done() == 2
    agent = await world.client("empty")
    assert await done() == 3
    await agent.get("/api/capabilities")
    assert await done() == 4
    await slots(agent)
    assert await done() == 5
    await book(agent)
    assert await done() == 6
    assert "Set-up is complete" in text_of(await admin.get("/console/setup"))


async def test_the_next_step_has_its_link_and_its_command(world: World, admin: httpx.AsyncClient) -> None:
    page = await admin.get("/console/setup")
    assert 'aria-current="step"' in page.text
    assert "frontdesk practice import empty.yaml" in text_of(page)
    assert 'class="button" href="/console/practice/locations"' in page.text
    for form in ("/console/practice/visit-types", "/console/practice/providers", "/console/practice"):
        assert f'<a href="{form}">' in page.text
        assert (await admin.get(form)).status_code == 200, "where there is nothing yet"
    await world.import_file(HARBOR)
    page = await admin.get("/console/setup")
    assert 'frontdesk client add --practice empty --name "Phone agent" --grant agent --scope all' in text_of(page)
    assert 'class="button" href="/console/clients/new"' in page.text
    agent = await world.client("empty")
    text = text_of(await admin.get("/console/setup"))
    assert f"client_id={agent.headers['X-Test-Client']}" in text
    found = re.search(r'curl -s "http://test(/api/slots\?[^"]+)"', text)
    assert found is not None
    answer = await agent.get(found.group(1))
    assert answer.status_code == 200
    assert answer.json()["items"], "the command finds something"


async def test_a_booking_is_remembered_when_the_counts_are_forgotten(world: World, admin: httpx.AsyncClient) -> None:
    await world.import_file(HARBOR)
    await book(await world.client("empty"))
    await world.service.engine.audit.seal_pending()
    assert all(steps(await admin.get("/console/setup")))


async def test_staff_do_not_see_it(staff: httpx.AsyncClient) -> None:
    assert (await staff.get("/console/setup")).status_code == 403


@pytest.mark.parametrize(
    ("form", "typed"),
    [("locations", {"timeZone": "America/New_York"}), ("visit-types", {"patientKind": "any"})],
)
async def test_a_practice_that_is_set_up_here_matches_numbers_by_their_ending(
    world: World, admin: httpx.AsyncClient, form: str, typed: dict[str, str]
) -> None:
    """As one that begins with a file of `practice init`. The choice of an admin stays."""
    address, rule = f"/console/practice/{form}/edit", "SELECT phone_match FROM practice WHERE slug = 'empty'"
    assert await world.database.fetchval(rule) == "anywhere", "as the file without the setting says"
    shown = await send(admin, await admin.get(address), address, name="Downtown", **typed)
    assert "Phone numbers match any four digits anywhere in the number fewer than seven digits by the end" in text_of(
        shown
    )
    await apply(admin, shown, address)
    assert await world.database.fetchval(rule) == "ending"
    await world.database.write("UPDATE practice SET phone_match = 'anywhere' WHERE slug = 'empty' RETURNING true")
    shown = await send(admin, await admin.get(address), address, name="Uptown", **typed)
    assert "Phone numbers match" not in text_of(shown)
    await apply(admin, shown, address)
    assert await world.database.fetchval(rule) == "anywhere"
