"""Renders the error catalogue at /errors.html."""

from collections.abc import Mapping
from html import escape

from frontdesk.domain.errors import BINDING, CATALOGUE, ErrorKind
from frontdesk.doors.docs.fields import named_rows, table
from frontdesk.doors.docs.markup import contents_list, fill, json_markup, mark_of, page, prose, sample
from frontdesk.doors.openapi_errors import error_codes, example_problem
from frontdesk.operations import OPERATIONS
from frontdesk.settings import Settings

RULES = {
    BINDING: "The value cannot be parsed: wrong type or format, a date-time instead of a date, an integer beyond 32 "
    "bits, a repeated parameter, or a body that is not JSON. This is the only rule with status 400.",
    "required": "The field is required.",
    "unknown": "The operation has no such field or parameter.",
    "greaterThanZero": "The id must be greater than zero.",
    "range": "The number is out of range.",
    "maxWindow": "The dates are too far apart.",
    "order": "`to` is before `from`.",
    "minDigits": "The phone number has too few digits.",
    "maxLength": "The text is too long.",
    "notBlank": "The text is blank.",
    "notFuture": "The date is in the future.",
    "characters": "The text contains control, invisible or direction-changing characters, or a name has no letter.",
    "cursor": "The cursor does not belong to this query.",
    "declined": "The practice’s scheduling system declined the write. `detail` contains the reason.",
}

_MEMBERS = {
    "type": "Address of the entry on this page.",
    "title": "A summary, the same for every problem with this code.",
    "status": "The HTTP status.",
    "code": "The stable code. Branch on it.",
    "detail": "An explanation of this occurrence.",
    "errors": "For `validation`: every invalid field, its rule, and a message that names the field but not its value.",
    "requestId": "The trace id, also in `X-SVC-TRACE-ID`. The operator can find the call in the log with it.",
}


def errors_page(settings: Settings, assets: Mapping[str, str]) -> str:
    kinds = sorted(CATALOGUE.values(), key=lambda kind: kind.statuses[0])
    contents = contents_list("Codes", ((f"#{kind.code}", str(kind.statuses[0]), kind.code) for kind in kinds))
    main = fill(
        "errors.html",
        members=table("Members of a problem", named_rows(_MEMBERS)),
        problem=sample("A problem", json_markup(example_problem("validation", 422, settings.documentation_url))),
        codes="\n".join(_entry(kind, settings) for kind in kinds),
    )
    return page("Errors · frontdesk", "/errors.html", contents, main, assets)


def _entry(kind: ErrorKind, settings: Settings) -> str:
    marks = "".join(mark_of(str(status)) for status in kind.statuses)
    words = f"{kind.code} {kind.title} {' '.join(map(str, kind.statuses))}"
    document = json_markup(example_problem(kind.code, kind.status, settings.documentation_url))
    return (
        f'<article class="op" data-find="{escape(words.lower())}" aria-labelledby="{kind.code}"><header>'
        f'<h3 id="{kind.code}"><a href="#{kind.code}">{kind.code}</a></h3>'
        f'<p class="call">{marks}<span>{escape(kind.title)}</span></p></header><div class="two"><div>'
        f"<p>{prose(kind.meaning)}</p><h4>Retry?</h4><p>{prose(kind.retry)}</p>{_rules(kind)}{_where(kind)}"
        f"</div><div>{sample(f'{kind.status} {kind.code}', document)}</div></div></article>"
    )


def _rules(kind: ErrorKind) -> str:
    return f"<h4>Rules</h4>{table('Rules', named_rows(RULES))}" if kind.code == "validation" else ""


def _where(kind: ErrorKind) -> str:
    able = [operation for operation in OPERATIONS if kind.code in error_codes(operation)]
    if len(able) == len(OPERATIONS):
        where = "<p>Every operation.</p>"
    elif not able:
        where = "<p>Any path, when called with a method that it does not support.</p>"
    else:
        links = "".join(f'<li><a href="/docs#{each.name}">{each.name}</a></li>' for each in able)
        where = f'<ul class="codes">{links}</ul>'
    return f"<h4>Where</h4>{where}"
