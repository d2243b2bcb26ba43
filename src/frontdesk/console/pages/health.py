"""The state of the scheduling system and of the webhook endpoints."""

from starlette.responses import Response

from frontdesk.console.actions.health import SystemCheck
from frontdesk.console.visit import Page, Visit


async def _system(visit: Visit) -> Response:
    return await _system_page(visit, None)


async def _check_system(visit: Visit) -> Response:
    return await _system_page(visit, await visit.desk.health.check(visit.context))


async def _system_page(visit: Visit, checked: SystemCheck | None) -> Response:
    return visit.render(
        "system.html",
        title="Scheduling system",
        health=await visit.desk.health.now(visit.context),
        last_check=await visit.desk.audit.last_check(visit.context),
        checked=checked,
    )


async def _webhooks(visit: Visit) -> Response:
    return visit.render(
        "webhooks.html",
        title="Webhooks",
        told=await visit.desk.webhooks.all(visit.context),
        slug=visit.staff.practice_slug,
    )


async def _replay(visit: Visit) -> Response:
    await visit.desk.webhooks.replay_dead(visit.context, visit.request.path_params["endpoint_id"])
    return visit.redirect("/practice/webhooks", notice="webhook_replayed")


async def _pause(visit: Visit) -> Response:
    await visit.desk.webhooks.set_paused(visit.context, visit.request.path_params["endpoint_id"], paused=True)
    return visit.redirect("/practice/webhooks", notice="webhook_paused")


async def _resume(visit: Visit) -> Response:
    await visit.desk.webhooks.set_paused(visit.context, visit.request.path_params["endpoint_id"], paused=False)
    return visit.redirect("/practice/webhooks", notice="webhook_resumed")


PAGES = (
    Page("GET", "/practice/system", _system, role="admin"),
    Page("POST", "/practice/system", _check_system, role="admin"),
    Page("GET", "/practice/webhooks", _webhooks, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/replay", _replay, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/pause", _pause, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/resume", _resume, role="admin"),
)
