"""The state of the scheduling system."""

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.desk.health import SystemCheck
from frontdesk.operations import published


async def _check_system(request: ConsoleRequest) -> Response:
    return await _system(request, await request.desk.health.check(request.context))


async def _system(request: ConsoleRequest, checked: SystemCheck | None = None) -> Response:
    return request.render(
        "system.html",
        title=_("Scheduling system"),
        health=await request.desk.health.now(request.context),
        last_check=await request.desk.audit.last_check(request.context),
        alarms=await request.desk.patient_reads.alarms(request.context),
        checked=checked,
        operations=published(),
    )


PAGES = (
    Page("GET", "/practice/system", _system, role="admin"),
    Page("POST", "/practice/system", _check_system, role="admin"),
)
