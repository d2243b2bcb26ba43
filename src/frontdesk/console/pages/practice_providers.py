"""Providers: list, add, change and remove them, with their weekly hours and exceptions."""

from collections.abc import Mapping

from starlette.responses import Response

from frontdesk.console.forms import Form, read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms import hours
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
from frontdesk.console.practice_forms.fields import Edited, as_typed, put
from frontdesk.console.practice_forms.record_editor import act_on_record
from frontdesk.console.practice_forms.records import PROVIDER, fields_for
from frontdesk.console.practice_forms.words import weekly_summary
from frontdesk.desk.practice_files import OpenedPractice
from frontdesk.domain.directory import Provider

_LIST, _EDIT = "/practice/providers", "/practice/providers/edit"


async def _list(request: ConsoleRequest) -> Response:
    directory = (await request.desk.practice_file.opened(request.context)).directory
    return request.render(
        "practice_providers.html",
        title=_("Providers"),
        providers=[
            (each, weekly_summary(each, directory.locations, request.formats)) for each in directory.providers.values()
        ],
        keeps_own_calendar=directory.practice.keeps_own_calendar,
    )


def _typed(opened: OpenedPractice, query: Mapping[str, str]) -> Form:
    asked = query.get("id", "")
    provider_id = known_id(Form({"id": [asked]}), opened.directory.providers, "provider")
    provider = Provider(0, "") if provider_id is None else opened.directory.providers[provider_id]
    chosen = provider.procedure_ids
    typed = {
        "id": [asked],
        **as_typed(PROVIDER, provider),
        **hours.as_typed(provider),
        "performs": ["all" if chosen is None else "some"],
        "procedures": [str(key) for key in sorted(chosen or ())],
    }
    if provider_id is None and len(opened.directory.locations) == 1:
        typed["place"] = [str(key) for key in opened.directory.locations]
    return Form(typed)


def _values(opened: OpenedPractice, form: Form) -> dict[str, object]:
    directory = opened.directory
    provider = directory.providers.get(known_id(form, opened.stored.providers, "provider") or 0)
    weeks = hours.weeks(form, directory.locations)
    shown = {week.location.id for week in weeks}
    procedures = {
        each.id: f"{each.name} ({visit_type.name})"
        for visit_type in directory.visit_types.values()
        for each in visit_type.procedures
    }
    return {
        "provider": provider,
        "fields": fields_for(PROVIDER, opened.directory.practice),
        "weeks": weeks,
        "other_places": [(each.id, each.name) for each in directory.locations.values() if each.id not in shown],
        "places": [(each.id, each.name) for each in directory.locations.values()],
        "weekdays": hours.day_names(),
        "periods": hours.period_rows(form),
        "absences": hours.absence_rows(form),
        "blocked": [] if provider is None else [row for row in provider.time_off if row.by is not None],
        "procedures": sorted(procedures.items()),
    }


def _act(opened: OpenedPractice, form: Form) -> Act:
    return act_on_record(form, "provider", opened.stored.providers, opened.stored.providers)


def _edit(opened: OpenedPractice, form: Form) -> Edited:
    document = copied(opened)
    provider_id = known_id(form, opened.stored.providers, "provider")
    if provider_id is None or form.get("remove"):
        require_own_calendar(opened)
    if provider_id is not None and form.get("remove"):
        document["providers"] = without(document.get("providers", []), provider_id)
        return Edited(document, {}, {})
    index = place_of(document, "providers", provider_id or next_id(opened.stored.providers))
    provider, path = document["providers"][index], f"providers[{index}]"
    fields = fields_for(PROVIDER, opened.directory.practice)
    put(fields, provider, form)
    edited = edited_fields(document, path, fields)
    controls, labels = dict(edited.controls), dict(edited.labels)
    _put_procedures(provider, form)
    controls[f"{path}.procedures"], labels["procedures"] = "procedures", _("Procedures")
    if opened.directory.practice.keeps_own_calendar:
        rows = hours.read_hours(form, opened.directory.locations)
        if not hours.same_hours(rows, provider.get("hours", [])):
            _put_rows(provider, path, "hours", rows, controls, labels)
        _put_rows(provider, path, "timeOff", hours.read_absences(form), controls, labels)
    return Edited(document, controls, labels)


def _put_procedures(provider: dict[str, object], form: Form) -> None:
    provider.pop("procedures", None)
    if form.get("performs") == "some":
        chosen = (read_id(key) for key in form.all("procedures"))
        provider["procedures"] = [key for key in chosen if key is not None]


def _put_rows(
    provider: dict[str, object],
    path: str,
    key: str,
    rows: list[hours.Row],
    controls: dict[str, str],
    labels: dict[str, str],
) -> None:
    provider.pop(key, None)
    if rows:
        provider[key] = [row.values for row in rows]
    for number, row in enumerate(rows):
        for part, (control, label) in row.controls.items():
            controls[f"{path}.{key}[{number}].{part}"] = control
            labels[control] = label


PAGES = (
    Page("GET", _LIST, _list, role="admin"),
    *Editor(_EDIT, _LIST, "practice_provider.html", _typed, _values, _act, _edit).pages,
)
