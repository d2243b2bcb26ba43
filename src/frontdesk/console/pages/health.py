"""The state of the scheduling system and of the webhook endpoints."""

from starlette.responses import Response

from frontdesk.console.actions.health import SystemCheck
from frontdesk.console.guard import ConsoleRequest, Page


async def _check_system(request: ConsoleRequest) -> Response:
    return await _system(request, await request.desk.health.check(request.context))


async def _system(request: ConsoleRequest, checked: SystemCheck | None = None) -> Response:
    return request.render(
        "system.html",
        title="Scheduling system",
        health=await request.desk.health.now(request.context),
        last_check=await request.desk.audit.last_check(request.context),
        alarms=await request.desk.patient_reads.alarms(request.context),
        checked=checked,
    )


async def _webhooks(request: ConsoleRequest) -> Response:
    return request.render(
        "webhooks.html",
        title="Webhooks",
        told=await request.desk.webhooks.all(request.context),
        slug=request.staff.practice_slug,
    )


async def _replay(request: ConsoleRequest) -> Response:
    await request.desk.webhooks.replay_dead(request.context, request.param("endpoint_id"))
    return request.redirect("/practice/webhooks", notice="webhook_replayed")


async def _pause_or_resume(request: ConsoleRequest) -> Response:
    paused = request.page.path.endswith("/pause")
    await request.desk.webhooks.set_paused(request.context, request.param("endpoint_id"), paused=paused)
    return request.redirect("/practice/webhooks", notice="webhook_paused" if paused else "webhook_resumed")


PAGES = (
    Page("GET", "/practice/system", _system, role="admin"),
    Page("POST", "/practice/system", _check_system, role="admin"),
    Page("GET", "/practice/webhooks", _webhooks, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/replay", _replay, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/pause", _pause_or_resume, role="admin"),
    Page("POST", "/practice/webhooks/{endpoint_id}/resume", _pause_or_resume, role="admin"),
)
