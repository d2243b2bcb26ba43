"""The staff page: who may sign in, and in which role."""

from starlette.responses import Response

from frontdesk.access.staff.links import LINK_LIFETIME
from frontdesk.console.visit import Page, Visit
from frontdesk.domain.errors import Problem

_CHANGES = ("disable", "enable", "remove", "staff", "admin")
_MINUTES = int(LINK_LIFETIME.total_seconds() // 60)


async def _add(visit: Visit) -> Response:
    form = visit.form
    try:
        added = await visit.desk.staff.add(visit.context, form.get("name"), form.get("role"), form.get("email"))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _listed(visit, problem.status, problem.detail)
    return await _shown_link(visit, added.staff_id)


async def _link(visit: Visit) -> Response:
    return await _shown_link(visit, visit.param("staff_id"))


async def _change(visit: Visit) -> Response:
    change = visit.form.get("change")
    if change not in _CHANGES:
        raise Problem("not_found", "There is no such change.")
    await visit.desk.staff.change(visit.context, visit.param("staff_id"), change)
    return visit.redirect("/staff", notice="staff_removed" if change == "remove" else "staff_changed")


async def _listed(visit: Visit, status: int = 200, fault: str | None = None) -> Response:
    form = visit.form
    return visit.render(
        "staff.html",
        title="Staff",
        status=status,
        members=await visit.desk.staff.all(visit.context),
        fault=fault,
        typed={name: form.get(name) for name in ("name", "role", "email")},
        provider=visit.console.has_provider,
    )


async def _shown_link(visit: Visit, staff_id: str) -> Response:
    """Shows the link in the answer to the form, so that it is in no URL and cannot be opened again."""
    member, link = await visit.desk.staff.link(visit.context, staff_id)
    return visit.render("staff_link.html", title="Sign-in link", member=member, link=link, minutes=_MINUTES)


PAGES = (
    Page("GET", "/staff", _listed, role="admin"),
    Page("POST", "/staff", _add, role="admin"),
    Page("POST", "/staff/{staff_id}/link", _link, role="admin"),
    Page("POST", "/staff/{staff_id}/change", _change, role="admin"),
)
