"""The lock of a shared desk: staff with a session in this browser unlock it with their PIN."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.opaque_tokens import new_token
from frontdesk.access.staff.desk_lock import LOCK_AFTER_MINUTES
from frontdesk.access.staff.members import StaffError
from frontdesk.access.staff.sessions import SESSION_LIFETIME
from frontdesk.console.cookies import DESK, SESSION, SIGN_IN, read_cookie, set_cookie
from frontdesk.console.domain_texts import translated
from frontdesk.console.forms import NOTHING_SENT, Form
from frontdesk.console.guard import PREFIX, Console, ConsoleRequest, Page, RequestProgress, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.sign_in import ERRORS, FORM_LIFETIME, STALE, form_token, local_address, posted_form
from frontdesk.console.rendering import render
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_, Text
from frontdesk.web.http_request import address_of

_WRONG = N_("The PIN is wrong. After five wrong PINs the session ends.")


def unlock_routes(console: Console) -> list[Route]:
    settings = console.settings

    async def show(request: Request, _attempt: RequestProgress) -> Response:
        return await page(request)

    async def page(
        request: Request, status: int = 200, error: str | None = None, form: Form = NOTHING_SENT
    ) -> Response:
        desk, token = (read_cookie(request, name, settings) for name in (DESK, SESSION))
        sessions = await console.desk_lock.sessions_with_pin(desk, token)
        then = local_address(form.get("next") or request.query_params.get("next", ""))
        if not sessions:
            return RedirectResponse(f"{PREFIX}/sign-in", 303)
        own = next((each for each in sessions if each.is_own), sessions[0])
        proof = read_cookie(request, SIGN_IN, settings) or new_token()
        csrf = form_token(proof).decode()
        response = render(
            request,
            "locked.html",
            status,
            title=_("Locked"),
            sessions=sessions,
            chosen=form.get("session") or own.number,
            error=None if error is None else _(error),
            csrf=csrf,
            next=then,
        )
        set_cookie(response, SIGN_IN, proof, settings, FORM_LIFETIME)
        return response

    async def unlock(request: Request, attempt: RequestProgress) -> Response:
        (form, is_ours), desk = await posted_form(request, settings), read_cookie(request, DESK, settings)
        if not is_ours:
            return await page(request, 403, STALE, form)
        if desk is None:
            return RedirectResponse(f"{PREFIX}/sign-in", 303)
        number, pin, token = form.get("session"), form.get("pin"), read_cookie(request, SESSION, settings)
        try:
            opened = await console.failed_attempts.guard(
                "sign-in",
                f"pin {number}",
                address_of(request),
                lambda: console.desk_lock.unlock(desk, number, pin, token, attempt.request_id),
            )
        except Problem as problem:
            error = _WRONG if problem.code == "unauthorized" else ERRORS[problem.code]
            return await page(request, problem.status, error, form)
        response = RedirectResponse(local_address(form.get("next")), 303)
        set_cookie(response, SESSION, opened, settings, SESSION_LIFETIME)
        return response

    return [
        Route(f"{PREFIX}/locked", with_error_pages(console, "/locked", show), methods=["GET"]),
        Route(f"{PREFIX}/unlock", with_error_pages(console, "/unlock", unlock), methods=["POST"]),
    ]


async def _lock(request: ConsoleRequest) -> Response:
    await request.console.desk_lock.lock(request.session, request.context.request_id)
    return request.redirect("/locked")


async def _pin(request: ConsoleRequest, status: int = 200, error: str | Text | None = None) -> Response:
    return request.render(
        "pin.html",
        title=_("PIN"),
        status=status,
        error=None if error is None else translated(error),
        session=request.session,
        choices=[(minutes, minutes) for minutes in LOCK_AFTER_MINUTES],
    )


async def _set_pin(request: ConsoleRequest) -> Response:
    form, desk_lock, request_id = request.form, request.console.desk_lock, request.context.request_id
    try:
        if form.get("remove"):
            await desk_lock.remove_pin(request.session, form.get("current"), request_id)
        elif form.get("pin") != form.get("again"):
            raise StaffError("The two PINs differ.")
        else:
            minutes = form.get("minutes")
            number = int(minutes) if minutes.isascii() and minutes.isdecimal() and len(minutes) < 3 else 0
            await desk_lock.set_pin(request.session, form.get("current"), form.get("pin"), number, request_id)
    except StaffError as error:
        return await _pin(request, 422, error.text)
    return request.redirect("/account", notice="pin_removed" if form.get("remove") else "pin_set")


PAGES = (
    Page("POST", "/lock", _lock),
    Page("GET", "/pin", _pin),
    Page("POST", "/pin", _set_pin),
)
