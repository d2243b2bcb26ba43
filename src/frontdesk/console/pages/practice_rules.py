"""The booking rules of a practice."""

from collections.abc import Mapping
from zoneinfo import available_timezones

from frontdesk.console.forms import Form
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.documents import copied, edited_fields
from frontdesk.console.practice_forms.editor import Act, Editor
from frontdesk.console.practice_forms.features import settings_of, switches
from frontdesk.console.practice_forms.fields import Edited, Field, as_typed, put
from frontdesk.console.practice_forms.records import AGENT_RULES, CONSENT, RULES, fields_for
from frontdesk.desk.practice_files import OpenedPractice
from frontdesk.feature import features

_PATH = "/practice/rules"


def _fields(opened: OpenedPractice) -> list[Field]:
    of_features = (field for feature in features() for field in settings_of(feature))
    return fields_for((*RULES, *AGENT_RULES, *CONSENT, *switches(), *of_features), opened.directory.practice)


def _typed(opened: OpenedPractice, _query: Mapping[str, str]) -> Form:
    return Form(as_typed(_fields(opened), opened.directory.practice))


def _values(opened: OpenedPractice, _form: Form) -> dict[str, object]:
    groups = (
        (None, RULES),
        (_("Agents"), AGENT_RULES),
        (_("Consent to a write"), CONSENT),
        (_("Features"), switches()),
        *((_(feature.title), settings_of(feature)) for feature in features() if settings_of(feature)),
    )
    return {
        "groups": [(title, fields_for(fields, opened.directory.practice)) for title, fields in groups],
        "time_zones": sorted(available_timezones()),
    }


def _act(_opened: OpenedPractice, _form: Form) -> Act:
    return Act(_("Booking rules"), "console.change_booking_rules")


def _edit(opened: OpenedPractice, form: Form) -> Edited:
    document = copied(opened)
    put(_fields(opened), document["practice"], form)
    return edited_fields(document, "practice", _fields(opened))


PAGES = Editor(_PATH, _PATH, "practice_rules.html", _typed, _values, _act, _edit).pages
