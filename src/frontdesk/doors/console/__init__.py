"""The console: what a practice's people see of their calendar and their agents. Every page is one of PAGES."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.domain.errors import Problem
from frontdesk.doors.console import (
    account_pages,
    agent_pages,
    appointment_pages,
    audit_pages,
    block_pages,
    booking_pages,
    calendar_pages,
    client_pages,
    confirmation_pages,
    health_pages,
    live,
    patient_pages,
    people_pages,
    practice_file_pages,
    setup_pages,
    usage_pages,
)
from frontdesk.doors.console.assets import asset_routes
from frontdesk.doors.console.navigation import HOME
from frontdesk.doors.console.sign_in_pages import sign_in_routes
from frontdesk.doors.console.visit import PREFIX, Console, Page, Visit, guarded


async def _home(visit: Visit) -> Response:
    return visit.redirect(HOME)


async def _nothing(_visit: Visit) -> Response:
    raise Problem("not_found", "There is no such page.")


PAGES: tuple[Page, ...] = (
    Page("GET", "/", _home),
    *account_pages.PAGES,
    *calendar_pages.PAGES,
    *live.PAGES,
    *appointment_pages.PAGES,
    *booking_pages.PAGES,
    *patient_pages.PAGES,
    *block_pages.PAGES,
    *people_pages.PAGES,
    *agent_pages.PAGES,
    *client_pages.PAGES,
    *usage_pages.PAGES,
    *confirmation_pages.PAGES,
    *setup_pages.PAGES,
    *practice_file_pages.PAGES,
    *health_pages.PAGES,
    *audit_pages.PAGES,
)
# Behind all others: whoever is signed in learns that there is nothing, anybody else is led to the sign-in.
_REST = (Page("GET", "/{rest:path}", _nothing), Page("POST", "/{rest:path}", _nothing))


def console_routes(console: Console) -> list[Route]:
    async def entrance(_request: Request) -> Response:
        return RedirectResponse(f"{PREFIX}/", 308)

    return [
        Route(PREFIX, entrance),
        *asset_routes(),
        *sign_in_routes(console),
        *guarded(PAGES, console),
        *guarded(_REST, console),
    ]


__all__ = ["PAGES", "Console", "console_routes"]
