"""Routes of the console. Every page is one of `pages()`."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.console.assets import asset_routes
from frontdesk.console.guard import NO_PAGE, PREFIX, Console, ConsoleRequest, Page, guarded_routes
from frontdesk.console.navigation import HOME
from frontdesk.console.pages import (
    account,
    appointments,
    arrivals,
    assistants,
    audit,
    blocks,
    bookings,
    calendar,
    chosen_time,
    clients,
    confirmations,
    connect,
    health,
    live,
    lock,
    overrides,
    passkeys,
    patients,
    practice_closures,
    practice_file,
    practice_locations,
    practice_providers,
    practice_rules,
    practice_visit_types,
    reports,
    setup,
    staff,
    usage,
    webhooks,
)
from frontdesk.console.pages.sign_in import sign_in_routes
from frontdesk.domain.errors import Problem
from frontdesk.feature import features


async def _home(request: ConsoleRequest) -> Response:
    return request.redirect(HOME)


async def _nothing(_request: ConsoleRequest) -> Response:
    raise Problem("not_found", NO_PAGE)


_MODULES = (
    account, lock, passkeys, calendar, live, chosen_time, overrides, appointments, arrivals, bookings, patients,
    blocks, staff, assistants, clients, usage, reports, confirmations,
    connect, setup, practice_file, practice_rules, practice_locations, practice_providers, practice_visit_types,
    practice_closures, health, webhooks, audit,
)  # fmt: skip
# Matched last: 404 with a session, the sign-in without one.
_REST = (Page("GET", "/{rest:path}", _nothing), Page("POST", "/{rest:path}", _nothing))


_PAGES = (Page("GET", "/", _home), *(page for module in _MODULES for page in module.PAGES))


def pages() -> tuple[Page, ...]:
    return (*_PAGES, *(page for feature in features() for page in feature.parts.pages))


def console_routes(console: Console) -> list[Route]:
    async def entrance(_request: Request) -> Response:
        return RedirectResponse(f"{PREFIX}/", 308)

    return [
        Route(PREFIX, entrance),
        *asset_routes(),
        *sign_in_routes(console),
        *lock.unlock_routes(console),
        *(() if console.passkeys is None else passkeys.passkey_sign_in_routes(console, console.passkeys)),
        *connect.authorization_routes(console),
        *guarded_routes(_PAGES, console),
        *(route for feature in features() for route in guarded_routes(feature.parts.pages, console, feature)),
        *guarded_routes(_REST, console),
    ]
