"""The staff pages: who may sign in, in which role, how, and where they are signed in."""

from starlette.responses import Response

from frontdesk.access.staff.links import LINK_LIFETIME
from frontdesk.console.domain_texts import translated
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.domain.errors import Problem

_CHANGES = ("disable", "enable", "remove", "staff", "admin")
_MINUTES = int(LINK_LIFETIME.total_seconds() // 60)


async def _add(request: ConsoleRequest) -> Response:
    form = request.form
    try:
        added = await request.desk.staff.add(request.context, form.get("name"), form.get("role"), form.get("email"))
    except Problem as problem:
        if problem.code != "validation":
            raise
        return await _listed(request, problem.status, translated(problem.text))
    return await _shown_link(request, added.staff_id)


async def _link(request: ConsoleRequest) -> Response:
    return await _shown_link(request, request.param("staff_id"))


async def _member(request: ConsoleRequest) -> Response:
    staff_id = request.param("staff_id")
    member = await request.desk.staff.one(request.context, staff_id)
    sign_ins = await request.desk.staff.sign_ins(request.context, staff_id, request.session.digest)
    return request.render("staff_member.html", title=member.name, member=member, sign_ins=sign_ins)


async def _reset(request: ConsoleRequest) -> Response:
    return await _shown_link(request, request.param("staff_id"), reset=True)


async def _remove_passkey(request: ConsoleRequest) -> Response:
    staff_id = request.param("staff_id")
    await request.desk.staff.remove_passkey(request.context, staff_id, request.param("passkey_id"))
    return request.redirect(f"/staff/{staff_id}", notice="passkey_removed")


async def _end_session(request: ConsoleRequest) -> Response:
    staff_id = request.param("staff_id")
    await request.desk.staff.end_session(request.context, staff_id, request.param("number"))
    return request.redirect(f"/staff/{staff_id}", notice="session_ended")


async def _change(request: ConsoleRequest) -> Response:
    change = request.form.get("change")
    if change not in _CHANGES:
        raise Problem("not_found", "There is no such change.")
    await request.desk.staff.change(request.context, request.param("staff_id"), change)
    return request.redirect("/staff", notice="staff_removed" if change == "remove" else "staff_changed")


async def _listed(request: ConsoleRequest, status: int = 200, error: str | None = None) -> Response:
    form = request.form
    return request.render(
        "staff.html",
        title=_("Staff"),
        status=status,
        members=await request.desk.staff.all(request.context),
        error=error,
        typed={name: form.get(name) for name in ("name", "role", "email")},
    )


async def _shown_link(request: ConsoleRequest, staff_id: str, *, reset: bool = False) -> Response:
    """Shows the link in the answer to the form, so that it is in no URL and cannot be opened again."""
    member, link = await request.desk.staff.link(request.context, staff_id, reset=reset)
    return request.render("staff_link.html", title=_("Sign-in link"), member=member, link=link, minutes=_MINUTES)


PAGES = (
    Page("GET", "/staff", _listed, role="admin"),
    Page("POST", "/staff", _add, role="admin"),
    Page("POST", "/staff/{staff_id}/link", _link, role="admin"),
    Page("GET", "/staff/{staff_id}", _member, role="admin"),
    Page("POST", "/staff/{staff_id}/reset", _reset, role="admin"),
    Page("POST", "/staff/{staff_id}/passkeys/{passkey_id}/remove", _remove_passkey, role="admin"),
    Page("POST", "/staff/{staff_id}/sessions/{number}/end", _end_session, role="admin"),
    Page("POST", "/staff/{staff_id}/change", _change, role="admin"),
)
