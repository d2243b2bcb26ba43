"""Sign-in through an identity provider, and the choice of a practice for staff of several.

State, nonce and verifier are encrypted in a cookie, so that only the browser that began a sign-in can finish it. So is
the proven identity while its owner chooses a practice: practices are shown to nobody else.
"""

import hmac
from collections.abc import Sequence
from dataclasses import astuple
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.staff.identity_provider import (
    CALLBACK,
    IdentityError,
    IdentityProvider,
    PendingSignIn,
    ProviderUnavailable,
)
from frontdesk.access.staff.sessions import Identity, Membership, PracticeChoice
from frontdesk.console.browsers import browser_name
from frontdesk.console.cookies import CHOICE, IDENTITY, delete_cookie, read_cookie, set_cookie
from frontdesk.console.guard import PREFIX, Console, RequestProgress, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.sign_in import form_token, local_address, posted_form, sign_in_page, start_session
from frontdesk.console.rendering import render
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_
from frontdesk.web.http_request import address_of

_LIFETIME = timedelta(minutes=10)
_PENDING = b"console sign-in"
_CHOICE = b"console practice choice"
_REFUSED = N_("This account may not sign in here. Ask an admin of your practice to add you.")
_STALE = N_("This sign-in took too long or was started in another browser. Try again.")
_UNAVAILABLE = N_("Your practice's account cannot be checked at the moment. Try again in a minute.")


def identity_routes(console: Console, provider: IdentityProvider) -> list[Route]:
    async def begin(request: Request, _attempt: RequestProgress) -> Response:
        try:
            address, beginning = await provider.begin()
        except (ProviderUnavailable, IdentityError):
            return sign_in_page(request, console, 502, _UNAVAILABLE)
        response = RedirectResponse(address, 303)
        then = local_address(request.query_params.get("next", ""))
        set_cookie(
            response,
            IDENTITY,
            console.encrypted_cookies.encrypt(_PENDING, (*astuple(beginning), then)),
            console.settings,
            _LIFETIME,
        )
        return response

    async def finish(request: Request, attempt: RequestProgress) -> Response:
        response = await _finish(request, attempt.request_id)
        delete_cookie(response, IDENTITY, console.settings)
        return response

    async def _finish(request: Request, request_id: str) -> Response:
        kept = console.encrypted_cookies.decrypt(_PENDING, read_cookie(request, IDENTITY, console.settings), _LIFETIME)
        query = request.query_params
        if kept is None or not hmac.compare_digest(query.get("state", "").encode(), kept[0].encode()):
            return sign_in_page(request, console, 403, _STALE)
        *pending, then = kept
        beginning = PendingSignIn(*pending)
        if "code" not in query:  # refused by the user or the provider
            return sign_in_page(request, console, 403, _REFUSED)
        browser = browser_name(request.headers.get("user-agent", ""))

        proven: Identity | None = None

        async def attempt() -> str:
            nonlocal proven
            try:
                proven = await provider.finish(beginning, query["code"], query.get("iss"))
            except IdentityError as error:
                raise Problem("unauthorized") from error
            return await console.staff_sessions.by_identity(proven, browser, request_id)

        try:
            token = await console.failed_attempts.guard(
                "sign-in", f"identity {beginning.state}", address_of(request), attempt
            )
        except ProviderUnavailable:
            return sign_in_page(request, console, 502, _UNAVAILABLE)
        except PracticeChoice as choice:
            assert proven is not None
            return _choices(
                request, choice.memberships, console.encrypted_cookies.encrypt(_CHOICE, (*astuple(proven), then))
            )
        except Problem as problem:
            return _refused(request, problem)
        return await start_session(request, console, token, then, request_id)

    def _choices(request: Request, memberships: Sequence[Membership], kept: str) -> Response:
        csrf = form_token(kept).decode()
        response = render(request, "choose_practice.html", 200, title=_("Sign in"), memberships=memberships, csrf=csrf)
        set_cookie(response, CHOICE, kept, console.settings, _LIFETIME)
        return response

    async def choose(request: Request, attempt: RequestProgress) -> Response:
        response = await _choose(request, attempt.request_id)
        delete_cookie(response, CHOICE, console.settings)
        return response

    async def _choose(request: Request, request_id: str) -> Response:
        form, is_ours = await posted_form(request, console.settings, CHOICE)
        kept = console.encrypted_cookies.decrypt(_CHOICE, read_cookie(request, CHOICE, console.settings), _LIFETIME)
        if kept is None or not is_ours:
            return sign_in_page(request, console, 403, _STALE)
        *identity, then = kept
        browser, chosen = browser_name(request.headers.get("user-agent", "")), form.get("staff")
        try:
            token = await console.staff_sessions.by_identity(Identity(*identity), browser, request_id, chosen)
        except Problem as problem:
            return _refused(request, problem)
        return await start_session(request, console, token, then, request_id)

    def _refused(request: Request, problem: Problem) -> Response:
        error = _REFUSED if problem.code == "unauthorized" else _UNAVAILABLE
        return sign_in_page(request, console, problem.status, error)

    return [
        Route(f"{PREFIX}/sign-in/identity", with_error_pages(console, "/sign-in/identity", begin), methods=["GET"]),
        Route(CALLBACK, with_error_pages(console, "/sign-in/identity/callback", finish), methods=["GET"]),
        Route(f"{PREFIX}/sign-in/practice", with_error_pages(console, "/sign-in/practice", choose), methods=["POST"]),
    ]
