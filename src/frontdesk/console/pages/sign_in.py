"""Sign-in with a one-time link, the request for one by mail, and the page that offers every way to sign in.

The token is in the URL's fragment, and only the button's POST uses it: mail scanners and previews do not. The form
works only in the browser that it was shown in, which prevents login CSRF.
"""

import hashlib
import hmac
import re
from datetime import timedelta
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.opaque_tokens import new_token
from frontdesk.access.staff.sessions import SESSION_LIFETIME
from frontdesk.console.browsers import browser_name
from frontdesk.console.cookies import DESK, SESSION, SIGN_IN, delete_cookie, read_cookie, set_cookie
from frontdesk.console.forms import Form, read_form
from frontdesk.console.guard import CSRF_FIELD, PREFIX, Console, RequestProgress, check_same_origin, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.rendering import render
from frontdesk.domain.errors import Problem
from frontdesk.settings import Settings
from frontdesk.texts import N_
from frontdesk.web.bodies import MAX_BODY_BYTES
from frontdesk.web.http_request import address_of

FORM_LIFETIME = timedelta(hours=1)
_LOCAL = re.compile(r"/console/[A-Za-z0-9_./?&=%+:~-]*\Z")
_MAX_URL_LENGTH = 6000  # a request of an application for access
STALE = N_("This page was open for too long. Try again.")
ERRORS = {
    "unauthorized": N_("This link was already used or has expired. Ask for a new one."),
    "rate_limited": N_("Too many attempts. Wait a minute, then try again."),
    "upstream_unavailable": N_("Signing in is not possible at the moment. Try again in a few seconds."),
}


def sign_in_routes(console: Console) -> list[Route]:
    settings = console.settings

    async def show(request: Request, _attempt: RequestProgress) -> Response:
        then = request.query_params.get("next")
        token = read_cookie(request, SESSION, settings)
        # Staff may have signed in meanwhile, in another tab.
        if then and await console.staff_sessions.find(token, in_use=False) is not None:
            return RedirectResponse(local_address(then), 303)
        if then and await console.desk_lock.sessions_with_pin(read_cookie(request, DESK, settings)):
            return RedirectResponse(f"{PREFIX}/locked?next={quote(local_address(then), safe='')}", 303)
        return sign_in_page(request, console)

    async def use(request: Request, attempt: RequestProgress) -> Response:
        form, is_ours = await posted_form(request, settings)
        if not is_ours:
            return sign_in_page(request, console, 403, STALE)
        link = form.get("link").rpartition("#")[2]
        browser = browser_name(request.headers.get("user-agent", ""))
        # Failures are limited per link and per address, so that they cannot lock anyone else out.
        name = "link " + hashlib.sha256(link.encode(errors="surrogatepass")).hexdigest()
        try:
            token = await console.failed_attempts.guard(
                "sign-in",
                name,
                address_of(request),
                lambda: console.staff_sessions.by_link(link, browser, attempt.request_id),
            )
        except Problem as problem:
            return sign_in_page(request, console, problem.status, ERRORS[problem.code])
        then = await _after_link(console, token, local_address(form.get("next")))
        return await start_session(request, console, token, then, attempt.request_id)

    async def mail(request: Request, attempt: RequestProgress) -> Response:
        form, is_ours = await posted_form(request, settings)
        if not is_ours:
            return sign_in_page(request, console, 403, STALE)
        if console.sign_in_mail is None:
            raise Problem("not_found", "There is no such page.")
        try:
            await console.failed_attempts.count_mail(form.get("email"), address_of(request))
        except Problem as problem:
            return sign_in_page(request, console, problem.status, ERRORS[problem.code])
        console.sign_in_mail.request(form.get("email"), attempt.request_id)
        return sign_in_page(request, console, sent=True)

    return [
        Route(f"{PREFIX}/sign-in/mail", with_error_pages(console, "/sign-in/mail", mail), methods=["POST"]),
        Route(f"{PREFIX}/sign-in", with_error_pages(console, "/sign-in", show), methods=["GET"]),
        Route(f"{PREFIX}/sign-in", with_error_pages(console, "/sign-in", use), methods=["POST"]),
    ]


def sign_in_page(
    request: Request, console: Console, status: int = 200, error: str | None = None, *, sent: bool = False
) -> Response:
    proof = read_cookie(request, SIGN_IN, console.settings) or new_token()
    response = render(
        request,
        "sign_in.html",
        status,
        title=_("Sign in"),
        error=None if error is None else _(error),
        left="left" in request.query_params,
        csrf=form_token(proof).decode(),
        next=local_address(request.query_params.get("next", "")),
        provider=console.has_identity_provider,
        passkeys=console.passkeys is not None,
        mails=console.sign_in_mail is not None,
        sent=sent,
    )
    set_cookie(response, SIGN_IN, proof, console.settings, FORM_LIFETIME)
    return response


async def start_session(request: Request, console: Console, token: str, then: str, request_id: str) -> Response:
    """Sets the session cookie, and ends the browser's previous session or locks it if its owner has a PIN."""
    before = await console.staff_sessions.find(read_cookie(request, SESSION, console.settings), in_use=False)
    if before is not None and before.lock_after_minutes is None:
        await console.staff_sessions.sign_out(before, request_id)
    elif before is not None:  # stays in this browser, for its owner's PIN
        await console.desk_lock.lock(before, request_id)
    response = RedirectResponse(local_address(then), 303)
    desk = read_cookie(request, DESK, console.settings) or new_token()
    await console.desk_lock.attach(token, desk)
    set_cookie(response, DESK, desk, console.settings, SESSION_LIFETIME)
    set_cookie(response, SESSION, token, console.settings, SESSION_LIFETIME)
    delete_cookie(response, SIGN_IN, console.settings)
    return response


async def _after_link(console: Console, token: str, then: str) -> str:
    """Staff without a passkey are offered one, so that they need no link the next time."""
    session = None if console.passkeys is None else await console.staff_sessions.find(token)
    if console.passkeys is None or session is None or await console.passkeys.of(session.staff_id):
        return then
    return f"{PREFIX}/passkeys/new?next={quote(then, safe='')}"


def local_address(text: str) -> str:
    """A path within the console, or its first page, so that a link cannot redirect elsewhere."""
    return text if _LOCAL.match(text) and len(text) <= _MAX_URL_LENGTH else f"{PREFIX}/"


async def posted_form(request: Request, settings: Settings, cookie: str = SIGN_IN) -> tuple[Form, bool]:
    """A form that is sent without a session, and whether it was shown to the browser that holds the cookie."""
    check_same_origin(request, settings)
    form, proof = await read_form(request, MAX_BODY_BYTES), read_cookie(request, cookie, settings)
    return form, proof is not None and hmac.compare_digest(form_token(proof), form.get(CSRF_FIELD).encode())


def form_token(proof: str) -> bytes:
    """What a form must carry to have been shown to the browser that holds the cookie `proof`."""
    return (
        hmac.new(proof.encode(errors="surrogatepass"), b"frontdesk sign-in form", hashlib.sha256).hexdigest().encode()
    )
