"""Serves the OpenAPI document, the documentation pages and their assets, rendered once on first use."""

from functools import lru_cache

import orjson
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.domain.errors import CATALOGUE, Problem
from frontdesk.doors.published import Assets, Published, published
from frontdesk.doors.responses import TRACE_HEADER, request_id_of
from frontdesk.doors.rest import PREFIX
from frontdesk.settings import Settings

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
PROBLEM_PAGES = f"{PREFIX}/problems/"  # the only pages under the prefix of REST
ASSETS = Assets("frontdesk.doors.docs", "assets")


def page_routes(settings: Settings) -> list[Route]:
    async def openapi(request: Request) -> Response:
        return _answer(request, _openapi(settings))

    async def docs(request: Request) -> Response:
        return _answer(request, _page("docs", settings))

    async def errors(request: Request) -> Response:
        return _answer(request, _page("errors", settings))

    async def guides(request: Request) -> Response:
        return _answer(request, _page("guides", settings))

    async def guide(request: Request) -> Response:
        from frontdesk.doors.docs.guide_pages import GUIDES

        if request.path_params["name"] not in GUIDES:
            raise Problem("not_found", "There is no such guide.")
        return _answer(request, _guide(request.path_params["name"], settings))

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
        """Redirects the earlier form of a problem's type."""

        async def get(self, request: Request) -> Response:
            code = request.path_params["code"]
            if code not in CATALOGUE:
                raise Problem("not_found", "There is no such error code.")
            return _redirect(request, f"/errors.html#{code}")

    return [
        Route("/", to_docs),
        Route("/docs", docs),
        Route("/docs/", to_docs),
        Route("/docs/assets/{name}", asset),
        Route("/docs/guides", guides),
        Route("/docs/guides/{name}", guide),
        Route("/errors.html", errors),
        Route("/openapi/v1.json", openapi),
        Route("/favicon.ico", icon),
        Route(f"{PROBLEM_PAGES}{{code}}", ProblemType),
    ]


@lru_cache(maxsize=4)
def _openapi(settings: Settings) -> Published:
    from frontdesk.doors.openapi import openapi_document

    return published("application/json", orjson.dumps(openapi_document(settings)))


@lru_cache(maxsize=8)
def _page(name: str, settings: Settings) -> Published:
    from frontdesk.doors.docs.errors_page import errors_page
    from frontdesk.doors.docs.guide_pages import index_page
    from frontdesk.doors.docs.reference_page import reference_page

    pages = {"docs": reference_page, "errors": errors_page}
    html = index_page(ASSETS.names) if name == "guides" else pages[name](settings, ASSETS.names)
    return published("text/html; charset=utf-8", html.encode())


@lru_cache(maxsize=64)
def _guide(name: str, settings: Settings) -> Published:
    from frontdesk.doors.docs.guide_pages import guide_page

    return published("text/html; charset=utf-8", guide_page(name, settings, ASSETS.names).encode())


def _answer(request: Request, document: Published) -> Response:
    return document.answer(
        request,
        {
            "Content-Security-Policy": POLICY,
            "Referrer-Policy": "no-referrer",
            TRACE_HEADER: _request_id(request),
        },
    )


def _redirect(request: Request, to: str) -> Response:
    return RedirectResponse(to, 302, headers={TRACE_HEADER: _request_id(request)})


def _request_id(request: Request) -> str:
    return request_id_of(request.headers.get("traceparent"))
