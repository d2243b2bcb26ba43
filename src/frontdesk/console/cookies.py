"""The console's cookies: HttpOnly, SameSite=Lax, and over https Secure with the prefix `__Host-`.

The prefix keeps other subdomains from setting them. It requires the path `/`.
"""

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from frontdesk.settings import Settings

SESSION = "frontdesk_session"
SIGN_IN = "frontdesk_sign_in"
IDENTITY = "frontdesk_identity"
CHOICE = "frontdesk_choice"
CHALLENGE = "frontdesk_challenge"
DESK = "frontdesk_desk"


def read_cookie(request: Request, name: str, settings: Settings) -> str | None:
    return request.cookies.get(_name(name, settings))


def set_cookie(response: Response, name: str, value: str, settings: Settings, lifetime: timedelta) -> None:
    response.set_cookie(
        _name(name, settings),
        value,
        max_age=int(lifetime.total_seconds()),
        path=_path(settings),
        secure=_secure(settings),
        httponly=True,
        samesite="lax",
    )


def delete_cookie(response: Response, name: str, settings: Settings) -> None:
    response.delete_cookie(
        _name(name, settings), path=_path(settings), secure=_secure(settings), httponly=True, samesite="lax"
    )


def _name(name: str, settings: Settings) -> str:
    return f"__Host-{name}" if _secure(settings) else name


def _path(settings: Settings) -> str:
    return "/" if _secure(settings) else "/console"


def _secure(settings: Settings) -> bool:
    return settings.public_url.startswith("https://")
