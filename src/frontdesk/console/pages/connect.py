"""The authorization endpoint, and the page on which staff agree that an assistant acts for them.

The browser is redirected to an application only after sign-in: the endpoint is no open redirector (RFC 9700).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode

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
from frontdesk.console.guard import PREFIX, Console, ConsoleRequest, Page, RequestProgress, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.rendering import POLICY
from frontdesk.desk.desk import outages_as_problems
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_

CONNECT = "/connect"
_MAX_PARAMETERS = 50
_UNKNOWN = N_("The application that sent you here is not known. Add the connection there again.")
_ELSEWHERE = N_("The application asks for the response at an address that it has not registered.")


@dataclass(frozen=True, slots=True)
class ScopeGroup:
    """Scopes that staff agree to together."""

    name: str
    title: str
    meaning: str
    scopes: tuple[str, ...]
    is_ticked: bool = False
    is_fixed: bool = False


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
    ),
    ScopeGroup(
        "records",
        N_("Add patients and change their records"),
        N_("Names, dates of birth, phone numbers and e-mail addresses."),
        ("patients:write",),
    ),
)


def authorization_routes(console: Console) -> list[Route]:
    async def authorize(request: Request, _attempt: RequestProgress) -> Response:
        parameters = _parsed(request.scope["query_string"].decode("latin-1"))
        if not any(map(is_document, parameters.get("client_id", ()))):  # fetched only for signed-in staff
            with outages_as_problems():
                await _application_and_address(console, parameters)
        return _unsevered(RedirectResponse(f"{PREFIX}{CONNECT}?{_canonical(parameters)}", 303))

    return [Route("/oauth/authorize", with_error_pages(console, "/oauth/authorize", authorize), methods=["GET"])]


async def _ask(request: ConsoleRequest) -> Response:
    query = request.http.scope["query_string"].decode("latin-1")
    parameters = _parsed(query)
    application, redirect_uri = await _application_and_address(request.console, parameters)
    try:
        asked = await _read(request, parameters, application, redirect_uri)
    except RequestRefused as refusal:
        return _answer(request, redirect_uri, parameters, error=refusal.error, error_description=str(refusal))
    groups = _offered(request, asked)
    response = request.render(
        "connect.html",
        title=_("Connect %(application)s", application=application.name),
        application=application,
        host=host_of(redirect_uri),
        is_local=is_local(redirect_uri),
        groups=groups,
        asked=_canonical(parameters),
    )
    return _may_leave_for(response, redirect_uri)


async def _decide(request: ConsoleRequest) -> Response:
    parameters = _parsed(request.form.get("request"))
    application, redirect_uri = await _application_and_address(request.console, parameters)
    try:
        asked = await _read(request, parameters, application, redirect_uri)
        if request.form.get("decision") != "connect":
            raise RequestRefused("access_denied", "The staff member did not agree.")
    except RequestRefused as refusal:
        return _answer(request, redirect_uri, parameters, error=refusal.error, error_description=str(refusal))
    ticked = request.form.all("groups")
    scopes = [scope for group in GROUPS if group.is_fixed or group.name in ticked for scope in group.scopes]
    code = await request.desk.assistants.connect(request.context, asked, scopes)
    return _answer(request, redirect_uri, parameters, code=code)


async def _read(
    request: ConsoleRequest, parameters: Parameters, application: Application, redirect_uri: str
) -> AuthorizationRequest:
    asked = read_request(parameters, application, redirect_uri, request.console.settings.public_url)
    if not await request.desk.assistants.are_allowed(request.context):
        raise RequestRefused("access_denied", NOT_ALLOWED)
    if not _offered(request, asked):
        raise RequestRefused("access_denied", "The role of this staff member includes nothing that was asked for.")
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
    return _may_leave_for(RedirectResponse(address, 303), redirect_uri)


def _may_leave_for(response: Response, redirect_uri: str) -> Response:
    """Browsers apply `form-action` also to where a form's answer redirects."""
    allowed = f"form-action 'self' {source_of(redirect_uri)}"
    response.headers["Content-Security-Policy"] = POLICY.replace("form-action 'self'", allowed)
    return _unsevered(response)


def _unsevered(response: Response) -> Response:
    """Lets the page that opened this window hear of its end: web applications connect in a window of their own."""
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
