"""The form of a record that consists of plain fields: a location, a visit type or a procedure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import available_timezones

from frontdesk.console.forms import Form
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.documents import (
    copied,
    edited_fields,
    known_id,
    next_id,
    place_of,
    require_own_calendar,
    without,
)
from frontdesk.console.practice_forms.editor import Act, Editor
from frontdesk.console.practice_forms.fields import Edited, Field, as_typed, put
from frontdesk.console.practice_forms.records import fields_for
from frontdesk.desk.practice_files import OpenedPractice
from frontdesk.domain.directory import Directory, Location, Procedure, Provider, VisitType
from frontdesk.texts import N_

Document = dict[str, Any]  # JSON of a practice file
Entry = Location | Provider | VisitType | Procedure
_ADDING = {
    "location": N_("Add a location"),
    "procedure": N_("Add a procedure"),
    "provider": N_("Add a provider"),
    "visit type": N_("Add a visit type"),
}


def act_on_record(form: Form, noun: str, known: Mapping[int, Entry], taken: Iterable[int]) -> Act:
    """Adds, removes or changes a record. A new one gets an id that is not taken."""
    operation, record_id = noun.replace(" ", "_"), known_id(form, known, noun)
    if record_id is None:
        return Act(_(_ADDING[noun]), f"console.add_{operation}", [f"{noun} {next_id(taken)}"])
    name, subjects = known[record_id].name, [f"{noun} {record_id}"]
    if form.get("remove"):
        return Act(_("Remove %(name)s", name=name), f"console.remove_{operation}", subjects)
    return Act(name, f"console.change_{operation}", subjects)


@dataclass(frozen=True, slots=True)
class RecordKind:
    noun: str
    fields: Sequence[Field]
    blank: Callable[[Directory], object]
    records: Callable[[Directory, Form], Mapping[int, Entry]]
    taken: Callable[[Directory], Iterable[int]]  # ids that a new record cannot have
    parent: Callable[[Document, Form], tuple[Document, str]]  # and the path to the list in it
    section: str
    forget: Callable[[Document, int], None]  # removes what refers to a removed record
    kept: Sequence[str] = ()  # further parameters of the page

    def editor(self, path: str, list_path: str) -> Editor:
        return Editor(path, list_path, "practice_record.html", self._typed, self._values, self._act, self._edit)

    def _typed(self, opened: OpenedPractice, query: Mapping[str, str]) -> Form:
        asked = Form({name: [query.get(name, "")] for name in ("id", *self.kept)})
        known = self.records(opened.directory, asked)
        record_id = known_id(asked, known, self.noun)
        record = self.blank(opened.directory) if record_id is None else known[record_id]
        return Form({**asked.fields, **as_typed(self.fields, record)})

    def _values(self, opened: OpenedPractice, form: Form) -> dict[str, object]:
        record_id = known_id(form, self.records(opened.stored, form), self.noun)
        return {
            "fields": fields_for(self.fields, opened.directory.practice),
            "record": self.records(opened.directory, form).get(record_id or 0),
            "kept": [(name, form.get(name)) for name in ("id", *self.kept)],
            "noun": self.noun,
            "time_zones": sorted(available_timezones()),
        }

    def _act(self, opened: OpenedPractice, form: Form) -> Act:
        return act_on_record(form, self.noun, self.records(opened.stored, form), self.taken(opened.stored))

    def _edit(self, opened: OpenedPractice, form: Form) -> Edited:
        document = copied(opened)
        parent, path = self.parent(document, form)
        record_id = known_id(form, self.records(opened.stored, form), self.noun)
        if record_id is None or form.get("remove"):
            require_own_calendar(opened)
        if record_id is not None and form.get("remove"):
            parent[self.section] = without(parent.get(self.section, []), record_id)
            self.forget(document, record_id)
            return Edited(document, {}, {})
        if not (opened.stored.locations or opened.stored.providers or opened.stored.visit_types):
            document["practice"].setdefault("phoneMatch", "ending")  # a new practice, as `practice init` writes it
        index = place_of(parent, self.section, record_id or next_id(self.taken(opened.stored)))
        fields = fields_for(self.fields, opened.directory.practice)
        put(fields, parent[self.section][index], form)
        return edited_fields(document, f"{path}[{index}]", fields)
