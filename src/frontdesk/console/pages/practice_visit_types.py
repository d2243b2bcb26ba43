"""Visit types and their procedures: list, add, change and remove them."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.responses import Response

from frontdesk.console.forms import Form, read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.record_editor import RecordKind
from frontdesk.console.practice_forms.records import PROCEDURE, VISIT_TYPE
from frontdesk.domain.directory import Directory, Procedure, VisitType
from frontdesk.domain.errors import Problem

_LIST = "/practice/visit-types"
_MINUTES = 30  # of a new procedure


async def _list(request: ConsoleRequest) -> Response:
    directory = (await request.desk.practice_file.opened(request.context)).directory
    return request.render(
        "practice_visit_types.html",
        title=_("Visit types"),
        visit_types=directory.visit_types.values(),
        keeps_own_calendar=directory.practice.keeps_own_calendar,
    )


def _forget_unoffered(document: dict[str, Any], _removed: int) -> None:
    """A provider does not perform procedures that no visit type has any more."""
    offered = {row["id"] for visit_type in document.get("visitTypes", []) for row in visit_type.get("procedures", [])}
    for provider in document.get("providers", []):
        if "procedures" in provider:
            provider["procedures"] = [key for key in provider["procedures"] if key in offered]


def _procedures(directory: Directory, form: Form) -> Mapping[int, Procedure]:
    visit_type = directory.visit_types.get(read_id(form.get("visit_type")) or 0)
    if visit_type is None:
        raise Problem("not_found", "There is no such visit type.")
    return {each.id: each for each in visit_type.procedures}


def _all_procedures(directory: Directory) -> Iterator[int]:
    return (each.id for visit_type in directory.visit_types.values() for each in visit_type.procedures)


def _visit_type(document: dict[str, Any], form: Form) -> tuple[dict[str, object], str]:
    for index, row in enumerate(document.get("visitTypes", [])):
        if row["id"] == read_id(form.get("visit_type")):
            return row, f"visitTypes[{index}].procedures"
    raise Problem("not_found", "There is no such visit type.")


_VISIT_TYPES = RecordKind(
    noun="visit type",
    fields=VISIT_TYPE,
    blank=lambda _: VisitType(0, "", "any"),
    records=lambda directory, _: directory.visit_types,
    taken=lambda directory: directory.visit_types,
    parent=lambda document, _: (document, "visitTypes"),
    section="visitTypes",
    forget=_forget_unoffered,
)
_PROCEDURES = RecordKind(
    noun="procedure",
    fields=PROCEDURE,
    blank=lambda _: Procedure(0, "", _MINUTES),
    records=_procedures,
    taken=_all_procedures,
    parent=_visit_type,
    section="procedures",
    forget=_forget_unoffered,
    kept=("visit_type",),
)

PAGES = (
    Page("GET", _LIST, _list, role="admin"),
    *_VISIT_TYPES.editor("/practice/visit-types/edit", _LIST).pages,
    *_PROCEDURES.editor("/practice/visit-types/procedure", _LIST).pages,
)
