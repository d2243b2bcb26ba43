"""The OAuth 2.0 token endpoint (RFC 6749), the JWKS and the metadata documents.

Every error is a problem document that also carries `error` and `error_description`.
"""

import base64
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from urllib.parse import parse_qsl, unquote_plus

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.access.clients.assertions import ASSERTION_TYPE, AUTHENTICATION_METHODS, Assertion, read_assertion
from frontdesk.access.clients.public_keys import ALGORITHMS
from frontdesk.access.clients.resources import published_resources, resources_of
from frontdesk.access.clients.scopes import SCOPES
from frontdesk.access.clients.secrets import AuthenticatedClient
from frontdesk.access.clients.smart_scopes import grant_smart_scopes, is_smart
from frontdesk.access.clients.tokens import IssuedToken, Tokens
from frontdesk.access.keys.ring import KeyRing
from frontdesk.domain.errors import FieldError, Problem
from frontdesk.logs import request_labels
from frontdesk.settings import Settings
from frontdesk.web.bodies import read_body
from frontdesk.web.error_handlers import unexpected_problem
from frontdesk.web.http_request import address_of, request_of
from frontdesk.web.request_log import RequestLog
from frontdesk.web.responses import TRACE_HEADER, problem_response, www_authenticate

Authenticate = Callable[[str, str | Assertion, str | None], Awaitable[AuthenticatedClient]]
Endpoint = Callable[[Request], Awaitable[Response]]
Form = dict[str, list[str]]
Exchange = Callable[[Request, Form], Awaitable[dict[str, object]]]

ASSISTANT_GRANTS = ("authorization_code", "refresh_token")
_CLIENT_GRANT = "client_credentials"
_GRANTS = (_CLIENT_GRANT, *ASSISTANT_GRANTS)
_FORM = "application/x-www-form-urlencoded"
_EVERY_METHOD = ()  # the endpoint itself refuses all but POST, as OAuth errors
_MAX_PARAMETERS = 50
_REPEATABLE = "resource"  # RFC 8707
_PARAMETERS = ("grant_type", "client_id", "client_secret", "client_assertion_type", "client_assertion", "scope")
NOT_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_PUBLISHED = "public, max-age=300"
_ERRORS = {  # the RFC 6749 code, if there is one
    "unauthorized": "invalid_client",
    "forbidden_tenant": "unauthorized_client",
    "rate_limited": "temporarily_unavailable",
    "upstream_unavailable": "temporarily_unavailable",
    "internal": "server_error",
}


def oauth_routes(
    authenticate: Authenticate,
    exchange: Exchange,
    tokens: Tokens,
    ring: KeyRing,
    settings: Settings,
    requests: RequestLog,
) -> list[Route]:
    """`authenticate(client_id, secret or assertion, address)` is called at most once per token request.

    `exchange` answers the grants of assistants.
    """

    async def token(request: Request) -> Response:
        if request.method != "POST":
            raise Problem("method_not_allowed")
        form = await read_form(request)
        if form.get("grant_type", [""])[0] in ASSISTANT_GRANTS:
            body = await exchange(request, form)
        else:
            body = token_body(*await _issue(request, form, authenticate, tokens, settings))
        return answer(request, body, NOT_STORED)

    def published(document: Callable[[], dict[str, object]]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return answer(request, document(), {"Cache-Control": _PUBLISHED})

        return endpoint

    return [
        Route("/oauth/token", with_problems("token", token, settings, requests), methods=_EVERY_METHOD),
        Route("/.well-known/jwks.json", published(ring.jwks)),
        *(
            Route(f"/.well-known/{name}", published(partial(_server_metadata, settings)))
            for name in ("oauth-authorization-server", "openid-configuration")  # some clients look there only
        ),
        *(
            Route(
                f"/.well-known/oauth-protected-resource{path}", published(partial(_resource_metadata, settings, path))
            )
            for path in ("", *published_resources(fhir_server=settings.fhir_server))
        ),
    ]


async def _issue(
    request: Request, form: Form, authenticate: Authenticate, tokens: Tokens, settings: Settings
) -> tuple[IssuedToken, Sequence[str]]:
    """The token, and its scopes in the terms in which they were requested."""
    if form.get("grant_type", [_CLIENT_GRANT]) != [_CLIENT_GRANT]:
        raise refused("unsupported_grant_type", f"grant_type must be one of {', '.join(_GRANTS)}.", "grant_type")
    authorization = request.headers.get("authorization")
    if "client_assertion_type" in form:
        credentials: tuple[str, str | Assertion] = _assertion(form, authorization, tokens, settings)
    else:
        credentials = _credentials(form, authorization)
    resources = _resources(form.get("resource", []), settings)
    client = await authenticate(*credentials, address_of(request))
    request.state.client_id = client.client_id
    ours, published = _scopes(form.get("scope", [""])[0], client)
    return tokens.issue(client, ours, resources=resources), published


def token_body(issued: IssuedToken, scopes: Sequence[str]) -> dict[str, object]:
    return {
        "access_token": issued.text,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "scope": " ".join(scopes),
    }


async def read_form(request: Request) -> Form:
    """The form parameters; one without a value counts as omitted (RFC 6749, 3.2)."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Problem("unsupported_media_type", f"The token endpoint requires a body of type {_FORM}.")
    body = await read_body(request_of(request.scope), request.receive)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise refused("invalid_request", "The body is not a valid form.", "$") from None
    form: Form = {}
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    repeated = [name for name, values in form.items() if len(values) > 1 and name != _REPEATABLE]
    if repeated:
        # Unknown names are input and are not repeated.
        known: list[str] = [name for name in _PARAMETERS if name in repeated]
        raise refused("invalid_request", "A parameter was sent more than once.", *(known or ["$"]))
    return {name: values for name, values in form.items() if values != [""]}


def _credentials(form: Form, authorization: str | None) -> tuple[str, str]:
    """Client id and secret, from HTTP Basic or the body but not both."""
    needed = ["grant_type"] if authorization is not None else ["grant_type", "client_id", "client_secret"]
    missing = [name for name in needed if name not in form]
    if missing:
        raise refused("invalid_request", f"Missing parameters: {', '.join(missing)}.", *missing, rule="required")
    if authorization is None:
        return form["client_id"][0], form["client_secret"][0]
    if "client_secret" in form:
        raise refused("invalid_request", "The client uses two authentication methods.", "client_secret")
    client_id, secret = _basic(authorization)
    if form.get("client_id", [client_id]) != [client_id]:
        raise refused("invalid_request", "client_id differs from the Authorization header.", "client_id")
    return client_id, secret


def _assertion(form: Form, authorization: str | None, tokens: Tokens, settings: Settings) -> tuple[str, Assertion]:
    """Client id and signed assertion (RFC 7523)."""
    missing = [name for name in ("grant_type", "client_assertion_type", "client_assertion") if name not in form]
    if missing:
        raise refused("invalid_request", f"Missing parameters: {', '.join(missing)}.", *missing, rule="required")
    if authorization is not None or "client_secret" in form:
        raise refused("invalid_request", "The client uses two authentication methods.", "client_assertion")
    if form["client_assertion_type"] != [ASSERTION_TYPE]:
        raise refused(
            "invalid_request", f"The only client_assertion_type is {ASSERTION_TYPE}.", "client_assertion_type"
        )
    assertion = read_assertion(form["client_assertion"][0], settings.token_url, tokens.clock())
    if form.get("client_id", [assertion.client_id]) != [assertion.client_id]:
        raise refused("invalid_request", "client_id differs from the assertion's sub.", "client_id")
    return assertion.client_id, assertion


def _basic(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            client_id, secret = base64.b64decode(encoded.strip(), validate=True).decode().split(":", 1)
            return unquote_plus(client_id), unquote_plus(secret)  # both are form-encoded (RFC 6749, 2.3.1)
    raise Problem("unauthorized", "The Authorization header does not contain Basic credentials.")


def _scopes(requested: str, client: AuthenticatedClient) -> tuple[tuple[str, ...], Sequence[str]]:
    """The requested scopes that the client has, by default all of them; and how the answer names them.

    Clients that use discovery request every published scope and get those that they have.
    """
    wanted = set(requested.split(" ")) - {""}
    if not wanted:
        return client.scopes, client.scopes
    if wanted == set(SCOPES):
        wanted &= set(client.scopes)
    plain = {scope for scope in wanted if not is_smart(scope)}
    ours, smart = grant_smart_scopes(sorted(wanted - plain), client.scopes)
    if not plain <= set(client.scopes) or not (plain or smart):
        raise refused("invalid_scope", "The client does not have all requested scopes.", "scope")
    scopes = tuple(scope for scope in client.scopes if scope in plain)
    return (*scopes, *ours), (*scopes, *smart)


def _resources(requested: list[str], settings: Settings) -> frozenset[str]:
    """The doors that a token is for (RFC 8707)."""
    known = published_resources(fhir_server=settings.fhir_server)
    resources = resources_of(requested, settings.public_url, known)
    if resources is None:
        below = ", ".join(f"{settings.public_url}{path}" for path in known)
        raise refused("invalid_target", f"Every resource must be {settings.public_url} or one of {below}.", "resource")
    return resources


def refused(error: str, description: str, *fields: str, rule: str = "Binding") -> Problem:
    """RFC 6749 requires status 400 for these errors."""
    errors = [FieldError(field, rule, description) for field in fields]
    return Problem("validation", description, status=400, errors=errors, extra={"error": error})


def with_problems(operation: str, endpoint: Endpoint, settings: Settings, requests: RequestLog) -> Endpoint:
    """Answer errors with problem documents and log every request, without repeating what was sent."""

    async def answered(request: Request) -> Response:
        began, code = time.monotonic(), None
        try:
            response = await endpoint(request)
        except Problem as problem:
            code = problem.code
            response = _problem(request, problem, settings)
        except Exception as error:
            unexpected = unexpected_problem(error, _request_id(request))
            code = unexpected.code
            response = _problem(request, unexpected, settings)
        client_id = getattr(request.state, "client_id", None)
        labels = request_labels("oauth", operation, None, None, client_id, request.method, response.status_code, code)
        requests.report(labels, (time.monotonic() - began) * 1000, _request_id(request))
        return response

    return answered


def _problem(request: Request, problem: Problem, settings: Settings) -> Response:
    problem.extra.setdefault("error", _ERRORS.get(problem.code, "invalid_request"))
    problem.extra["error_description"] = problem.detail
    headers = {"Pragma": "no-cache"}
    if problem.code == "method_not_allowed":
        headers["Allow"] = "POST"
    if problem.status == 401:
        headers["WWW-Authenticate"] = f'{www_authenticate(settings)}, Basic realm="frontdesk"'
    # Rate limit errors belong to the gateway and have no request id.
    request_id = None if problem.code == "rate_limited" else _request_id(request)
    return problem_response(problem, settings, request_id, headers)


def _request_id(request: Request) -> str:
    return request_of(request.scope).request_id


def answer(request: Request, body: dict[str, object], headers: dict[str, str], status: int = 200) -> Response:
    common = {TRACE_HEADER: _request_id(request), "X-Content-Type-Options": "nosniff"}
    return Response(orjson.dumps(body), status, media_type="application/json", headers={**common, **headers})


def _server_metadata(settings: Settings) -> dict[str, object]:
    """Authorization server metadata (RFC 8414)."""
    return {
        "issuer": settings.public_url,
        "authorization_endpoint": f"{settings.public_url}/oauth/authorize",
        "token_endpoint": settings.token_url,
        "registration_endpoint": f"{settings.public_url}/oauth/register",
        "revocation_endpoint": f"{settings.public_url}/oauth/revoke",
        "jwks_uri": f"{settings.public_url}/.well-known/jwks.json",
        "protected_resources": [
            f"{settings.public_url}{path}" for path in published_resources(fhir_server=settings.fhir_server)
        ],
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": _GRANTS,
        "token_endpoint_auth_methods_supported": [*AUTHENTICATION_METHODS, "none"],
        "token_endpoint_auth_signing_alg_values_supported": ALGORITHMS,
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.client_metadata_documents,
        "service_documentation": f"{settings.public_url}/docs",
    }


def _resource_metadata(settings: Settings, path: str) -> dict[str, object]:
    """Protected resource metadata (RFC 9728)."""
    return {
        "resource": f"{settings.public_url}{path}",
        "authorization_servers": [settings.public_url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "frontdesk",
        "resource_documentation": f"{settings.public_url}/docs",
    }
