"""Renders templates, with autoescaping, and sets the security headers of every answer."""

import asyncio
import gzip
import secrets
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from frontdesk.console.assets import asset
from frontdesk.console.audit_sentences import operation_title
from frontdesk.console.calendar.grid import MAX_COLUMNS
from frontdesk.console.domain_texts import actor_name, rule_names, translated
from frontdesk.console.language import format_number, gettext, language, months, pgettext, plural_form, weekdays
from frontdesk.console.times import TimeFormats
from frontdesk.feature import features

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
THEME_COOKIE = "frontdesk_theme"
_OUTSIDE = TimeFormats()  # before a practice is known
_PIECES_IN_A_STEP = 500  # of a long page: about a millisecond


@cache
def _templates(formats: TimeFormats) -> "Environment":
    # Imported with the first page, because it is slow.
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, PrefixLoader, StrictUndefined

    of_features = PrefixLoader({each.name: FileSystemLoader(each.folder / "templates") for each in features()})
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("frontdesk.console", "templates"), of_features]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_callables(gettext, plural_form, newstyle=True, pgettext=pgettext)  # type: ignore[attr-defined]
    environment.globals.update(
        asset=asset,
        max_columns=MAX_COLUMNS,
        new_key=new_key,
        formats=formats,
        format_number=format_number,
        language=language,
        months=months,
        operation_title=operation_title,
        weekdays=weekdays,
    )
    environment.filters.update(formats.filters(), translated=translated, actor_name=actor_name, rule_names=rule_names)
    return environment


def render(
    request: Request, template: str, status: int = 200, formats: TimeFormats = _OUTSIDE, **values: object
) -> Response:
    html = _templates(formats).get_template(template).render(theme=theme_of(request), **values)
    return HTMLResponse(html, status, {"Vary": "Accept-Language"})


async def render_in_steps(request: Request, template: str, formats: TimeFormats, **values: object) -> Response:
    """Renders a long page, and lets other calls go on in between."""
    pieces = _templates(formats).get_template(template).generate(theme=theme_of(request), **values)
    html: list[str] = []
    while step := list(islice(pieces, _PIECES_IN_A_STEP)):
        html += step
        await asyncio.sleep(0)
    return HTMLResponse("".join(html), headers={"Vary": "Accept-Language"})


async def compressed(request: Request, response: Response) -> Response:
    """Compressed if accepted. Only for a page that repeats nothing of the request that a stranger can choose freely:
    the size would tell what else is on the page."""
    response.headers.add_vary_header("Accept-Encoding")
    if "gzip" in request.headers.get("accept-encoding", ""):
        response.body = await asyncio.to_thread(gzip.compress, response.body, 6, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response


def theme_of(request: Request) -> str | None:
    """The theme chosen in this browser; None follows the system."""
    chosen = request.cookies.get(THEME_COOKIE)
    return chosen if chosen in ("light", "dark") else None


def with_headers(response: Response, request_id: str) -> Response:
    """Adds the security headers and `no-store`, except those that the page has set."""
    for name, value in (*HEADERS.items(), ("Cache-Control", "no-store")):
        response.headers.setdefault(name, value)
    response.headers["X-SVC-TRACE-ID"] = request_id
    return response


def new_key() -> str:
    """An idempotency key for a form."""
    return secrets.token_urlsafe(24)
