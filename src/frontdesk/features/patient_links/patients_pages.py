"""The pages behind a patient's own link, without an account: see the appointment, confirm it, cancel it.

The link's secret is in the URL's fragment, so opening the address, as previews do, discloses and changes nothing. No
cookie is set: each form carries an encrypted pass, so that a form of another site has no authority.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.access.opaque_tokens import digest_of
from frontdesk.console.domain_texts import translated
from frontdesk.console.forms import Form, read_form, read_id
from frontdesk.console.guard import Console, RequestProgress, check_same_origin, with_error_pages
from frontdesk.console.language import gettext as _
from frontdesk.console.panels import patients_file, patients_panels
from frontdesk.console.rendering import render
from frontdesk.console.times import TimeFormats
from frontdesk.desk.desk import outages_as_problems
from frontdesk.domain.errors import Problem
from frontdesk.features.patient_links.links import MAX_WRONG_DATES, is_token
from frontdesk.features.patient_links.my_appointments import MyAppointment, MyAppointments
from frontdesk.texts import N_
from frontdesk.web.bodies import MAX_BODY_BYTES
from frontdesk.web.http_request import address_of

PATH = "/my-appointment"
_PAGE = "patient_links/my_appointment.html"
PASS_LIFETIME = timedelta(minutes=15)
USES_PER_MINUTE = 30  # of one link
_RESULTS = {"confirm_attendance": "confirmed", "cancel_appointment": "cancelled"}
_PURPOSE = b"pass of a patient's link"
_WRONG = N_(
    "The link does not work with this date of birth. Check the date. If it is right, the link has ended: ask the "
    "practice for a new one. After %(limit)s wrong dates a link ends."
)
_NO_DATE = N_("Enter the day, the month and the year of birth as numbers.")
_STALE = N_("This page was open for too long, or the link has ended. Open the link again.")
_CHANGED = N_("The appointment has changed. Check it again.")
_TOO_OFTEN = N_("Too many attempts. Wait a minute, then try again.")

Work = Callable[["_Visit"], Awaitable[Response]]
_Attempt = Callable[[Request, RequestProgress], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Visit:
    """One request of somebody who has passed the date of birth."""

    console: Console
    http: Request
    form: Form
    request_id: str
    found: MyAppointment
    is_as_shown: bool  # the appointment begins when the page said that it does

    async def render(self, template: str, status: int = 200, **values: object) -> Response:
        return await _shown(self.console, self.http, self.request_id, self.found, template, status, **values)


def my_appointment_routes(console: Console) -> list[Route]:
    appointments = console.desk.engine.services[MyAppointments]

    async def ask(request: Request, _attempt: RequestProgress) -> Response:
        return _asked(request)

    async def ask_again(_request: Request, _attempt: RequestProgress) -> Response:
        return RedirectResponse(PATH, 303)

    async def open_link(request: Request, attempt: RequestProgress) -> Response:
        check_same_origin(request, console.settings)
        form = await read_form(request, MAX_BODY_BYTES)
        link, born = form.get("link").rpartition("#")[2], _date(form)
        if born is None:
            return _asked(request, 422, _(_NO_DATE), link)
        name = digest_of(link).hex()
        try:
            found = await console.failed_attempts.guard(
                "link",
                name,
                address_of(request),
                lambda: appointments.open(link, born, attempt.request_id),
            )
            await console.failed_attempts.count_use("link", found.link.link_id, USES_PER_MINUTE, _TOO_OFTEN)
        except Problem as problem:
            if problem.code == "unauthorized":
                return _asked(request, problem.status, _(_WRONG, limit=MAX_WRONG_DATES), link)
            raise
        return await _shown(console, request, attempt.request_id, found)

    def opened(work: Work) -> _Attempt:
        async def checked(request: Request, attempt: RequestProgress) -> Response:
            check_same_origin(request, console.settings)
            form = await read_form(request, MAX_BODY_BYTES)
            held = console.encrypted_cookies.decrypt(_PURPOSE, form.get("pass"), PASS_LIFETIME)
            if held is None:
                return _asked(request, 401, _(_STALE))
            practice_id, appointment_id, link_id, start = held
            await console.failed_attempts.count_use("link", link_id, USES_PER_MINUTE, _TOO_OFTEN)
            try:
                found = await appointments.find(practice_id, appointment_id, link_id, attempt.request_id)
            except Problem as problem:
                if problem.code == "unauthorized":
                    return _asked(request, problem.status, _(_STALE))
                raise
            is_as_shown = found.start.timestamp() == start
            return await work(_Visit(console, request, form, attempt.request_id, found, is_as_shown))

        return checked

    def route(path: str, methods: Sequence[str], work: _Attempt) -> Route:
        return Route(PATH + path, with_error_pages(console, PATH + path, _in_words(work)), methods=methods)

    return [
        route("", ["GET"], ask),
        route("", ["POST"], open_link),
        route("/show", ["POST"], opened(_show)),
        route("/confirm", ["POST"], opened(_confirm)),
        route("/cancel/review", ["POST"], opened(_review)),
        route("/cancel", ["POST"], opened(_cancel)),
        route("/file", ["POST"], opened(_file)),
        *(route(path, ["GET"], ask_again) for path in ("/show", "/confirm", "/cancel/review", "/cancel", "/file")),
    ]


async def _show(visit: _Visit) -> Response:
    return await visit.render(_PAGE)


async def _confirm(visit: _Visit) -> Response:
    return await _execute(visit, "confirm_attendance", "")


async def _review(visit: _Visit) -> Response:
    if "cancel_appointment" not in visit.found.may:
        return await visit.render(_PAGE, 409)
    return await visit.render("patient_links/cancel.html")


async def _cancel(visit: _Visit) -> Response:
    return await _execute(visit, "cancel_appointment", visit.form.get("reason"))


async def _file(visit: _Visit) -> Response:
    appointments = visit.console.desk.engine.services[MyAppointments]
    file = await patients_file(appointments.visit(visit.found, visit.request_id), visit.form.get("file"))
    if file is None:
        raise Problem("not_found")
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.content, media_type=file.media_type, headers=headers)


async def _execute(visit: _Visit, operation: str, reason: str) -> Response:
    if not visit.is_as_shown:
        return await visit.render(_PAGE, 409, error=_(_CHANGED))
    appointments, link = visit.console.desk.engine.services[MyAppointments], visit.found.link
    try:
        await appointments.execute(link, operation, reason, visit.form.get("key"), visit.request_id)
    except Problem as problem:
        if problem.code == "validation" and reason:
            error = translated(problem.errors[0].text, field=_("Reason"))
            return await visit.render("patient_links/cancel.html", problem.status, error=error, reason=reason)
        if problem.code != "conflict":
            raise
    now = await appointments.find(link.practice_id, link.appointment_id, link.link_id, visit.request_id)
    if now.status != _RESULTS[operation]:
        return await _shown(visit.console, visit.http, visit.request_id, now, status=409, error=_(_CHANGED))
    return await _shown(visit.console, visit.http, visit.request_id, now, done=operation)


def _asked(request: Request, status: int = 200, error: str | None = None, link: str = "") -> Response:
    """The page that asks for the date of birth. It is the same for every link."""
    link = link if is_token(link) else ""
    return render(request, "patient_links/open.html", status, title=_("Your appointment"), error=error, link=link)


async def _shown(
    console: Console,
    request: Request,
    request_id: str,
    found: MyAppointment,
    template: str = _PAGE,
    status: int = 200,
    **values: object,
) -> Response:
    link = found.link
    held = [link.practice_id, link.appointment_id, link.link_id, found.start.timestamp()]
    values = {"error": None, "done": None, "reason": "", **values}
    if template == _PAGE:
        visit = console.desk.engine.services[MyAppointments].visit(found, request_id)
        values |= {"panels": await patients_panels(visit), "zone": found.start.tzinfo, "file_path": f"{PATH}/file"}
    return render(
        request,
        template,
        status,
        TimeFormats.of(found.practice),
        title=_("Your appointment"),
        found=found,
        encrypted_pass=console.encrypted_cookies.encrypt(_PURPOSE, held),
        **values,
    )


def _in_words(work: _Attempt) -> _Attempt:
    """Errors as a page for patients, who cannot sign in."""

    async def worded(request: Request, attempt: RequestProgress) -> Response:
        try:
            with outages_as_problems():
                return await work(request, attempt)
        except Problem as problem:
            error = _(_TOO_OFTEN) if problem.code == "rate_limited" else translated(problem.text)
            response = render(
                request, "patient_links/problem.html", problem.status, title=_("Your appointment"), error=error
            )
            if problem.retry_after is not None:
                response.headers["Retry-After"] = str(problem.retry_after)
            return response

    return worded


def _date(form: Form) -> date | None:
    day, month, year = (read_id(form.get(name)) for name in ("day", "month", "year"))
    try:
        return None if day is None or month is None or year is None else date(year, month, day)
    except (ValueError, OverflowError):
        return None
