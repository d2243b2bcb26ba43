"""The staff member's own account: sessions, language, theme, sign-out."""

from datetime import timedelta

from starlette.responses import RedirectResponse, Response

from frontdesk.console.cookies import SESSION, delete_cookie
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import LANGUAGES
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.sign_in import local_address
from frontdesk.console.rendering import THEME_COOKIE, theme_of

_YEAR = timedelta(days=365)


async def _account(request: ConsoleRequest) -> Response:
    session = request.session
    sign_ins = await request.desk.staff.sign_ins(request.context, session.staff_id, session.digest)
    offers_passkeys = request.console.passkeys is not None
    return request.render(
        "account.html",
        title=_("Your account"),
        sign_ins=sign_ins,
        session=session,
        languages=LANGUAGES,
        offers_passkeys=offers_passkeys,
    )


async def _end_session(request: ConsoleRequest) -> Response:
    await request.desk.staff.end_session(request.context, request.staff.staff_id, request.param("number"))
    return request.redirect("/account", notice="session_ended")


async def _sign_out(request: ConsoleRequest) -> Response:
    sessions = request.console.staff_sessions
    end = sessions.sign_out_everywhere if request.page.path.endswith("everywhere") else sessions.sign_out
    await end(request.session, request.context.request_id)
    response = RedirectResponse("/console/sign-in?left", 303)
    delete_cookie(response, SESSION, request.console.settings)
    return response


async def _choose_theme(request: ConsoleRequest) -> Response:
    """For browsers without scripts; the script sets the same cookie."""
    response = RedirectResponse(local_address(request.form.get("next")), 303)
    chosen = "light" if theme_of(request.http) == "dark" else "dark"
    response.set_cookie(
        THEME_COOKIE, chosen, max_age=int(_YEAR.total_seconds()), path="/console", samesite="lax",
        secure=request.console.settings.public_url.startswith("https://"),
    )  # fmt: skip
    return response


async def _choose_language(request: ConsoleRequest) -> Response:
    chosen = request.form.get("language")
    await request.desk.preferences.choose_language(request.context, chosen if chosen in LANGUAGES else None)
    return request.redirect("/account", notice="language_chosen")


async def _alive(_request: ConsoleRequest) -> Response:
    """Polled by open pages, which leave when the session has ended."""
    return Response(status_code=204)


PAGES = (
    Page("GET", "/account", _account),
    Page("POST", "/account/sessions/{number}/end", _end_session),
    Page("POST", "/sign-out", _sign_out),
    Page("POST", "/sign-out-everywhere", _sign_out),
    Page("POST", "/theme", _choose_theme),
    Page("POST", "/account/language", _choose_language),
    Page("GET", "/alive", _alive, counts_as_use=False),
)
