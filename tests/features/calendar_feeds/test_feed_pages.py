"""Calendar feeds at the console: an address that is shown once, without names, and revoked."""

import re

import httpx

from tests.console.admin_pages import text_of
from tests.console.desk import records
from tests.console.filled_forms import send
from tests.console.signing_in import TEST_STAFF
from tests.support.world import World, book

FEEDS = "/console/practice/feeds"


async def test_a_feed_is_added_read_and_revoked(
    world: World, admin: httpx.AsyncClient, staff: httpx.AsyncClient
) -> None:
    await book(await world.client())
    assert "There is no calendar feed." in (await admin.get(FEEDS)).text
    form = await admin.get(FEEDS)
    shown = await send(admin, form, FEEDS, provider="10")
    again = await send(admin, form, FEEDS, provider="10")
    assert again.headers["Location"].endswith("?notice=address_shown"), "pressed twice, it adds one feed"
    found = re.search(r'<code id="feed-address">https?://[^/]+(/feeds/\S+?)</code>', shown.text)
    assert found is not None
    assert found.group(1) not in (await admin.get(FEEDS)).text, "it is shown once"
    calendar = await world.anonymous().get(found.group(1))
    assert calendar.status_code == 200
    assert "BEGIN:VEVENT" in calendar.text
    assert "Lovelace" not in calendar.text
    page = await admin.get(FEEDS)
    assert "Dr. Robert Chen Busy times added" in text_of(page)
    [revoke] = re.findall(r'action="(\S+/revoke)"', page.text)
    assert (await staff.post(revoke)).status_code == 403
    assert (await admin.post(revoke)).status_code == 303
    assert (await world.anonymous().get(found.group(1))).status_code == 404
    assert "There is no calendar feed." in (await admin.get(FEEDS)).text
    for number in ("99", "x", ""):
        assert (await admin.post(FEEDS, data={"provider": number})).status_code == 404
    done = [each for each in await records(world, actor=admin.headers[TEST_STAFF]) if "feed" in each["operation"]]
    assert [each["operation"] for each in done] == ["console.add_feed", "console.revoke_feed"]
    assert done[0]["subject_ids"] == done[1]["subject_ids"]
