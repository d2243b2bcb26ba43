"""Finding, adding and removing records of a practice's document."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from frontdesk.console.forms import Form, read_id
from frontdesk.console.practice_forms.fields import Edited, Field
from frontdesk.desk.practice_files import OpenedPractice
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_

NOT_HERE = N_(
    "The practice's FHIR server keeps its calendar. Records are added and removed with their references to that "
    "server, by frontdesk practice import."
)

_MISSING = {
    "location": N_("There is no such location."),
    "procedure": N_("There is no such procedure."),
    "provider": N_("There is no such provider."),
    "visit type": N_("There is no such visit type."),
}


def known_id(form: Form, stored: Mapping[int, object], noun: str) -> int | None:
    """The id that a form is about; None: a new record."""
    if not form.get("id"):
        return None
    number = read_id(form.get("id"))
    if number is None or number not in stored:
        raise Problem("not_found", _MISSING[noun])
    return number


def require_own_calendar(opened: OpenedPractice) -> None:
    """Refuses to add or remove a record of a practice on a FHIR server, which has to know it, too."""
    if not opened.directory.practice.keeps_own_calendar:
        raise Problem("capability_not_supported", NOT_HERE)


def next_id(taken: Iterable[int]) -> int:
    return max(taken, default=0) + 1


def copied(opened: OpenedPractice) -> dict[str, Any]:
    return deepcopy(opened.document)


def place_of(parent: dict[str, Any], section: str, record_id: int) -> int:
    """The index of a record. A new one, or one that was removed in the meantime, is added."""
    rows: list[dict[str, object]] = parent.setdefault(section, [])
    for index, row in enumerate(rows):
        if row["id"] == record_id:
            return index
    rows.append({"id": record_id})
    return len(rows) - 1


def without(rows: Sequence[dict[str, object]], record_id: int) -> list[dict[str, object]]:
    return [row for row in rows if row["id"] != record_id]


def edited_fields(document: dict[str, object], path: str, fields: Iterable[Field]) -> Edited:
    """The document after its part at the path was written from these fields."""
    given = [*fields]
    return Edited(
        document,
        {f"{path}.{field.key}": field.key for field in given},
        {field.key: field.label for field in given},
    )
