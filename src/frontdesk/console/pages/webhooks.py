"""Webhook endpoints: list, add, test, pause, rotate the secret, remove. A secret is shown once."""

from starlette.responses import Response

from frontdesk.console.forms import Form, errors_of
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.desk.form_uses import SecretShown
from frontdesk.domain.errors import Problem
from frontdesk.outbound.webhooks.endpoints import Endpoint
from frontdesk.outbound.webhooks.events import event_types
from frontdesk.outbound.webhooks.sender import Sent

_LIST = "/practice/webhooks"
_ONE = f"{_LIST}/{{endpoint_id}}"


async def _list(
    request: ConsoleRequest,
    typed: Form | None = None,
    errors: dict[str, str] | None = None,
    tested: tuple[str, Sent] | None = None,
) -> Response:
    return request.render(
        "webhooks.html",
        title=_("Webhooks"),
        status=422 if errors else 200,
        endpoints=await request.desk.webhooks.all(request.context),
        slug=request.staff.practice_slug,
        event_types=event_types(),
        typed=typed or Form(),
        errors=errors or {},
        tested=tested,
    )


async def _add(request: ConsoleRequest) -> Response:
    form = request.form
    try:
        added = await request.desk.webhooks.add(
            request.context, form.get("url"), form.all("events"), once=form.get("once")
        )
    except SecretShown:
        return request.redirect(_LIST, notice="secret_shown")
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _list(request, form, errors_of(problem))
    return _secret(request, *added)


async def _rotate(request: ConsoleRequest) -> Response:
    endpoint_id, once = request.param("endpoint_id"), request.form.get("once")
    try:
        rotated = await request.desk.webhooks.rotate(request.context, endpoint_id, once=once)
    except SecretShown:
        return request.redirect(_LIST, notice="secret_shown")
    return _secret(request, *rotated)


def _secret(request: ConsoleRequest, endpoint: Endpoint, secret: str) -> Response:
    return request.render(
        "webhook_secret.html", title=_("The signing secret"), endpoint=endpoint, secret=secret, now=request.context.now
    )


async def _test(request: ConsoleRequest) -> Response:
    endpoint_id = request.param("endpoint_id")
    return await _list(request, tested=(endpoint_id, await request.desk.webhooks.test(request.context, endpoint_id)))


async def _remove(request: ConsoleRequest) -> Response:
    await request.desk.webhooks.remove(request.context, request.param("endpoint_id"))
    return request.redirect(_LIST, notice="webhook_removed")


async def _replay(request: ConsoleRequest) -> Response:
    await request.desk.webhooks.replay_dead(request.context, request.param("endpoint_id"))
    return request.redirect(_LIST, notice="webhook_replayed")


async def _pause_or_resume(request: ConsoleRequest) -> Response:
    paused = request.page.path.endswith("/pause")
    await request.desk.webhooks.set_paused(request.context, request.param("endpoint_id"), paused=paused)
    return request.redirect(_LIST, notice="webhook_paused" if paused else "webhook_resumed")


PAGES = (
    Page("GET", _LIST, _list, role="admin"),
    Page("POST", _LIST, _add, role="admin"),
    Page("POST", f"{_ONE}/test", _test, role="admin"),
    Page("POST", f"{_ONE}/rotate", _rotate, role="admin"),
    Page("POST", f"{_ONE}/remove", _remove, role="admin"),
    Page("POST", f"{_ONE}/replay", _replay, role="admin"),
    Page("POST", f"{_ONE}/pause", _pause_or_resume, role="admin"),
    Page("POST", f"{_ONE}/resume", _pause_or_resume, role="admin"),
)
