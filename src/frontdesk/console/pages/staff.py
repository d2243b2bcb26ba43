"""The people of the practice: who may sign in, and as what. For admins."""

from starlette.responses import Response

from frontdesk.access.staff.links import LINK_LIFETIME
from frontdesk.console.visit import Page, Visit
from frontdesk.domain.errors import Problem

_CHANGES = ("disable", "enable", "remove", "staff", "admin")
_MINUTES = int(LINK_LIFETIME.total_seconds() // 60)


async def _people(visit: Visit) -> Response:
    return await _listed(visit)


async def _add(visit: Visit) -> Response:
    form = await visit.form()
    try:
        added = await visit.desk.colleagues.add(visit.person, form.get("name"), form.get("role"), form.get("email"))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _listed(visit, problem.status, problem.detail)
    return await _shown_link(visit, added.staff_id)


async def _link(visit: Visit) -> Response:
    return await _shown_link(visit, visit.request.path_params["staff_id"])


async def _change(visit: Visit) -> Response:
    change = (await visit.form()).get("change")
    if change not in _CHANGES:
        raise Problem("not_found", "There is no such change.")
    await visit.desk.colleagues.change(visit.person, visit.request.path_params["staff_id"], change)
    return visit.redirect("/people", notice="person_removed" if change == "remove" else "person_changed")


async def _listed(visit: Visit, status: int = 200, fault: str | None = None) -> Response:
    form = await visit.form()
    return visit.render(
        "staff.html",
        title="People",
        status=status,
        people=await visit.desk.colleagues.everybody(visit.person),
        fault=fault,
        typed={name: form.get(name) for name in ("name", "role", "email")},
        provider=visit.console.has_provider,
    )


async def _shown_link(visit: Visit, staff_id: str) -> Response:
    """In the answer to the form itself: the link stands in no address, and is not shown again."""
    colleague, link = await visit.desk.colleagues.link(visit.person, staff_id)
    return visit.render("person_link.html", title="Sign-in link", colleague=colleague, link=link, minutes=_MINUTES)


PAGES = (
    Page("GET", "/people", _people, role="admin"),
    Page("POST", "/people", _add, role="admin"),
    Page("POST", "/people/{staff_id}/link", _link, role="admin"),
    Page("POST", "/people/{staff_id}/change", _change, role="admin"),
)
