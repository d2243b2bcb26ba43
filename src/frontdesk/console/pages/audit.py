"""The audit trail: search, export, verification."""

from collections.abc import AsyncIterator, Iterable
from datetime import date, datetime, time, timedelta

from starlette.responses import Response, StreamingResponse

from frontdesk.audit.reading import AuditFilter
from frontdesk.console.audit_sentences import audit_sentence, operation_title, recorded, subject_name, subject_path
from frontdesk.console.consent_texts import consent_texts
from frontdesk.console.guard import ConsoleRequest, Page, with_query
from frontdesk.console.language import gettext as _
from frontdesk.desk.audit import MAX_SHOWN_SUBJECTS, RecordPage
from frontdesk.domain.errors import CATALOGUE
from frontdesk.texts import N_

_MAX_ID = 2**63 - 1
_EARLIEST = date(2000, 1, 1)
_DONE = {"executed": N_("Done"), "unchanged": N_("Nothing changed"), "replayed": N_("Sent again")}
_OUTCOMES = {**_DONE, **{code: kind.title for code, kind in CATALOGUE.items()}}
_FILTERS = ("actor", "operation", "outcome", "patient", "subject", "request", "from", "to")


async def _audit(request: ConsoleRequest) -> Response:
    asked = {name: request.http.query_params.get(name, "").strip() for name in _FILTERS}
    before = request.http.query_params.get("before", "")
    errors: dict[str, str] = {}
    wanted = _wanted(request, asked, errors)
    place = int(before) if before.isascii() and before.isdecimal() and int(before[:20]) <= _MAX_ID else None
    page = None if errors else await request.desk.audit.find(request.context, wanted, place)
    kept = {name: value for name, value in asked.items() if value}
    return request.render(
        "audit.html",
        title=_("Audit"),
        status=422 if errors else 200,
        asked=asked,
        errors=errors,
        page=page,
        audit_sentence=audit_sentence,
        subject_name=subject_name,
        subject_path=subject_path,
        actors=await _actor_options(request, asked["actor"]),
        operations=_with_chosen([("", _("Anything")), *_by_title(recorded())], asked["operation"]),
        outcomes=_with_chosen([("", _("Any")), *((key, _(text)) for key, text in _OUTCOMES.items())], asked["outcome"]),
        patients=_with_chosen([("", _("Anybody")), *_by_name(page)], asked["patient"]),
        shown_subjects=MAX_SHOWN_SUBJECTS,
        agreed=consent_texts(),
        further=None if page is None or page.before is None else with_query("/audit", {**kept, "before": page.before}),
        newest=with_query("/audit", kept) if place is not None else None,
        narrowed=bool(kept),
        check=await request.desk.audit.last_check(request.context),
    )


async def _check(request: ConsoleRequest) -> Response:
    """The state of the check, polled by a script while it runs."""
    check = await request.desk.audit.last_check(request.context)
    return request.render("audit_check.html", title=_("Audit"), check=check)


async def _verify(request: ConsoleRequest) -> Response:
    await request.desk.audit.start_check(request.context)
    return request.redirect("/audit#check")


async def _export(request: ConsoleRequest) -> Response:
    lines = await request.desk.audit.export(request.context)
    name = f"audit-{request.staff.practice_slug}-{request.context.now:%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_ended(lines), headers=headers, media_type="application/x-ndjson")


async def _ended(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    async for line in lines:
        yield line + "\n"


def _wanted(request: ConsoleRequest, asked: dict[str, str], errors: dict[str, str]) -> AuditFilter:
    since, until = _day(asked, "from", errors), _day(asked, "to", errors)
    if since is not None and until is not None and until < since:
        errors["to"] = _("The last day lies before the first.")
    return AuditFilter(
        actor=asked["actor"] or None,
        operation=asked["operation"] or None,
        subject=asked["subject"] or asked["patient"] or None,
        outcome=asked["outcome"] or None,
        since=None if since is None else datetime.combine(since, time(), request.zone),
        request=asked["request"] or None,
        until=None if until is None else datetime.combine(until + timedelta(days=1), time(), request.zone),
    )


def _day(asked: dict[str, str], name: str, errors: dict[str, str]) -> date | None:
    if not asked[name]:
        return None
    try:
        day = date.fromisoformat(asked[name])
    except ValueError:
        errors[name] = _("A day looks like 2026-11-15.")
        return None
    if not _EARLIEST <= day <= date(9000, 1, 1):
        errors[name] = _("There are no records of that day.")
        return None
    return day


async def _actor_options(request: ConsoleRequest, chosen: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of choices."""
    known = await request.desk.audit.actors(request.context)
    groups = [
        (_("Staff"), [(actor.id, actor.name) for actor in known if actor.kind == "staff"]),
        (_("Agents"), [(actor.id, actor.name) for actor in known if actor.kind == "agent"]),
        (_("Integrations"), [(actor.id, actor.name) for actor in known if actor.kind == "integration"]),
        (_("Others"), [("command-line", _("Command line")), ("sign-in-page", _("Sign-in page"))]),
    ]
    if chosen and all(chosen not in dict(options) for _group, options in groups):
        groups[-1][1].append((chosen, chosen))
    return groups


def _by_title(operations: Iterable[str]) -> list[tuple[str, str]]:
    return sorted(((name, operation_title(name)) for name in operations), key=lambda each: each[1].casefold())


def _by_name(page: RecordPage | None) -> list[tuple[str, str]]:
    return [] if page is None else sorted(page.patients.items(), key=lambda each: each[1].casefold())


def _with_chosen(options: list[tuple[str, str]], chosen: str) -> list[tuple[str, str]]:
    return options if chosen in dict(options) else [*options, (chosen, chosen)]


PAGES = (
    Page("GET", "/audit", _audit, role="admin"),
    Page("GET", "/audit/check", _check, role="admin", counts_as_use=False),
    Page("POST", "/audit/verify", _verify, role="admin"),
    Page("GET", "/audit/export", _export, role="admin"),
)
