"""The authorization endpoint, and the page on which staff agree that an assistant acts for them.

The browser is redirected to an application only once somebody has decided, so the endpoint is no open redirector (RFC
9700): anybody can register an application, and a refused request must not lead to its address.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.assistants.applications import Application, DocumentUnavailable, is_document
from frontdesk.access.assistants.connections import NOT_ALLOWED
from frontdesk.access.assistants.redirects import host_of, is_local, source_of, with_parameters
from frontdesk.access.assistants.requests import (
    PARAMETERS,
    AuthorizationRequest,
    Parameters,
    RequestRefused,
    read_request,
    return_address,
    state_of,
)
from frontdesk.access.clients.scopes import ROLE_SCOPES
from frontdesk.access.staff.members import StaffError
from frontdesk.console.cookies import SESSION, delete_cookie
from frontdesk.console.domain_texts import translated
from frontdesk.console.guard import PREFIX, Console, ConsoleRequest, Page, RequestProgress, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.rendering import POLICY
from frontdesk.desk.desk import outages_as_problems
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_, Text

CONNECT = "/connect"
_MAX_PARAMETERS = 50
_FRESH_SIGN_IN = timedelta(minutes=5)  # long enough to read the page
_UNKNOWN = N_("The application that sent you here is not known. Add the connection there again.")
_ELSEWHERE = N_("The application asks for the response at an address that it has not registered.")
_NOT_VALID = N_("The request of the application is not valid, so nothing was connected: %(error)s, %(reason)s")
_NOTHING_OFFERED = N_("Your role includes nothing that the application asks for.")
_SIGN_IN_AGAIN = N_("You signed in more than five minutes ago. Access to patients' data needs a fresh sign-in.")


@dataclass(frozen=True, slots=True)
class ScopeGroup:
    """Scopes that staff agree to together."""

    name: str
    title: str
    meaning: str
    scopes: tuple[str, ...]
    is_ticked: bool = False
    is_fixed: bool = False
    has_patients: bool = False


GROUPS = (
    ScopeGroup(
        "directory",
        N_("See the practice and its free times"),
        N_("Locations, providers, visit types and open slots. Nothing about patients."),
        ("practices:read", "slots:read"),
        is_ticked=True,
        is_fixed=True,
    ),
    ScopeGroup(
        "appointments",
        N_("Book, move, confirm and cancel appointments"),
        N_("Each change is read back first, and made only after a second call that confirms it."),
        ("appointments:book", "appointments:cancel", "appointments:confirm"),
        is_ticked=True,
    ),
    ScopeGroup(
        "patients",
        N_("Read patients' data"),
        N_(
            "Find patients by name, date of birth and phone, and read the records and appointments of those it has "
            "found. Needed to book for a patient."
        ),
        ("patients:read", "appointments:read"),
        has_patients=True,
    ),
    ScopeGroup(
        "records",
        N_("Add patients and change their records"),
        N_("Names, dates of birth, phone numbers and e-mail addresses."),
        ("patients:write",),
        has_patients=True,
    ),
)


def authorization_routes(console: Console) -> list[Route]:
    async def authorize(request: Request, _attempt: RequestProgress) -> Response:
        parameters = _parsed(request.scope["query_string"].decode("latin-1"))
        if not any(map(is_document, parameters.get("client_id", ()))):  # fetched only for signed-in staff
            with outages_as_problems():
                await _application_and_address(console, parameters)
        return _with_opener(RedirectResponse(f"{PREFIX}{CONNECT}?{_canonical(parameters)}", 303))

    return [Route("/oauth/authorize", with_error_pages(console, "/oauth/authorize", authorize), methods=["GET"])]


async def _ask(request: ConsoleRequest) -> Response:
    query = request.http.scope["query_string"].decode("latin-1")
    parameters = _parsed(query)
    return _page(request, parameters, await _read(request, parameters))


def _page(
    request: ConsoleRequest, parameters: Parameters, asked: AuthorizationRequest, error: str | Text | None = None
) -> Response:
    response = request.render(
        "connect.html",
        title=_("Connect %(application)s", application=asked.application.name),
        status=422 if error else 200,
        error=None if error is None else translated(error),
        application=asked.application,
        host=host_of(asked.redirect_uri),
        is_local=is_local(asked.redirect_uri),
        groups=_offered(request, asked),
        asked=_canonical(parameters),
        proof=_needed_proof(request),
        sign_in_again=_(_SIGN_IN_AGAIN),
    )
    return _allow_redirect(response, asked.redirect_uri)


async def _decide(request: ConsoleRequest) -> Response:
    parameters = _parsed(request.form.get("request"))
    asked = await _read(request, parameters)
    decision, ticked = request.form.get("decision"), request.form.all("groups")
    if decision == "sign-in":
        return await _sign_in_again(request, parameters)
    if decision != "connect":
        denied = {"error": "access_denied", "error_description": "The staff member did not agree."}
        return _answer(request, asked.redirect_uri, parameters, **denied)
    given = [group for group in GROUPS if group.is_fixed or group.name in ticked]
    if any(group.has_patients for group in given):
        error = await _missing_proof(request)
        if error is not None:
            return _page(request, parameters, asked, error)
    scopes = [scope for group in given for scope in group.scopes]
    code = await request.desk.assistants.connect(request.context, asked, scopes)
    return _answer(request, asked.redirect_uri, parameters, code=code)


def _needed_proof(request: ConsoleRequest) -> Literal["pin", "sign-in"] | None:
    """How staff show that it is them who give access to patients' data; None if they have just signed in."""
    signed_in_at, chosen_at = request.session.created_at, request.session.pin_chosen_at
    if request.context.now - signed_in_at <= _FRESH_SIGN_IN:
        return None
    # One that was first set later may be that of somebody who found the desk open.
    return "sign-in" if chosen_at is None or chosen_at > signed_in_at + _FRESH_SIGN_IN else "pin"


async def _missing_proof(request: ConsoleRequest) -> str | Text | None:
    proof = _needed_proof(request)
    if proof != "pin":
        return _SIGN_IN_AGAIN if proof else None
    pin, request_id = request.form.get("pin"), request.context.request_id
    try:
        await request.console.desk_lock.check_pin(request.session, pin, "console.connect_assistant", request_id)
    except StaffError as error:
        return error.text
    return None


async def _sign_in_again(request: ConsoleRequest, parameters: Parameters) -> Response:
    """Ends the session. The way of the next one leads back here."""
    await request.console.staff_sessions.sign_out(request.session, request.context.request_id)
    back = quote(f"{PREFIX}{CONNECT}?{_canonical(parameters)}", safe="")
    response = RedirectResponse(f"{PREFIX}/sign-in?next={back}", 303)
    delete_cookie(response, SESSION, request.console.settings)
    return _with_opener(response)


async def _read(request: ConsoleRequest, parameters: Parameters) -> AuthorizationRequest:
    """What is asked for. A Problem says why nobody can agree to it: a page, never an answer to the application."""
    application, redirect_uri = await _application_and_address(request.console, parameters)
    try:
        asked = read_request(parameters, application, redirect_uri, request.console.settings.public_url)
    except RequestRefused as refusal:
        raise Problem("validation", Text(_NOT_VALID, error=refusal.error, reason=str(refusal)), status=400) from refusal
    if not await request.desk.assistants.are_allowed(request.context):
        raise Problem("forbidden_scope", NOT_ALLOWED)
    if not _offered(request, asked):
        raise Problem("forbidden_scope", _NOTHING_OFFERED)
    return asked


async def _application_and_address(console: Console, parameters: Parameters) -> tuple[Application, str]:
    """Who asks, and where answers go. Without both nothing may be sent anywhere."""
    given = parameters.get("client_id", ())
    try:
        application = await console.desk.assistants.application(given[0]) if len(given) == 1 else None
    except DocumentUnavailable as error:
        raise Problem("validation", str(error), status=400) from error
    if application is None:
        raise Problem("validation", _UNKNOWN, status=400)
    redirect_uri = return_address(parameters, application)
    if redirect_uri is None:
        raise Problem("validation", _ELSEWHERE, status=400)
    return application, redirect_uri


def _offered(request: ConsoleRequest, asked: AuthorizationRequest) -> Sequence[ScopeGroup]:
    """The groups with anything that was asked for and that the role includes."""
    possible = ROLE_SCOPES[request.staff.role] & set(asked.scopes)
    return [
        replace(group, title=_(group.title), meaning=_(group.meaning))
        for group in GROUPS
        if possible & set(group.scopes)
    ]


def _answer(request: ConsoleRequest, redirect_uri: str, parameters: Parameters, **answer: str) -> Response:
    """Sends the browser back to the application, with `state` and the issuer (RFC 9207)."""
    address = with_parameters(
        redirect_uri, **answer, state=state_of(parameters), iss=request.console.settings.public_url
    )
    return _allow_redirect(RedirectResponse(address, 303), redirect_uri)


def _allow_redirect(response: Response, redirect_uri: str) -> Response:
    """Allows the redirect that answers a form, to which browsers apply `form-action`, too."""
    allowed = f"form-action 'self' {source_of(redirect_uri)}"
    response.headers["Content-Security-Policy"] = POLICY.replace("form-action 'self'", allowed)
    return _with_opener(response)


def _with_opener(response: Response) -> Response:
    """Keeps the reference of the page that opened this window: web applications connect in a window of their own."""
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response


def _parsed(query: str) -> Parameters:
    """A parameter without a value counts as omitted (RFC 6749, 3.1)."""
    try:
        return parse_qs(query, max_num_fields=_MAX_PARAMETERS, errors="strict")
    except ValueError:
        raise Problem("validation", "The address is not a valid request.", status=400) from None


def _canonical(parameters: Parameters) -> str:
    return urlencode({name: values for name, values in parameters.items() if name in PARAMETERS}, doseq=True)


PAGES = (
    Page("GET", CONNECT, _ask),
    Page("POST", CONNECT, _decide),
)
