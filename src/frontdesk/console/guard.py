"""The guard in front of every page, and the request that it hands to the page.

The guard checks the session, the role and, for a POST, that the form belongs to the session. Errors become pages.
"""

import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.limits.failed_attempts import FailedAttempts
from frontdesk.access.staff.desk_lock import DeskLock
from frontdesk.access.staff.members import StaffMember
from frontdesk.access.staff.passkeys import Passkeys
from frontdesk.access.staff.sessions import StaffSession, StaffSessions
from frontdesk.console.cookies import SESSION, read_cookie
from frontdesk.console.encrypted_cookies import EncryptedCookies
from frontdesk.console.forms import Form, read_form
from frontdesk.console.language import gettext as _
from frontdesk.console.language import negotiate_language, set_language, use_language
from frontdesk.console.navigation import NavItem, navigation, notices, practice_tabs
from frontdesk.console.rendering import render, render_in_steps, with_headers
from frontdesk.console.times import TimeFormats
from frontdesk.desk.context import ActionContext, Role
from frontdesk.desk.desk import Desk, outages_as_problems
from frontdesk.domain.errors import Problem
from frontdesk.feature import Feature, Services, features_of
from frontdesk.outbound.sign_in_mail import SignInMail
from frontdesk.settings import Settings
from frontdesk.texts import N_
from frontdesk.web.bodies import MAX_BODY_BYTES
from frontdesk.web.error_handlers import unexpected_problem
from frontdesk.web.http_request import origin_of, request_of
from frontdesk.web.request_log import RequestLog

PREFIX = "/console"
CSRF_FIELD = "csrf"
CSRF_HEADER = "X-CSRF-Token"
NO_PAGE = N_("There is no such page.")

Endpoint = Callable[[Request], Awaitable[Response]]


def with_query(path: str, parameters: Mapping[str, object]) -> str:
    """The address of a page. Parameters that are None or an empty tuple are left out."""
    given = urlencode({name: value for name, value in parameters.items() if value not in (None, ())}, doseq=True)
    return f"{PREFIX}{path}" + (f"?{given}" if given else "")


@dataclass(frozen=True, slots=True)
class Console:
    """What every page of the console works with."""

    settings: Settings
    desk: Desk
    staff_sessions: StaffSessions
    passkeys: Passkeys | None  # None: browsers have no passkeys at the base URL
    encrypted_cookies: EncryptedCookies
    desk_lock: DeskLock
    sign_in_mail: SignInMail | None  # None: no mail server is set
    failed_attempts: FailedAttempts
    clock: Callable[[], datetime]
    requests: RequestLog
    has_identity_provider: bool  # staff may also sign in through an identity provider


@dataclass(frozen=True, slots=True)
class Page:
    method: str  # GET or POST
    path: str  # below /console
    handler: "Callable[[ConsoleRequest], Awaitable[Response]]"
    role: Role = "staff"  # the lowest that may open it
    max_body_bytes: int = MAX_BODY_BYTES
    counts_as_use: bool = True  # False where a script asks by itself: a page left open does not keep a session alive


@dataclass
class ConsoleRequest:
    """One request of a signed-in staff member."""

    http: Request
    context: ActionContext
    session: StaffSession
    console: Console
    page: Page
    form: Form = field(default_factory=Form)  # posted, read by the guard

    @property
    def desk(self) -> Desk:
        return self.console.desk

    @property
    def features(self) -> tuple[Feature, ...]:
        """Those that the practice uses."""
        return features_of(self.session.features)

    @property
    def services(self) -> Services:
        """Of the features."""
        return self.desk.engine.services

    @property
    def staff(self) -> StaffMember:
        return self.context.staff

    @property
    def csrf(self) -> str:
        """Derived from the session's token, so that a form of another session is refused."""
        token = read_cookie(self.http, SESSION, self.console.settings) or ""
        return hmac.new(token.encode(errors="surrogatepass"), b"frontdesk console csrf", hashlib.sha256).hexdigest()

    @cached_property
    def zone(self) -> ZoneInfo:
        """The practice's time zone."""
        return ZoneInfo(self.session.time_zone)

    @cached_property
    def formats(self) -> TimeFormats:
        """How the practice writes dates and times."""
        return TimeFormats(self.session.time_format, self.session.date_format)

    def param(self, name: str) -> str:
        """A part of the path."""
        return str(self.http.path_params[name])

    async def run(self, operation: str, arguments: Mapping[str, object]) -> Mapping[str, Any]:
        """Runs an operation; a form that is sent twice executes once."""
        return await self.desk.run(self.context, operation, arguments, idempotency_key=self.form.get("key") or None)

    async def still_signed_in(self) -> bool:
        """Whether the session is still valid, for answers that go on for long. Does not count as use."""
        token = read_cookie(self.http, SESSION, self.console.settings)
        return await self.console.staff_sessions.find(token, in_use=False) is not None

    def render(self, template: str, *, title: str, status: int = 200, **values: object) -> Response:
        return render(self.http, template, status, self.formats, **self._values(title, values))

    async def render_in_steps(self, template: str, *, title: str, **values: object) -> Response:
        """Renders a page that may be long."""
        return await render_in_steps(self.http, template, self.formats, **self._values(title, values))

    def _values(self, title: str, values: Mapping[str, object]) -> dict[str, object]:
        return {
            "here": path_and_query(self.http),
            "title": title,
            "answers_form": self.http.method == "POST",
            "staff": self.staff,
            "practice_name": self.session.practice_name,
            "zone": self.zone,
            "nav": _navigation(self),
            "practice_tabs": practice_tabs(self.features),
            "csrf": self.csrf,
            "notice": _(notices().get(self.http.query_params.get("notice", ""), "")),
            "idle_seconds": int(self.session.idle.total_seconds()),
            "may_lock": self.session.lock_after_minutes is not None,
            **values,
        }

    def redirect(self, path: str, notice: str | None = None) -> Response:
        """Redirects to a page below /console. `notice` is a key of `notices()`."""
        if notice is not None:
            assert notice in notices(), notice
            path += f"{'&' if '?' in path else '?'}notice={notice}"
        return RedirectResponse(PREFIX + path, 303)


def guarded_routes(pages: Sequence[Page], console: Console, feature: Feature | None = None) -> list[Route]:
    """Of the core, or of a feature: a practice that has switched it off has no such page."""
    return [Route(PREFIX + page.path, _endpoint(page, console, feature), methods=[page.method]) for page in pages]


def path_and_query(request: Request) -> str:
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def check_same_origin(request: Request, settings: Settings) -> None:
    """Refuses forms of other sites by the headers that browsers add.

    With `no-referrer` a browser sends the Origin `null` from our own forms, too; then the CSRF token decides.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = {request.headers.get("host", "").lower(), urlsplit(settings.public_url).netloc.lower()}
    sender = None if origin is None else origin_of(origin)
    if site not in (None, "same-origin") or (
        origin not in (None, "null") and (sender is None or sender[1] not in ours)
    ):
        raise Problem("forbidden_scope", "This form was not sent from the console.")


@dataclass(slots=True)
class RequestProgress:
    """What is known of a request when it fails."""

    request_id: str
    request: ConsoleRequest | None = None


def with_error_pages(
    console: Console, path: str, work: Callable[[Request, RequestProgress], Awaitable[Response]]
) -> Endpoint:
    """Turns errors into pages, adds the console's headers, and notes the request in the request log. Texts are in the
    language that the browser prefers, until the work knows who asks."""

    async def endpoint(request: Request) -> Response:
        with use_language(negotiate_language(request.headers.get("accept-language", ""))):
            return await answer(request)

    async def answer(request: Request) -> Response:
        began, code = time.monotonic(), None
        attempt = RequestProgress(request_of(request.scope).request_id)
        try:
            _check_address(request)
            response = await work(request, attempt)
        except Problem as problem:
            code = problem.code
            response = _problem_page(request, problem, attempt)
        except Exception as error:
            unexpected = unexpected_problem(error, attempt.request_id)
            if attempt.request is not None:  # pages of signed-in staff do more than read: the cause may be ours
                unexpected = Problem("internal")
            code = unexpected.code
            response = _problem_page(request, unexpected, attempt)
        caller = None if attempt.request is None else attempt.request.staff.caller()
        console.requests.record(
            "console", path, caller, request.method, response.status_code, code, began, attempt.request_id
        )
        return with_headers(response, attempt.request_id)

    return endpoint


def _endpoint(page: Page, console: Console, feature: Feature | None) -> Endpoint:
    async def visited(request: Request, attempt: RequestProgress) -> Response:
        token = read_cookie(request, SESSION, console.settings)
        session = await console.staff_sessions.find(token, in_use=page.counts_as_use)
        if session is None:
            return _signed_out(request)
        set_language(session.language)
        context = ActionContext(session, console.clock(), attempt.request_id, console.desk.engine.audit)
        attempt.request = ConsoleRequest(request, context, session, console, page)
        if not (feature is None or feature.is_enabled(session.features)):
            raise Problem("not_found", NO_PAGE)
        _check_role(attempt.request)
        if request.method == "POST":
            check_same_origin(request, console.settings)
            form = await read_form(request, page.max_body_bytes)
            # The form may have taken its time, and the session may have ended, been locked or lost its role meanwhile.
            session = await console.staff_sessions.find(token, in_use=False)
            if session is None:
                attempt.request = None
                return _signed_out(request)
            attempt.request = ConsoleRequest(request, replace(context, staff=session), session, console, page, form)
            _check_role(attempt.request)
            _check_csrf(attempt.request)
        with outages_as_problems():
            return await page.handler(attempt.request)

    return with_error_pages(console, page.path, visited)


def _check_address(request: Request) -> None:
    """PostgreSQL stores no NUL, so that nothing has such an id or name."""
    if "\x00" in request.scope["path"] or b"%00" in request.scope["query_string"]:
        raise Problem("not_found", NO_PAGE)


def _check_role(request: ConsoleRequest) -> None:
    role = request.page.role
    if not request.staff.may(role):
        raise Problem("forbidden_scope", _("This page requires the role %(role)s.", role=role))


def _check_csrf(request: ConsoleRequest) -> None:
    sent = request.http.headers.get(CSRF_HEADER) or request.form.get(CSRF_FIELD)
    if not hmac.compare_digest(sent.encode(errors="surrogatepass"), request.csrf.encode()):
        raise Problem("forbidden_scope", "This form belongs to another session. Open the page again and retry.")


def _problem_page(request: Request, problem: Problem, attempt: RequestProgress) -> Response:
    """With the console's navigation where the request has a session that goes on."""
    values: dict[str, Any] = {"problem": problem, "request_id": attempt.request_id}
    if attempt.request is not None and problem.code != "unauthorized":
        response = attempt.request.render("problem.html", title=_(problem.kind.title), status=problem.status, **values)
    else:
        response = render(request, "problem_outside.html", problem.status, title=_(problem.kind.title), **values)
    if problem.retry_after is not None:
        response.headers["Retry-After"] = str(problem.retry_after)
    return response


def _signed_out(request: Request) -> Response:
    """Opening a page redirects to the sign-in and back; a script or a form gets 401."""
    destination = request.headers.get("sec-fetch-dest", "document")
    if request.method in ("GET", "HEAD") and destination == "document":
        return RedirectResponse(f"{PREFIX}/sign-in?next={quote(path_and_query(request), safe='')}", 303)
    problem = Problem("unauthorized", "You are no longer signed in. Sign in and try again.")
    return render(request, "problem_outside.html", 401, title=_("Signed out"), problem=problem, request_id=None)


def _navigation(request: ConsoleRequest) -> list[dict[str, object]]:
    """The places that this role may open; the one that the page belongs to is marked."""
    staff, part = request.staff, "/" + request.page.path.split("/")[1]
    groups = [
        (label, [place for place in places if staff.may(place.role)]) for label, places in navigation(request.features)
    ]
    return [
        {"label": _(label), "places": [(_shown(place), part == place.path or part in place.covers) for place in places]}
        for label, places in groups
        if places
    ]


def _shown(place: NavItem) -> NavItem:
    return replace(place, label=_(place.label))
