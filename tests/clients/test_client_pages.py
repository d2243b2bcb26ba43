"""Lists: a page at a time, or to the end."""

from itertools import islice

import pytest
from frontdesk_client import Frontdesk, Validation

from tests.clients.fault_proxy import FaultProxy
from tests.clients.running_desk import Desk


def test_iterating_goes_through_all_pages_and_items_are_one(direct: Frontdesk) -> None:
    page = direct.list_providers(limit=2)
    everybody = direct.list_providers().items
    assert (len(page.items), page.limit) == (2, 2)
    assert page.next_cursor is not None
    assert tuple(page) == everybody
    assert tuple(page) == everybody, "it begins anew"
    assert len(everybody) > 4


async def test_the_async_client_pages_too(desk: Desk, direct: Frontdesk) -> None:
    async with desk.agent.async_client(desk.url) as client:
        page = await client.list_providers(limit=2)
        assert [provider async for provider in page] == list(direct.list_providers())


def test_pages_are_fetched_only_as_far_as_they_are_read(desk: Desk, proxy: FaultProxy) -> None:
    with desk.agent.client(proxy.url) as client:
        assert len(list(islice(client.list_providers(limit=2), 3))) == 3
    assert len(proxy.sent("/api/providers")) == 2


def test_a_list_can_be_taken_up_again_by_its_cursor(direct: Frontdesk) -> None:
    first = direct.list_locations(limit=1)
    second = direct.list_locations(limit=1, cursor=first.next_cursor)
    assert first.next_page() == second
    assert second.items != first.items


def test_a_page_that_is_the_last_has_none_after_it(direct: Frontdesk) -> None:
    page = direct.list_locations()
    assert page.next_cursor is None
    assert page.next_page() is None


def test_filters_stay_with_the_pages(direct: Frontdesk) -> None:
    found = direct.list_providers(location_id=1, limit=1)
    assert all(1 in provider.location_ids for provider in found)
    with pytest.raises(Validation) as invalid:
        direct.list_providers(location_id=2, cursor=found.next_cursor)
    assert [error.rule for error in invalid.value.errors] == ["cursor"]
