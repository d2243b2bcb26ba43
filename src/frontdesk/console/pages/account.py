"""The staff member's own account: sessions, theme, sign-out."""

from datetime import timedelta

from starlette.responses import RedirectResponse, Response

from frontdesk.console.cookies import SESSION, delete_cookie
from frontdesk.console.pages.sign_in import local_address
from frontdesk.console.rendering import THEME_COOKIE, theme_of
from frontdesk.console.visit import Page, Visit

_YEAR = timedelta(days=365)


async def _account(visit: Visit) -> Response:
    sessions = await visit.console.sign_in.sessions_of(visit.session)
    return visit.render("account.html", title="Your account", sessions=sessions, session=visit.session)


async def _sign_out(visit: Visit) -> Response:
    sign_in = visit.console.sign_in
    end = sign_in.sign_out_everywhere if visit.page.path.endswith("everywhere") else sign_in.sign_out
    await end(visit.session, visit.context.request_id)
    response = RedirectResponse("/console/sign-in?left", 303)
    delete_cookie(response, SESSION, visit.console.settings)
    return response


async def _choose_theme(visit: Visit) -> Response:
    """For browsers without scripts; the script sets the same cookie."""
    response = RedirectResponse(local_address(visit.form.get("next")), 303)
    chosen = "light" if theme_of(visit.request) == "dark" else "dark"
    response.set_cookie(
        THEME_COOKIE, chosen, max_age=int(_YEAR.total_seconds()), path="/console", samesite="lax",
        secure=visit.console.settings.public_url.startswith("https://"),
    )  # fmt: skip
    return response


async def _alive(_visit: Visit) -> Response:
    """Polled by open pages, which leave when the session has ended."""
    return Response(status_code=204)


PAGES = (
    Page("GET", "/account", _account),
    Page("POST", "/sign-out", _sign_out),
    Page("POST", "/sign-out-everywhere", _sign_out),
    Page("POST", "/theme", _choose_theme),
    Page("GET", "/alive", _alive, counts_as_use=False),
)
