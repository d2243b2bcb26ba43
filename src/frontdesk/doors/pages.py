"""Serves the OpenAPI document, the documentation pages and their assets, rendered once on first use."""

from functools import cache, lru_cache
from importlib.resources import files

import orjson
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.limits.invalid_tokens import InvalidTokens
from frontdesk.domain.errors import CATALOGUE, Problem
from frontdesk.doors.rest import PREFIX
from frontdesk.operations import Operation, extensions_for
from frontdesk.practice_file.published_schema import SCHEMA_PATH, schema_text
from frontdesk.settings import Settings
from frontdesk.web.http_request import address_of, request_of
from frontdesk.web.responses import TRACE_HEADER
from frontdesk.web.static_files import Assets, StaticFile, published

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
PROBLEM_PAGES = f"{PREFIX}/problems/"  # the only pages under the prefix of REST
ASSETS = Assets(lambda: [files("frontdesk.doors.docs") / "assets"])


def page_routes(settings: Settings, authenticator: Authenticator, invalid_tokens: InvalidTokens) -> list[Route]:
    async def document(request: Request) -> Response:
        return _answer(request, _document(request.scope["path"], settings))

    async def openapi(request: Request) -> Response:
        """Describes also the extensions whose scopes the token holds, if one is sent."""
        token, address, caller = request_of(request.scope).token, address_of(request) or "", None
        if token:
            caller = await authenticator.identify_or_none(
                token, PREFIX, on_invalid=lambda: invalid_tokens.count(address)
            )
        extensions = () if caller is None else extensions_for(caller.scopes)
        answer = _answer(request, _openapi(settings, extensions))
        answer.headers.add_vary_header("Authorization")
        return answer

    async def guide(request: Request) -> Response:
        from frontdesk.doors.docs.guide_pages import GUIDES

        if request.path_params["name"] not in GUIDES:
            raise Problem("not_found", "There is no such guide.")
        return await document(request)

    async def asset(request: Request) -> Response:
        found = ASSETS.get(request.path_params["name"])
        if found is None:
            raise Problem("not_found", "There is nothing at this path.")
        return _answer(request, found)

    async def icon(request: Request) -> Response:
        return _answer(request, ASSETS["icon.svg"])

    async def to_docs(request: Request) -> Response:
        return _redirect(request, "/docs")

    class ProblemType(HTTPEndpoint):
        """The earlier form of a problem's type."""

        async def get(self, request: Request) -> Response:
            code = request.path_params["code"]
            if code not in CATALOGUE:
                raise Problem("not_found", "There is no such error code.")
            return _redirect(request, f"/errors.html#{code}")

    return [
        Route("/", to_docs),
        Route("/docs/", to_docs),
        Route("/docs/assets/{name}", asset),
        Route("/docs/guides/{name}", guide),
        *(Route(path, document) for path in ("/docs", "/docs/guides", "/errors.html", SCHEMA_PATH)),
        Route("/openapi/v1.json", openapi),
        Route("/favicon.ico", icon),
        Route(f"{PROBLEM_PAGES}{{code}}", ProblemType),
    ]


@lru_cache(maxsize=64)
def _document(path: str, settings: Settings) -> StaticFile:
    """Imports late: a service that is not asked for its documentation starts without what renders it."""
    from frontdesk.doors.docs.errors_page import errors_page
    from frontdesk.doors.docs.guide_pages import guide_page, index_page
    from frontdesk.doors.docs.reference_page import reference_page

    if path == SCHEMA_PATH:
        return published("application/schema+json", schema_text().encode())
    match path:
        case "/docs":
            html = reference_page(settings, ASSETS.names)
        case "/errors.html":
            html = errors_page(settings, ASSETS.names)
        case "/docs/guides":
            html = index_page(ASSETS.names)
        case _:
            html = guide_page(path.removeprefix("/docs/guides/"), settings, ASSETS.names)
    return published("text/html; charset=utf-8", html.encode())


@cache
def _openapi(settings: Settings, extensions: tuple[Operation, ...]) -> StaticFile:
    from frontdesk.doors.openapi import openapi_document

    return published("application/json", orjson.dumps(openapi_document(settings, extensions)))


def _answer(request: Request, document: StaticFile) -> Response:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
    return document.answer(request, headers | {TRACE_HEADER: request_of(request.scope).request_id})


def _redirect(request: Request, to: str) -> Response:
    return RedirectResponse(to, 302, headers={TRACE_HEADER: request_of(request.scope).request_id})
