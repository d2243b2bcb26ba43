"""Sign-in through an identity provider.

State, nonce and verifier are sealed in a cookie, so that only the browser that began a sign-in can finish it.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import astuple
from datetime import datetime, timedelta

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError
from frontdesk.access.staff.identity_provider import (
    CALLBACK,
    IdentityError,
    IdentityProvider,
    PendingSignIn,
    ProviderUnavailable,
)
from frontdesk.console.browsers import browser_name
from frontdesk.console.cookies import IDENTITY, delete_cookie, read_cookie, set_cookie
from frontdesk.console.guard import PREFIX, Console, RequestProgress, answered
from frontdesk.console.pages.sign_in import local_address, sign_in_page, signed_in
from frontdesk.domain.errors import Problem

_LIFETIME = timedelta(minutes=10)
_CONTEXT = b"console sign-in"
_REFUSED = "This account may not sign in here. Ask an admin of your practice to add you."
_STALE = "This sign-in took too long or was started in another browser. Try again."
_UNAVAILABLE = "Your practice's account cannot be checked at the moment. Try again in a minute."


def identity_routes(console: Console, provider: IdentityProvider, cipher: KeyCipher) -> list[Route]:
    async def begin(request: Request, _attempt: RequestProgress) -> Response:
        try:
            address, beginning = await provider.begin()
        except (ProviderUnavailable, IdentityError):
            return sign_in_page(request, console, 502, _UNAVAILABLE)
        response = RedirectResponse(address, 303)
        then = local_address(request.query_params.get("next", ""))
        kept = _seal(cipher, beginning, then, console.clock())
        set_cookie(response, IDENTITY, kept, console.settings, _LIFETIME)
        return response

    async def finish(request: Request, attempt: RequestProgress) -> Response:
        response = await _finish(request, attempt.request_id)
        delete_cookie(response, IDENTITY, console.settings)
        return response

    async def _finish(request: Request, request_id: str) -> Response:
        kept = _open(cipher, read_cookie(request, IDENTITY, console.settings), console.clock())
        query = request.query_params
        if kept is None or not hmac.compare_digest(query.get("state", "").encode(), kept[0].state.encode()):
            return sign_in_page(request, console, 403, _STALE)
        beginning, then = kept
        if "code" not in query:  # refused by the user or the provider
            return sign_in_page(request, console, 403, _REFUSED)
        browser = browser_name(request.headers.get("user-agent", ""))

        async def attempt() -> str:
            try:
                identity = await provider.finish(beginning, query["code"], query.get("iss"))
            except IdentityError as error:
                raise Problem("unauthorized") from error
            return await console.sign_in.by_identity(
                identity.issuer, identity.subject, identity.verified_email, browser, request_id
            )

        address = None if request.client is None else request.client.host
        try:
            token = await console.failures.guard(f"console identity {beginning.state}", address, attempt)
        except ProviderUnavailable:
            return sign_in_page(request, console, 502, _UNAVAILABLE)
        except Problem as problem:
            fault = _REFUSED if problem.code == "unauthorized" else _UNAVAILABLE
            return sign_in_page(request, console, problem.status, fault)
        return await signed_in(request, console, token, then, request_id)

    return [
        Route(f"{PREFIX}/sign-in/identity", answered(console, "/sign-in/identity", begin), methods=["GET"]),
        Route(CALLBACK, answered(console, "/sign-in/identity/callback", finish), methods=["GET"]),
    ]


def _seal(cipher: KeyCipher, beginning: PendingSignIn, then: str, now: datetime) -> str:
    plain = orjson.dumps([*astuple(beginning), then, now.timestamp()])
    return urlsafe_b64encode(cipher.encrypt(plain, _CONTEXT)).decode()


def _open(cipher: KeyCipher, cookie: str | None, now: datetime) -> tuple[PendingSignIn, str] | None:
    try:
        sealed = urlsafe_b64decode((cookie or "").encode())
        state, nonce, verifier, then, began = orjson.loads(cipher.decrypt(sealed, _CONTEXT))
    except (ValueError, SecretKeyError):
        return None
    if now.timestamp() - began > _LIFETIME.total_seconds():
        return None
    return PendingSignIn(state, nonce, verifier), then
