"""What is for admins is refused to other staff by the action itself, whatever a page forgets."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.audit.reading import AuditFilter
from frontdesk.desk.clients import ClientFields
from frontdesk.desk.context import ActionContext
from frontdesk.desk.desk import Desk
from frontdesk.desk.reports import Period
from frontdesk.desk.usage import SPANS
from frontdesk.domain.errors import Problem
from frontdesk.features.calendar_feeds.managing import Feeds
from tests.desk.acting import acting
from tests.support.world import World

FIELDS = ClientFields("n", "agent", SCOPES, 1, 1)
DAY = date(2026, 11, 16)
FOR_ADMINS: dict[str, Callable[[Desk, ActionContext], Awaitable[Any]]] = {
    "audit.actors": lambda desk, context: desk.audit.actors(context),
    "audit.export": lambda desk, context: desk.audit.export(context),
    "audit.find": lambda desk, context: desk.audit.find(context, AuditFilter()),
    "audit.last_check": lambda desk, context: desk.audit.last_check(context),
    "audit.start_check": lambda desk, context: desk.audit.start_check(context),
    "clients.add": lambda desk, context: desk.clients.add(context, FIELDS, once="k"),
    "clients.all": lambda desk, context: desk.clients.all(context),
    "clients.change": lambda desk, context: desk.clients.change(context, "fd_1", FIELDS),
    "clients.one": lambda desk, context: desk.clients.one(context, "fd_1"),
    "clients.set_disabled": lambda desk, context: desk.clients.set_disabled(context, "fd_1", disabled=True),
    "feeds.all": lambda desk, context: desk.engine.services[Feeds].all(context),
    "health.check": lambda desk, context: desk.health.check(context),
    "health.now": lambda desk, context: desk.health.now(context),
    "practice_file.apply": lambda desk, context: desk.practice_file.apply(context, "", prune=False, version=1),
    "practice_file.export": lambda desk, context: desk.practice_file.export(context, as_json=False),
    "practice_file.preview": lambda desk, context: desk.practice_file.preview(context, "", prune=False),
    "reports.read": lambda desk, context: desk.reports.read(context, Period(DAY, DAY)),
    "staff.add": lambda desk, context: desk.staff.add(context, "Mallory", "admin", ""),
    "staff.all": lambda desk, context: desk.staff.all(context),
    "staff.change": lambda desk, context: desk.staff.change(context, "op_someone", "disable"),
    "staff.link": lambda desk, context: desk.staff.link(context, "op_someone"),
    "usage.of_clients": lambda desk, context: desk.usage.of_clients(context),
    "usage.over_time": lambda desk, context: desk.usage.over_time(context, SPANS["3h"], ZoneInfo("UTC")),
    "webhooks.add": lambda desk, context: desk.webhooks.add(context, "https://hooks.example.com/", [], once="1"),
    "webhooks.all": lambda desk, context: desk.webhooks.all(context),
    "webhooks.remove": lambda desk, context: desk.webhooks.remove(context, "whk_1"),
    "webhooks.replay_dead": lambda desk, context: desk.webhooks.replay_dead(context, "whk_1"),
    "webhooks.rotate": lambda desk, context: desk.webhooks.rotate(context, "whk_1", once="2"),
    "webhooks.set_paused": lambda desk, context: desk.webhooks.set_paused(context, "whk_1", paused=True),
    "webhooks.test": lambda desk, context: desk.webhooks.test(context, "whk_1"),
}


@pytest.mark.parametrize("action", FOR_ADMINS)
async def test_what_is_for_admins_is_refused_to_staff(world: World, action: str) -> None:
    with pytest.raises(Problem) as refused:
        await FOR_ADMINS[action](world.service.desk, await acting(world))
    assert (refused.value.code, refused.value.status) == ("forbidden_scope", 403)


async def test_an_admin_may_do_what_staff_may(world: World) -> None:
    admin = await acting(world, "admin")
    admin.require("staff")
    admin.require("admin")
