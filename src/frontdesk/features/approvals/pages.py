"""Shows the changes that wait for approval, and takes the decision of a staff member."""

from collections.abc import Mapping

from starlette.responses import Response

from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.navigation import NavItem
from frontdesk.console.panels import Panel, ShownDays
from frontdesk.console.times import TimeFormats, moment
from frontdesk.domain.errors import Problem
from frontdesk.features.approvals.approvals import MAX_SHOWN, Approvals
from frontdesk.texts import N_

_PATH = "/approvals"
NAVIGATION = {"Agents": (NavItem(_PATH, N_("Pending approvals"), "check", "staff"),)}
NOTICES = {
    "change_approved": N_("The change is approved. It is executed when the agent sends it again."),
    "change_refused": N_("The change is refused. It cannot be executed any more."),
}
_LABELS = {
    "providerName": N_("With"),
    "locationName": N_("Where"),
    "visitTypeName": N_("Visit"),
    "procedureName": N_("Procedure"),
    "dob": N_("Date of birth"),
    "phone": N_("Phone"),
    "email": N_("E-mail"),
    "reason": N_("Reason"),
}


async def _list(request: ConsoleRequest, refused: Problem | None = None) -> Response:
    pending = await request.services[Approvals].pending(request.context)
    return request.render(
        "approvals/list.html",
        title=_("Pending approvals"),
        status=200 if refused is None else refused.status,
        pending=[(each, lines(each.read_back, request.formats)) for each in pending],
        refused=refused,
        limit=MAX_SHOWN,
    )


async def _decide(request: ConsoleRequest) -> Response:
    approved = request.page.path.endswith("/approve")
    try:
        await request.services[Approvals].decide(request.context, request.param("approval_id"), approved=approved)
    except Problem as problem:
        if problem.code != "conflict":
            raise
        return await _list(request, problem)
    return request.redirect(_PATH, notice="change_approved" if approved else "change_refused")


def lines(read_back: Mapping[str, object], formats: TimeFormats) -> list[tuple[str, str]]:
    """What would change, as labels and values without ids."""
    found = []
    if "firstName" in read_back or "lastName" in read_back:
        found.append((_("Patient"), _name(read_back, "firstName", "lastName")))
    if "previousFirstName" in read_back or "previousLastName" in read_back:
        before = {
            "first": read_back.get("previousFirstName", read_back.get("firstName")),
            "last": read_back.get("previousLastName", read_back.get("lastName")),
        }
        found.append((_("Name until now"), _name(before, "first", "last")))
    if "start" in read_back:
        found.append((_("When"), f"{_time(read_back['start'], formats)} ({read_back['timeZone']})"))
    if "rescheduledFrom" in read_back:
        found.append((_("Until now"), _time(read_back["rescheduledFrom"], formats)))
    for name, label in _LABELS.items():
        if name in read_back:
            value = read_back[name]
            found.append((_(label), _("removed") if value is None else str(value)))
    return found


def _name(read_back: Mapping[str, object], *fields: str) -> str:
    return " ".join(str(read_back[field]) for field in fields if read_back.get(field))


def _time(text: object, formats: TimeFormats) -> str:
    """In the time zone of the location."""
    start = moment(str(text))
    return f"{formats.long_day(start.date())}, {formats.clock(start)}"


async def _waiting(request: ConsoleRequest, _days: ShownDays | None) -> Mapping[str, object] | None:
    count = await request.services[Approvals].count(request.context)
    return {"count": count} if count else None


PANEL = Panel("approvals/notice.html", _waiting, place="notices")
PAGES = (
    Page("GET", _PATH, _list),
    Page("POST", f"{_PATH}/{{approval_id}}/approve", _decide),
    Page("POST", f"{_PATH}/{{approval_id}}/refuse", _decide),
)
