"""The state of the scheduling system and of the webhook endpoints."""

from starlette.responses import Response

from frontdesk.console.actions.health import SystemCheck
from frontdesk.console.visit import Page, Visit


async def _check_system(visit: Visit) -> Response:
    return await _system(visit, await visit.desk.health.check(visit.context))


async def _system(visit: Visit, checked: SystemCheck | None = None) -> Response:
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
    await visit.desk.webhooks.replay_dead(visit.context, visit.param("endpoint_id"))
    return visit.redirect("/practice/webhooks", notice="webhook_replayed")


async def _pause_or_resume(visit: Visit) -> Response:
    paused = visit.page.path.endswith("/pause")
    await visit.desk.webhooks.set_paused(visit.context, visit.param("endpoint_id"), paused=paused)
    return visit.redirect("/practice/webhooks", notice="webhook_paused" if paused else "webhook_resumed")


PAGES = (
    Page("GET", "/practice/system", _system, role="admin"),
    Page("POST", "/practice/system", _check_system, role="admin"),
    Page("GET", "/practice/webhooks", _webhooks, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/replay", _replay, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/pause", _pause_or_resume, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/resume", _pause_or_resume, role="admin"),
)
