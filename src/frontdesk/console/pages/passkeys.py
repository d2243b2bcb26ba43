"""Passkeys: sign-in with one, and a staff member's own.

The challenge is encrypted in a cookie, so that only the browser that it was made for can answer it.
"""

import hashlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.access.opaque_tokens import new_token
from frontdesk.access.staff.members import StaffError
from frontdesk.access.staff.passkeys import CHALLENGE_LIFETIME, Passkeys
from frontdesk.console.browsers import browser_name
from frontdesk.console.cookies import CHALLENGE, delete_cookie, read_cookie, set_cookie
from frontdesk.console.domain_texts import translated
from frontdesk.console.guard import PREFIX, Console, ConsoleRequest, Page, RequestProgress, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.sign_in import ERRORS, STALE, local_address, posted_form, sign_in_page, start_session
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_, Text
from frontdesk.web.http_request import address_of

_TO_SIGN_IN = b"console passkey sign-in"
_TO_REGISTER = b"console passkey registration"
_REFUSED = N_("This passkey may not sign in. Use another one, or ask an admin of your practice for a sign-in link.")


def passkey_sign_in_routes(console: Console, passkeys: Passkeys) -> list[Route]:
    settings = console.settings

    async def options(request: Request, _attempt: RequestProgress) -> Response:
        _, is_ours = await posted_form(request, settings)
        if not is_ours:
            raise Problem("forbidden_scope", STALE)
        challenge = new_token()
        response = _options(await passkeys.sign_in_options(challenge))
        set_cookie(
            response,
            CHALLENGE,
            console.encrypted_cookies.encrypt(_TO_SIGN_IN, [challenge]),
            settings,
            CHALLENGE_LIFETIME,
        )
        return response

    async def use(request: Request, attempt: RequestProgress) -> Response:
        response = await _use(request, attempt.request_id)
        delete_cookie(response, CHALLENGE, settings)
        return response

    async def _use(request: Request, request_id: str) -> Response:
        form, is_ours = await posted_form(request, settings)
        kept = console.encrypted_cookies.decrypt(
            _TO_SIGN_IN, read_cookie(request, CHALLENGE, settings), CHALLENGE_LIFETIME
        )
        if not is_ours or kept is None:
            return sign_in_page(request, console, 403, STALE)
        answer, browser = form.get("credential"), browser_name(request.headers.get("user-agent", ""))
        # Failures are limited per answer and per address, so that they cannot lock anyone else out.
        name = "passkey " + hashlib.sha256(answer.encode(errors="surrogatepass")).hexdigest()
        try:
            token = await console.failed_attempts.guard(
                "sign-in", name, address_of(request), lambda: passkeys.sign_in(kept[0], answer, browser, request_id)
            )
        except Problem as problem:
            error = _REFUSED if problem.code == "unauthorized" else ERRORS[problem.code]
            return sign_in_page(request, console, problem.status, error)
        return await start_session(request, console, token, form.get("next"), request_id)

    return [
        Route(f"{PREFIX}{path}", with_error_pages(console, path, work), methods=["POST"])
        for path, work in (("/sign-in/passkey/options", options), ("/sign-in/passkey", use))
    ]


async def _new(request: ConsoleRequest) -> Response:
    _passkeys(request)
    return _form(request)


async def _new_options(request: ConsoleRequest) -> Response:
    challenge, settings = new_token(), request.console.settings
    response = _options(await _passkeys(request).registration_options(request.session, challenge))
    kept = request.console.encrypted_cookies.encrypt(_TO_REGISTER, [challenge, request.session.digest.hex()])
    set_cookie(response, CHALLENGE, kept, settings, CHALLENGE_LIFETIME)
    return response


async def _register(request: ConsoleRequest) -> Response:
    console, passkeys = request.console, _passkeys(request)
    cookie = read_cookie(request.http, CHALLENGE, console.settings)
    kept = console.encrypted_cookies.decrypt(_TO_REGISTER, cookie, CHALLENGE_LIFETIME)
    if kept is None or kept[1] != request.session.digest.hex():
        return _form(request, 403, STALE)
    form = request.form
    try:
        await passkeys.register(
            request.session, kept[0], form.get("credential"), form.get("name"), request.context.request_id
        )
    except StaffError as error:
        return _form(request, 422, error.text)
    then = local_address(form.get("next")).removeprefix(PREFIX)
    response = request.redirect(then if then != "/" else "/account", notice="passkey_added")
    delete_cookie(response, CHALLENGE, console.settings)
    return response


async def _remove(request: ConsoleRequest) -> Response:
    await request.desk.staff.remove_passkey(request.context, request.staff.staff_id, request.param("passkey_id"))
    return request.redirect("/account", notice="passkey_removed")


def _form(request: ConsoleRequest, status: int = 200, error: str | Text | None = None) -> Response:
    typed = request.form.get("name") or browser_name(request.http.headers.get("user-agent", ""))
    then = local_address(request.form.get("next") or request.http.query_params.get("next", ""))
    return request.render(
        "passkey_new.html",
        title=_("Add a passkey"),
        status=status,
        error=None if error is None else translated(error),
        typed=typed,
        next=then,
    )


def _passkeys(request: ConsoleRequest) -> Passkeys:
    if request.console.passkeys is None:
        raise Problem("not_found", "Passkeys need an https address with a host name.")
    return request.console.passkeys


def _options(document: str) -> Response:
    return Response(document, media_type="application/json")


PAGES = (
    Page("GET", "/passkeys/new", _new),
    Page("POST", "/passkeys/options", _new_options),
    Page("POST", "/passkeys", _register),
    Page("POST", "/passkeys/{passkey_id}/remove", _remove),
)
