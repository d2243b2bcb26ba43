"""Calendar feeds of providers: list, add and revoke them. An address is shown once."""

from starlette.responses import Response

from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.desk.form_uses import SecretShown
from frontdesk.features.calendar_feeds.managing import Feeds
from frontdesk.texts import N_

_LIST = "/practice/feeds"


async def _list(request: ConsoleRequest, address: str | None = None) -> Response:
    feeds, providers = await request.services[Feeds].all(request.context)
    return request.render(
        "calendar_feeds/page.html",
        title=_("Calendar feeds"),
        feeds=feeds,
        providers=[(provider.id, provider.name) for provider in providers],
        slug=request.staff.practice_slug,
        address=address,
    )


async def _add(request: ConsoleRequest) -> Response:
    provider_id, once = read_id(request.form.get("provider")) or 0, request.form.get("once")
    try:
        path = await request.services[Feeds].add(request.context, provider_id, once=once)
    except SecretShown:
        return request.redirect(_LIST, notice="address_shown")
    return await _list(request, request.console.settings.public_url + path)


async def _revoke(request: ConsoleRequest) -> Response:
    await request.services[Feeds].revoke(request.context, request.param("feed_id"))
    return request.redirect(_LIST, notice="feed_revoked")


NOTICES = {"feed_revoked": N_("The calendar feed is revoked: its address no longer works.")}
TABS = ((_LIST, N_("Calendar feeds")),)
PAGES = (
    Page("GET", _LIST, _list, role="admin"),
    Page("POST", _LIST, _add, role="admin"),
    Page("POST", "/practice/feeds/{feed_id}/revoke", _revoke, role="admin"),
)
